"""Where decisions gather while one event is handled."""

from __future__ import annotations

from edge.pool.events import Decision


class Outbox:
    """Decisions in the order they were made."""

    def __init__(self) -> None:
        self._decisions: list[Decision] = []

    def add(self, decision: Decision) -> None:
        """To be carried out after this event."""
        self._decisions.append(decision)

    def empty(self) -> list[Decision]:
        """Take everything out."""
        decisions, self._decisions = self._decisions, []
        return decisions
