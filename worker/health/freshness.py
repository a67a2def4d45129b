"""How old evidence is, counted only while this process was awake. Pure."""

from __future__ import annotations


class Freshness:
    """Told of every beat. One that comes very late (suspended machine) proves nothing about the age of any evidence.

    Late beats one after the other are those of a slow machine: there evidence ages, or it would never be too old.
    """

    def __init__(self, *, started_s: float, late_after_s: float) -> None:
        self._late_after_s = late_after_s
        self._awake_since_s = started_s
        self._beat_s = started_s
        self._was_late = False

    def beat(self, now_s: float) -> None:
        """The process is awake at `now_s`."""
        late = now_s - self._beat_s > self._late_after_s
        if late and not self._was_late:
            self._awake_since_s = now_s
        self._beat_s, self._was_late = now_s, late

    def age_s(self, at_s: float | None, now_s: float) -> float:
        """Age of evidence gathered at `at_s`; of evidence that never came (None), how long it is missing."""
        return now_s - (self._awake_since_s if at_s is None else max(at_s, self._awake_since_s))
