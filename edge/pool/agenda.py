"""What is to happen when, and the one alarm clock of the pool."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from edge.pool.events import Wake
from edge.pool.outbox import Outbox

Act = Callable[[float], None]
"""Takes the moment, in s. It must look whether there is still a reason for it: nothing is ever taken off the agenda."""


def look_again(_: float) -> None:
    """For those who only need the pool to look at its queue at a certain moment."""


class Agenda:
    """Acts by the moment they are due; those of one moment in the order they were planned."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._acts: list[tuple[float, int, Act]] = []
        self._planned = 0
        self._alarm_s = math.inf
        """The moment for which a `Tick` was asked for."""

    def at(self, at_s: float, act: Act) -> None:
        """Do this at that moment, or with the first event after it."""
        self._planned += 1
        heapq.heappush(self._acts, (at_s, self._planned, act))
        if at_s < self._alarm_s:
            self._alarm_s = at_s
            self._outbox.add(Wake(at_s))

    def run(self, now_s: float) -> None:
        """Do what is due."""
        acts = self._acts
        while acts and acts[0][0] <= now_s:
            heapq.heappop(acts)[2](now_s)

    def woken(self, now_s: float) -> None:
        """The alarm has rung: do what is due, and set it anew."""
        self._alarm_s = -math.inf  # not for what is planned on the way
        self.run(now_s)
        self._alarm_s = math.inf
        if self._acts:
            self._alarm_s = self._acts[0][0]
            self._outbox.add(Wake(self._alarm_s))
