"""When a call is sent once more, and when it is given up. Pure: time and chance come from outside.

A call leaves nothing at the service but pictures, which are removed by age, so it may be sent again. Two things speak
against it: a photo that makes an edge die must not be sent to one edge after another, and a slow call costs minutes of
a GPU. So a fast call that was lost with its edge is sent once more, and a slow one only where nobody has computed it.
"""

from __future__ import annotations

from hairmesh.client.envelope import HairMeshError
from hairmesh.client.errors import Again, again

UNREACHABLE_S = 15.0
"""How long to wait for an edge that cannot be reached, by default: a restart takes 5 to 10 s."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 4.0
"""Between two tries while no edge can be reached: twice as long each time; longer where a proxy says so."""
LOST_PAUSE_S = 0.5
"""Before the one further try of a call that was lost; longer where a proxy says so."""
UNTOLD_S = 5.0
"""The pause where the service is busy and does not say for how long."""
GRACE_S = 2.0
"""A call is given up this much after its patience has ended: until then the service's own DEADLINE may arrive, with the
request's id."""
JITTER = 0.1
"""Share of a pause by which it may be longer: those who were refused together do not come back together."""
OF_SLOW_CALLS = frozenset({Again.AS_TOLD, Again.NO_EDGE})
"""Failures after which a slow call is sent again: no worker has begun it."""


class Patience:
    """How much of one call's time is left. Every `now_s` is read from the same monotonic clock, in s."""

    def __init__(self, total_s: float, now_s: float, *, unreachable_s: float = UNREACHABLE_S, slow: bool) -> None:
        self._deadline_s = now_s + total_s
        self._unreachable_s = unreachable_s
        self._slow = slow
        self._lost = False
        self._gone_since_s: float | None = None
        self._next_pause_s = FIRST_PAUSE_S

    def left_s(self, now_s: float) -> float:
        """Seconds until the deadline; negative after it."""
        return self._deadline_s - now_s

    def rest_s(self, now_s: float) -> float:
        """Seconds until the call is given up; negative after that."""
        return self.left_s(now_s) + GRACE_S

    def pause_s(self, error: HairMeshError, now_s: float, chance: float) -> float | None:
        """How long to wait before the next try; None: there is none. `chance` is from 0 to 1."""
        pause_s = self._wanted_s(error, now_s)
        if pause_s is None:
            return None
        pause_s *= 1 + JITTER * chance
        return pause_s if pause_s < self.left_s(now_s) else None

    def _wanted_s(self, error: HairMeshError, now_s: float) -> float | None:
        kind = again(error)
        if self._slow and kind not in OF_SLOW_CALLS:
            return None
        told_s = getattr(error, "retry_after_s", None) or 0.0
        if kind in {Again.NO_EDGE, Again.PERHAPS_NO_EDGE}:
            return self._while_none_is_there_s(told_s, now_s)
        self._gone_since_s, self._next_pause_s = None, FIRST_PAUSE_S
        match kind:
            case Again.AS_TOLD | Again.UNKEPT:
                return told_s or UNTOLD_S
            case Again.LOST if not self._lost:
                self._lost = True
                return max(LOST_PAUSE_S, told_s)
            case _:
                return None

    def _while_none_is_there_s(self, told_s: float, now_s: float) -> float | None:
        """The next pause while no edge can be reached; None once the tries in a row without an edge last too long."""
        if self._gone_since_s is None:
            self._gone_since_s = now_s
        pause_s = max(self._next_pause_s, told_s)
        self._next_pause_s = min(2 * self._next_pause_s, LONGEST_PAUSE_S)
        return pause_s if now_s - self._gone_since_s + pause_s <= self._unreachable_s else None
