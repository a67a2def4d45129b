"""A clock that a test turns, and what is called by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class _Timer:
    due_s: float
    call: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass(slots=True)
class Timers:
    """Like an event loop's, for `hairmesh.flood`."""

    now_s: float = 1000.0
    _timers: list[_Timer] = field(default_factory=list)

    def later(self, delay_s: float, call: Callable[[], None]) -> _Timer:
        """Call when the clock has been turned so far."""
        self._timers.append(timer := _Timer(self.now_s + delay_s, call))
        return timer

    @property
    def waiting(self) -> int:
        """How many calls are still to come."""
        return sum(not timer.cancelled for timer in self._timers)

    def go(self, by_s: float) -> None:
        """Turn the clock, and call in order what is due on the way, each at its time."""
        until_s = self.now_s + by_s
        while due := [timer for timer in self._timers if timer.due_s <= until_s]:
            first = min(due, key=lambda timer: timer.due_s)
            self._timers.remove(first)
            self.now_s = first.due_s
            if not first.cancelled:
                first.call()
        self.now_s = until_s
