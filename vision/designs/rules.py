"""Surgical rules a design keeps or breaks, by name. What cannot be judged on a photo is left out, never called kept.

One table per limit. Where the sex was not said, a rule is broken by what breaks it for both. Sources:

    Shapiro    R. and P. Shapiro, Facial Plast Surg Clin North Am 21 (2013) 351: the line not too low, 7 to 10 cm above
               the glabella in men; the temporal angle on the lateral canthus vertical, never flattened
    Nusbaum    Nusbaum and Fuentefria, Dermatol Surg 35 (2009) 907: women's lines 5.5 cm above the glabella on average,
               the temporal point within 1 cm of the lateral canthus vertical
    Jung       Arch Aesthetic Plast Surg 21 (2015) 53: Korean women 6.4 cm; upper to lower court 0.9 to 1 preferred
    Kashiyama  Plast Reconstr Surg Glob Open 9 (2021) e3751: Japanese 6.65 cm (men), 6.2 cm (women)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vision.calls import DesignRule, Sex
from vision.designs.area import Z95
from vision.designs.catalogue import Shape
from vision.designs.forehead import polar
from vision.designs.present import PresentLine
from vision.head import Array
from vision.types import Points

Limits = tuple[float, float]

GLABELLA_MM: Mapping[Sex, Limits] = {
    Sex.FEMALE: (50.0, 70.0),
    Sex.MALE: (60.0, 100.0),
    Sex.UNSPECIFIED: (50.0, 100.0),
}
"""Mid-frontal point above the glabella: Nusbaum and Jung; Shapiro, whose 7 cm lie above the mean of Kashiyama's men."""
UPPER_COURT: Limits = (0.80, 1.15)
"""Front without its peak over middle court. The canon is 1; `vision.norms.COURTS` have 0.95 (men) and 0.85 (women)."""
CANTHUS_MM: Limits = (-10.0, 10.0)
"""The temporal angle outside (positive) or inside the lateral canthus vertical: Nusbaum."""
TEMPORAL_ANGLE_DEG: Mapping[Sex, Limits] = {
    Sex.FEMALE: (90.0, 165.0),
    Sex.MALE: (80.0, 140.0),
    Sex.UNSPECIFIED: (80.0, 165.0),
}
"""Between front and temple's line. In men never flattened (Shapiro); in women it may be round, not filled (Nusbaum)."""
TEMPLE_RISE: Mapping[Sex, Limits] = {
    Sex.FEMALE: (-0.45, 0.05),
    Sex.MALE: (-0.20, 0.30),
    Sex.UNSPECIFIED: (-0.45, 0.30),
}
"""Of the temporal angle above the mid-frontal point, over its height: about level or rising in men (Shapiro)."""
ON_HAIR_MM = 2.0
"""A design may lie so far inside the present hair, or as far as the hair's edge is uncertain: grafts take none away."""
PEAK_WITHIN = 0.4
"""A central peak lies nearer to the midline than this, in face coordinates; the temporal angle further out."""
ROUNDING = 1e-6
"""A design set on a limit keeps it."""


def judge(
    curve: Points, shape: Shape, sex: Sex, present: PresentLine, *, middle_court: float, unit_mm: float | None
) -> tuple[DesignRule, ...]:
    """All rules that can be judged; `curve` (N, 2) in face coordinates, lengths in their unit of `unit_mm`."""
    mid = float(curve[len(curve) // 2, 1])
    left = curve[len(curve) // 2 :]
    corner = _corner(left)
    found = [
        _rule("upper_court", (mid + shape.peak_depth) / middle_court, UPPER_COURT, "ratio"),
        _rule("temporal_angle", _angle_deg(left, corner), TEMPORAL_ANGLE_DEG[sex], "deg"),
        _rule("temple_rise", (float(left[corner, 1]) - mid) / mid, TEMPLE_RISE[sex], "ratio"),
    ]
    if unit_mm is None:
        return tuple(found)
    low, high = GLABELLA_MM[sex]
    # A peak is the front's ornament: the front keeps its distance, the peak may reach below it.
    height = _rule("glabella_distance", mid * unit_mm, (low - shape.peak_depth * unit_mm, high), "mm")
    canthus = _rule("temporal_angle_on_canthus", (float(left[corner, 0]) - 1) * unit_mm, CANTHUS_MM, "mm")
    found = [height, *found[:1], canthus, *found[1:]]
    depth = depth_in_hair(curve, present)
    if not np.isnan(depth).all():
        most = max(0.0, float(np.nanmax(depth))) * unit_mm
        found.append(_rule("no_hair_removed", most, (0.0, max(ON_HAIR_MM, Z95 * present.edge_sd * unit_mm)), "mm"))
    return tuple(found)


def on_hair(curve: Points, present: PresentLine) -> NDArray[np.bool_]:
    """(N,), where a design lies further inside the present hair than the rule `no_hair_removed` allows for."""
    with np.errstate(invalid="ignore"):
        inside: NDArray[np.bool_] = depth_in_hair(curve, present) > Z95 * present.edge_sd
    return inside


def depth_in_hair(curve: Points, present: PresentLine) -> Array:
    """(N,), how far a design lies inside the present hair (negative: before it); NaN where no hair is seen."""
    angle_deg, radius = polar(curve)
    return np.where(present.hair_at(angle_deg), radius - present.radius_at(angle_deg), np.nan)


def _rule(name: str, value: float, limits: Limits, unit: str) -> DesignRule:
    low, high = limits
    kept = low - ROUNDING <= value <= high + ROUNDING
    return DesignRule(name=name, kept=kept, value=value, low=low, high=high, unit=unit)


def _corner(half: Points) -> int:
    """Index of the temporal angle: where half a curve, but for its peak, is furthest from the line between its ends."""
    first = int(np.searchsorted(half[:, 0], PEAK_WITHIN))
    chord = half[-1] - half[first]
    offset = half[first:] - half[first]
    return first + int(np.argmax(chord[0] * offset[:, 1] - chord[1] * offset[:, 0]))


def _angle_deg(half: Points, corner: int) -> float:
    """At the corner, between the front half way to the midline and the end in the temple."""
    at = half[corner]
    front = np.array([at[0] / 2, np.interp(at[0] / 2, half[:, 0], half[:, 1])])
    arms = [(end - at) / np.linalg.norm(end - at) for end in (front, half[-1])]
    return float(np.degrees(np.arccos(np.clip(arms[0] @ arms[1], -1, 1))))
