"""Every number of every call, by name, so that it can be followed from one picture of a face to the next.

A call's numbers are one function of what is known of a photo. They are millimetres, square centimetres and the like,
which the picture's size, place and side leave as they are. Left out is what a crop changes by itself: the areas of
hair, skin and neck, and how far down the hair reaches, end where the picture ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bench.portraits.invariance import NEAR_ZERO_MM
from bench.portraits.variants import mirrored_name
from vision.calls import DesignOptions, FacePart, MaskOptions
from vision.describe import describe
from vision.designs import design_hairlines
from vision.masks import make_masks
from vision.special_points import special_points
from vision.types import Facts

Numbers = Mapping[str, float]

WHOLE_PARTS = (FacePart.FOREHEAD, FacePart.BROWS, FacePart.EYES, FacePart.NOSE, FacePart.LIPS)
CUT_OFF = ("hair.length",)
SMALL_PICTURE_PX = 64


def of_measure(facts: Facts) -> Numbers:
    """Lengths in mm."""
    return {name: value.mm for name, value in facts.measurements.items() if value.mm is not None}


def of_ratios(facts: Facts) -> Numbers:
    """Ratios in percent."""
    return {name: 100 * value.ratio for name, value in facts.measurements.items() if value.ratio is not None}


def of_design_heights(facts: Facts) -> Numbers:
    """Height of every style in mm."""
    designs = design_hairlines(facts, DesignOptions())
    return {design.style.value: design.height.mm for design in designs if design.height.mm is not None}


def of_design_areas(facts: Facts) -> Numbers:
    """Area of every style in square mm; its grafts are that times the density."""
    designs = design_hairlines(facts, DesignOptions())
    return {design.style.value: 100 * design.area_cm2 for design in designs if design.area_cm2 is not None}


def of_special_points(facts: Facts) -> Numbers:
    """Distances of every point from the middle of the pupils and from the menton, in mm: they say where it lies."""
    mm_per_px = facts.scale.mm_per_px
    if mm_per_px is None:
        return {}
    at = {name: np.array([point.x_px, point.y_px]) for name, point in special_points(facts.landmarks).items()}
    anchors = {"from_eyes": (at["left_pupil"] + at["right_pupil"]) / 2, "from_chin": at["menton"]}
    return {
        f"point.{name}.{anchor}": mm_per_px * float(np.linalg.norm(place - origin))
        for name, place in at.items()
        for anchor, origin in anchors.items()
    }


def of_features(facts: Facts) -> Numbers:
    """What every feature was decided by: ratios in percent, and degrees."""
    features = describe(facts.photo, facts.landmarks, facts.parsing, facts.hairline).features
    return {
        f"{name}.{ratio}": value if ratio.endswith("_deg") else 100 * value
        for name, feature in features.items()
        for ratio, value in feature.ratios.items()
        if name not in CUT_OFF
    }


def of_masks(facts: Facts) -> Numbers:
    """Areas in square mm."""
    masks = make_masks(facts, MaskOptions(parts=WHOLE_PARTS, max_output_side_px=SMALL_PICTURE_PX))
    return {mask.part.value: mask.area_mm2 for mask in masks if mask.area_mm2 is not None}


@dataclass(frozen=True)
class Call:
    """One call whose numbers are followed."""

    numbers: Callable[[Facts], Numbers]
    near_zero: float = NEAR_ZERO_MM
    """What is smaller moves in percent of this."""


CALLS: Mapping[str, Call] = {
    "measure, mm": Call(of_measure),
    "measure, ratios": Call(of_ratios),
    "hairlines, heights": Call(of_design_heights),
    "hairlines, areas": Call(of_design_areas, near_zero=500.0),
    "masks, areas": Call(of_masks, near_zero=100.0),
    "special points": Call(of_special_points),
    "features": Call(of_features),
}
"""Half a millimetre along a whole hairline is 50 square mm: an area below 5 square cm moves in percent of that."""


def moved_pct(call: Call, before: Numbers, after: Numbers, *, mirrored: bool) -> dict[str, float]:
    """By name, how far each number that both have is from where it was."""
    moved = {}
    for name, first in before.items():
        second = after.get(mirrored_name(name) if mirrored else name, np.nan)
        if np.isfinite(second):
            moved[name] = 100 * abs(second - first) / max(abs(first), call.near_zero)
    return moved
