"""The last requests that failed through no fault of their client's, for operators: in memory, bounded.

Nothing of a client is kept but the request id, which it was given and may read out on the telephone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence

from edge.errors import SYSTEM

KEPT = 50
_FACTS = ("request_id", "route", "http_status", "code", "reason", "worker", "attempts", "duration_ms")


class RecentErrors:
    """The newest `KEPT` of them; a restart of the edge forgets them, the request log does not."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, Mapping[str, object]]] = deque(maxlen=KEPT)

    def note(self, line: Mapping[str, object]) -> None:
        """Look at a request's line for the request log, at its end. Costs less than 1 µs for one that went well."""
        if line["code"] == SYSTEM or (isinstance(status := line["http_status"], int) and status >= 500):
            self._kept.append((time.monotonic(), {name: line[name] for name in _FACTS}))

    def newest_first(self, now_s: float) -> Sequence[Mapping[str, object]]:
        """What is kept, each with its age at `now_s` (of `time.monotonic`)."""
        return [{"age_s": round(now_s - at_s, 1), **facts} for at_s, facts in reversed(self._kept)]
