"""When a call is sent once more, and when it is given up. Pure: time and chance come from outside.

Calls compute and leave nothing behind but pictures that age, so that each may be sent again. Two things speak against
it: a photo that an edge has died of is not to be carried from edge to edge, and a slow call costs minutes of a GPU. So
a call that was lost with its edge is sent once more, and a slow one only where nobody has computed it.
"""

from __future__ import annotations

from hairmesh.client.envelope import HairMeshError
from hairmesh.client.errors import Again, again

UNREACHABLE_S = 15.0
"""How long an edge that is not there is waited for, where nobody says: a restart takes from 5 to 10 s."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 4.0
"""Between tries meanwhile: twice as long each time; longer where a proxy says so."""
LOST_PAUSE_S = 0.5
"""Before the one further try of a call that was lost; longer where a proxy says so."""
UNTOLD_S = 5.0
"""Where the service says that it is busy, and not for how long."""
JITTER = 0.1
"""Share of a pause by which it may be longer: those who were refused together do not come back together."""
OF_SLOW_CALLS = frozenset({Again.AS_TOLD, Again.NO_EDGE})
"""What a slow call is sent again after: nobody works on it, and nobody has done so in vain."""


class Patience:
    """What is left of one call's time. Moments are those of one steady clock, in s."""

    def __init__(self, total_s: float, now_s: float, *, unreachable_s: float = UNREACHABLE_S, slow: bool) -> None:
        self._deadline_s = now_s + total_s
        self._unreachable_s = unreachable_s
        self._slow = slow
        self._lost = False
        self._gone_since_s: float | None = None
        self._next_pause_s = FIRST_PAUSE_S

    def left_s(self, now_s: float) -> float:
        """Until the deadline; negative beyond it."""
        return self._deadline_s - now_s

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
        """Counted from the first of the tries in a row that have found no edge."""
        if self._gone_since_s is None:
            self._gone_since_s = now_s
        pause_s = max(self._next_pause_s, told_s)
        self._next_pause_s = min(2 * self._next_pause_s, LONGEST_PAUSE_S)
        return pause_s if now_s - self._gone_since_s + pause_s <= self._unreachable_s else None
