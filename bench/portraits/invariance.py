"""How far measurements move between two pictures of one face, against the intervals they come with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.portraits.variants import mirrored_name
from vision.types import Measurement

NEAR_ZERO_MM = 10.0
"""Shorter values (a temple recession may be nil) move in percent of this."""


@dataclass(frozen=True)
class Movement:
    """One measurement in two pictures."""

    name: str
    before_mm: float
    after_mm: float
    half_width_mm: float
    """Of the first one's interval without the population term."""

    @property
    def pct(self) -> float:
        """How far it moved."""
        return 100 * abs(self.after_mm - self.before_mm) / max(self.before_mm, NEAR_ZERO_MM)

    @property
    def outside(self) -> bool:
        """Whether it left the interval."""
        return abs(self.after_mm - self.before_mm) > self.half_width_mm


def movements(
    before: Mapping[str, Measurement], after: Mapping[str, Measurement], *, mirrored: bool = False
) -> tuple[list[Movement], list[str]]:
    """Every mm value of the first picture in the second one; and the names of those it does not give any more."""
    moved, gone = [], []
    for name, first in before.items():
        second = after[mirrored_name(name) if mirrored else name]
        if first.mm is None or first.interval_same_person_mm is None:
            continue
        if second.mm is None:
            gone.append(name)
            continue
        moved.append(Movement(name, first.mm, second.mm, first.interval_same_person_mm.high - first.mm))
    return moved, gone
