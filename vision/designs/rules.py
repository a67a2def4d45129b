"""Surgical rules a design keeps or breaks, by name. What cannot be judged on a photo is left out, never called kept.

One table per limit, and one of where they come from. Where the sex was not said, a rule is broken by what breaks it for
both. What a publication says and what this project chose is kept apart:

    Shapiro    R. and P. Shapiro, Hairline design and frontal hairline restoration, Facial Plast Surg Clin North Am
               (2013): not too low; the temporal angle on the lateral canthus vertical, never flattened or filled in;
               its 7 to 10 cm above the glabella were read in summaries
    Jung       Jung and Yun, Total hairline correction in female patient, Arch Aesthetic Plast Surg 20 (2014):
               foreheads of Korean women 6.38 cm; and, from Nusbaum and Fuentefria, Naturally occurring female hairline
               patterns, Dermatol Surg (2009): the temporal point within 1 cm of the lateral canthus vertical
    Kashiyama  Plast Reconstr Surg Glob Open 9 (2021) e3751: Japanese 6.65 cm (men), 6.2 cm (women)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
"""Mid-frontal point above the glabella. Men's upper limit is Shapiro's; his lower one, 7 cm, lies above the mean of
Kashiyama's men, so ours is a centimetre lower. Women's are our own, about the means of Jung and Kashiyama."""
UPPER_COURT: Limits = (0.80, 1.15)
"""Front without its peak over middle court. Our own, about the canon (1); `vision.norms.COURTS` have 0.95 (men) and
0.85 (women)."""
CANTHUS_MM: Limits = (-10.0, 10.0)
"""The temporal angle outside (positive) or inside the lateral canthus vertical: Jung, after Nusbaum, of women's
temporal points; taken for men's angles too."""
TEMPORAL_ANGLE_DEG: Mapping[Sex, Limits] = {
    Sex.FEMALE: (90.0, 165.0),
    Sex.MALE: (80.0, 140.0),
    Sex.UNSPECIFIED: (80.0, 165.0),
}
"""Between front and temple's line. The degrees are our own; that it is never flattened in men is Shapiro's rule."""
TEMPLE_RISE: Mapping[Sex, Limits] = {
    Sex.FEMALE: (-0.45, 0.05),
    Sex.MALE: (-0.20, 0.30),
    Sex.UNSPECIFIED: (-0.45, 0.30),
}
"""Of the temporal angle above the mid-frontal point, over its height. Our own: about level or rising in men, falling in
women."""
ON_HAIR_MM = 2.0
"""A design may lie so far inside the present hair, or as far as the hair's edge is uncertain: grafts take none away.
Our own."""
SOURCES: Mapping[str, str] = {
    "glabella_distance": "men up to 10 cm: Shapiro and Shapiro (2013); the other limits are our own",
    "upper_court": "our own, about the canon of equal thirds",
    "temporal_angle_on_canthus": "Nusbaum and Fuentefria (2009), after Jung and Yun (2014)",
    "temporal_angle": "our own, for: never flattened (Shapiro and Shapiro, 2013)",
    "temple_rise": "our own",
    "no_hair_removed": "our own",
}
"""Of the limits, by rule; part of the answer."""
PEAK_WITHIN = 0.4
"""A central peak lies nearer to the midline than this, in face coordinates; the temporal angle further out."""
ROUNDING = 1e-6
"""A design set on a limit keeps it."""


@dataclass(frozen=True, slots=True)
class MmScale:
    """How face coordinates become millimetres."""

    unit_mm: float
    uncertain_share: float
    """Half of the 95 % interval of a length, as a share of it."""


def judge(
    curve: Points, shape: Shape, sex: Sex, present: PresentLine, *, middle_court: float, scale: MmScale | None
) -> tuple[DesignRule, ...]:
    """All rules that can be judged; `curve` (N, 2) in face coordinates. Of the two temples the worse one counts."""
    middle = len(curve) // 2
    mid = float(curve[middle, 1])
    halves = [curve[middle:], curve[middle::-1] * (-1, 1)]
    corners = [half[_corner(half)] for half in halves]
    angles = [_angle_deg(half, _corner(half)) for half in halves]
    front = _rule("upper_court", (mid + shape.peak_depth) / middle_court, UPPER_COURT, "ratio")
    found = [
        _worst("temporal_angle", angles, TEMPORAL_ANGLE_DEG[sex], "deg"),
        _worst("temple_rise", [(float(corner[1]) - mid) / mid for corner in corners], TEMPLE_RISE[sex], "ratio"),
    ]
    if scale is None:
        return (front, *found)
    unit_mm, share = scale.unit_mm, scale.uncertain_share
    low, high = GLABELLA_MM[sex]
    # A peak is the front's ornament: the front keeps its distance, the peak may reach below it.
    height = _rule("glabella_distance", mid * unit_mm, (low - shape.peak_depth * unit_mm, high), "mm", share)
    aside = [(float(corner[0]) - 1) * unit_mm for corner in corners]
    found = [height, front, _worst("temporal_angle_on_canthus", aside, CANTHUS_MM, "mm", share), *found]
    depth = depth_in_hair(curve, present)
    if not np.isnan(depth).all():
        most = max(0.0, float(np.nanmax(depth))) * unit_mm
        limit = max(ON_HAIR_MM, Z95 * present.edge_sd * unit_mm)
        found.append(_rule("no_hair_removed", most, (0.0, limit), "mm", share))
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


def _rule(name: str, value: float, limits: Limits, unit: str, uncertain_share: float = 0.0) -> DesignRule:
    low, high = limits
    kept = low - ROUNDING <= value <= high + ROUNDING
    half_width = uncertain_share * abs(value)
    certain = not any(abs(value - limit) < half_width for limit in limits)
    return DesignRule(name, kept, value, low, high, unit, certain=certain, source=SOURCES[name])


def _worst(name: str, values: Sequence[float], limits: Limits, unit: str, uncertain_share: float = 0.0) -> DesignRule:
    """The rule for the value that lies farthest out."""
    middle = sum(limits) / 2
    return _rule(name, max(values, key=lambda value: abs(value - middle)), limits, unit, uncertain_share)


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
