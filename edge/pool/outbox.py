"""Where decisions gather while one event is handled, and the one alarm clock of the pool."""

from __future__ import annotations

import math

from edge.pool.events import Decision, Wake


class Outbox:
    """Decisions in the order they were made."""

    def __init__(self) -> None:
        self._decisions: list[Decision] = []
        self._alarm_s = math.inf

    def add(self, decision: Decision) -> None:
        """To be carried out after this event."""
        self._decisions.append(decision)

    def wake(self, at_s: float) -> None:
        """Have a `Tick` at this moment, or before it: one alarm, the earliest asked for."""
        if at_s < self._alarm_s:
            self._alarm_s = at_s
            self._decisions.append(Wake(at_s))

    def woken(self) -> None:
        """The alarm has rung; whoever still waits for a moment asks again."""
        self._alarm_s = math.inf

    def empty(self) -> list[Decision]:
        """Take everything out."""
        decisions, self._decisions = self._decisions, []
        return decisions
