"""How old evidence is, counted only while this process was awake. Pure."""

from __future__ import annotations

from collections import deque

MAX_SLEEPS = 4096
"""So many are remembered. Those of an hour in which every beat is late; evidence that is older is too old."""


class Freshness:
    """Told of every beat. What one comes too late by (suspended machine) is no age of any evidence.

    Only that is taken off: a machine that is late again and again would else never find evidence too old.
    """

    def __init__(self, *, started_s: float, late_after_s: float) -> None:
        self._late_after_s = late_after_s
        self._started_s = started_s
        self._beat_s = started_s
        self._sleeps: deque[tuple[float, float]] = deque(maxlen=MAX_SLEEPS)
        """When each ended, and how long it was."""

    def beat(self, now_s: float) -> None:
        """The process is awake at `now_s`."""
        slept_s = now_s - self._beat_s - self._late_after_s
        if slept_s > 0:
            self._sleeps.append((now_s, slept_s))
        self._beat_s = now_s

    def age_s(self, at_s: float | None, now_s: float) -> float:
        """Age of evidence gathered at `at_s`; of evidence that never came (None), how long it is missing."""
        since_s = self._started_s if at_s is None else at_s
        return now_s - since_s - sum(slept_s for ended_s, slept_s in self._sleeps if ended_s > since_s)
