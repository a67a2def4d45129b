"""How far measurements move between two pictures of one face, and how wide their intervals are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bench.portraits.variants import mirrored_name
from vision.types import Measurement

NEAR_ZERO_MM = 10.0
"""Shorter values (a temple recession may be nil) move in percent of this."""
LEFT_OUT = ("fifths.right_outer", "fifths.left_outer", "brow_to_hairline", "temple_recession")
"""Not held to the widest interval asked for; see `bench.quality`."""


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


@dataclass(frozen=True)
class Width:
    """The widest half-width of one measurement's whole interval over some pictures."""

    pct: float
    """Of values that are not near nil; 0 where all are."""
    mm: float
    left_out: bool


def widest(pictures: Iterable[Mapping[str, Measurement]]) -> dict[str, Width]:
    """By name, the widest first; every measurement that has a value in millimetres on some picture."""
    found: dict[str, Width] = {}
    for measurements in pictures:
        for name, measurement in measurements.items():
            if measurement.mm is None or measurement.interval_mm is None:
                continue
            half_mm = measurement.interval_mm.high - measurement.mm
            pct = 100 * half_mm / measurement.mm if measurement.mm >= NEAR_ZERO_MM else 0.0
            before = found.get(name, Width(0.0, 0.0, name.startswith(LEFT_OUT)))
            found[name] = Width(max(before.pct, pct), max(before.mm, half_mm), before.left_out)
    return dict(sorted(found.items(), key=lambda item: -item[1].pct))


def apart(first: Mapping[str, Measurement], second: Mapping[str, Measurement]) -> dict[str, bool]:
    """By name, whether two photos of one person differ by more than both intervals (without population) allow."""
    return {
        name: abs(a.mm - b.mm) > np.hypot(a.interval_same_person_mm.high - a.mm, b.interval_same_person_mm.high - b.mm)
        for name, a in first.items()
        if a.mm is not None
        and a.interval_same_person_mm is not None
        and (b := second[name]).mm is not None
        and b.interval_same_person_mm is not None
    }
