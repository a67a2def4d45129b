"""What is to happen when, and the one alarm clock of the pool."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from edge.pool import config as fixed
from edge.pool.events import Wake
from edge.pool.outbox import Outbox

Act = Callable[[float], None]
"""Takes the moment, in s. It must look whether there is still a reason for it: most are never taken off the agenda."""


def look_again(_: float) -> None:
    """For those who only need the pool to look at its queue at a certain moment."""


class Alarm:
    """One entry of the agenda."""

    __slots__ = ("act",)

    def __init__(self, act: Act) -> None:
        self.act: Act | None = act
        """None: done, or taken off."""


class Agenda:
    """Acts by the moment they are due; those of one moment in the order they were planned."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._planned = 0
        self._off = 0
        """How many of them were taken off, and still stand there."""
        self._alarm_s = math.inf
        """The moment for which a `Tick` was asked for."""

    def __len__(self) -> int:
        """Entries, those taken off and still there among them."""
        return len(self._alarms)

    def at(self, at_s: float, act: Act) -> Alarm:
        """Do this at that moment, or with the first event after it."""
        self._planned += 1
        alarm = Alarm(act)
        heapq.heappush(self._alarms, (at_s, self._planned, alarm))
        if at_s < self._alarm_s:
            self._alarm_s = at_s
            self._outbox.add(Wake(at_s))
        return alarm

    def take_off(self, alarm: Alarm) -> None:
        """It need not happen, if it has not: what it knew is let go at once, its entry when there are many such."""
        if alarm.act is None:
            return
        alarm.act = None
        self._off += 1
        if self._off > max(fixed.ALARMS_OFF_MAX, len(self._alarms) // 2):
            self._alarms = [entry for entry in self._alarms if entry[2].act is not None]
            heapq.heapify(self._alarms)
            self._off = 0

    def run(self, now_s: float) -> None:
        """Do what is due."""
        while self._alarms and self._alarms[0][0] <= now_s:  # an act may take others off
            alarm = heapq.heappop(self._alarms)[2]
            act, alarm.act = alarm.act, None
            if act is None:
                self._off -= 1
            else:
                act(now_s)

    def woken(self, now_s: float) -> None:
        """The alarm has rung: do what is due, and set it anew."""
        self._alarm_s = -math.inf  # not for what is planned on the way
        self.run(now_s)
        self._alarm_s = math.inf
        if self._alarms:
            self._alarm_s = self._alarms[0][0]
            self._outbox.add(Wake(self._alarm_s))
