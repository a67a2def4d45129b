"""When this process stood still: what it lost over that is no evidence against a worker.

Meanwhile workers answered and their answers were not read; they pinged, heard nothing, and closed the connection.
"""

from __future__ import annotations

import math

from edge.pool import config as fixed
from edge.pool.events import Woke


class Sleep:
    """The last standstill that there was a word about."""

    def __init__(self) -> None:
        self._began_s = -math.inf
        self.woke_s = -math.inf
        """When it was over."""
        self._forgiven: set[str] = set()
        """Endpoints that it has cost a call."""

    def over(self, event: Woke) -> None:
        """There was another one."""
        self._began_s, self.woke_s = event.now_s - event.slept_s, event.now_s
        self._forgiven.clear()

    def covers(self, moment_s: float) -> bool:
        """Whether it fell into the last standstill."""
        return self._began_s <= moment_s <= self.woke_s

    def forgives(self, target: str, now_s: float) -> bool:
        """Whether a call that lost its connection to `target` lost it by the standstill. It does so once: each endpoint
        has one connection and one call, and whatever breaks after that broke anew.
        """
        if now_s - self.woke_s > fixed.WAKING_S or target in self._forgiven:
            return False
        self._forgiven.add(target)
        return True
