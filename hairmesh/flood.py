"""Log lines on what strangers can cause as often as they like: the first at once, then all together once in a while.

What waits to be told is told when its time has come, though nobody comes any more: by one timer, whatever the flood.
Belongs to an event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Protocol

MAX_TOLD = 10
"""So many different values, such as addresses, are told in one line."""

Say = Callable[[int, Mapping[str, list[str]]], None]
"""Told how often it happened since the last time, and by name what was seen of it."""


class Timer(Protocol):
    """As event loops have them."""

    def cancel(self) -> None:
        """Do not call any more."""


Later = Callable[[float, Callable[[], None]], Timer]
"""Calls in so many seconds, once."""


def later(delay_s: float, call: Callable[[], None]) -> Timer:
    """By the running event loop."""
    return asyncio.get_running_loop().call_later(delay_s, call)


class Flood:
    """One kind of event. Costs 0.3 µs each time that it happens, and one timer in `period_s`."""

    def __init__(self, say: Say, *, period_s: float, clock: Callable[[], float], later: Later = later) -> None:
        self._say = say
        self._period_s = period_s
        self._clock = clock
        self._later = later
        self._told_s = -math.inf
        self._count = 0
        self._seen: dict[str, set[str]] = {}
        self._timer: Timer | None = None
        """While something waits to be told, and only then."""

    def note(self, **seen: str) -> None:
        """It happened once more."""
        self._count += 1
        for name, value in seen.items():
            values = self._seen.setdefault(name, set())
            if len(values) < MAX_TOLD:
                values.add(value)
        if self._timer is not None:
            return
        wait_s = self._told_s + self._period_s - self._clock()
        if wait_s > 0:
            self._timer = self._later(wait_s, self._tell)
        else:
            self._tell()

    def close(self) -> None:
        """Tell now what waits: nothing more will happen."""
        if self._timer is not None:
            self._timer.cancel()
            self._tell()

    def _tell(self) -> None:
        self._timer, self._told_s = None, self._clock()
        count, seen = self._count, {name: sorted(values) for name, values in self._seen.items()}
        self._count = 0
        self._seen.clear()
        self._say(count, seen)
