"""When a call is sent once more, and when it is given up. Pure: time and chance come from outside.

Calls leave nothing behind but pictures that age, so that each may be sent again. Whether it should be is another
matter: only where nothing is wrong with it, and never beyond the time its caller has.
"""

from __future__ import annotations

from collections.abc import Mapping

from hairmesh.client.envelope import HairMeshError
from hairmesh.client.errors import RefusedError, TransportError, UnreachableError, may_ask_again

PAUSES_S: Mapping[type[TransportError], tuple[float, ...]] = {
    UnreachableError: (0.5, 1.0, 2.0, 4.0),  # an edge restarts in a few seconds; a wrong address is said soon after
    TransportError: (0.5,),  # the edge may have died of it, or a kept connection was closed as it was used
}
"""Before each further try after a failure of that kind, in s; longer where a proxy says so. Any other kind is final."""
UNTOLD_S = 5.0
"""Where the service says that it is busy, and not for how long."""
JITTER = 0.1
"""Share of a pause by which it may be longer: those who were refused together do not come back together."""


class Patience:
    """What is left of one call's time. Moments are those of one steady clock, in s."""

    def __init__(self, total_s: float, now_s: float) -> None:
        self._deadline_s = now_s + total_s
        self._failures: dict[type[TransportError], int] = {}

    def left_s(self, now_s: float) -> float:
        """Until the deadline; negative beyond it."""
        return self._deadline_s - now_s

    def pause_s(self, error: HairMeshError, now_s: float, chance: float) -> float | None:
        """How long to wait before the next try; None: there is none. `chance` is from 0 to 1."""
        pause_s = self._wanted_s(error)
        if pause_s is None:
            return None
        pause_s *= 1 + JITTER * chance
        return pause_s if pause_s < self.left_s(now_s) else None

    def _wanted_s(self, error: HairMeshError) -> float | None:
        if isinstance(error, RefusedError):
            return (error.retry_after_s or UNTOLD_S) if may_ask_again(error) else None
        if not isinstance(error, TransportError) or type(error) not in PAUSES_S:
            return None
        kind = type(error)
        failures = self._failures.get(kind, 0)
        self._failures[kind] = failures + 1
        pauses_s = PAUSES_S[kind]
        return max(pauses_s[failures], error.retry_after_s or 0.0) if failures < len(pauses_s) else None
