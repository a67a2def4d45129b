"""What a finished picture proves: numbers, and whether they are good enough to show it to anybody.

A face parser is easily fooled: of a random barcode in hair colour it takes nearly all for hair, of a tile of real hair
the same, of flat paint half. So the picture is measured in several ways that fail for different fakes, against the
person's own hair: `PROOF_LIMITS` says what each is for.

Frame: the canvas of `vision.growth.backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np

from vision.calls import GrowthProof
from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError
from vision.growth.composite import INSIDE
from vision.growth.proof_edge import FrontEdge, front_edge
from vision.growth.scene import Weights, canvas_shape, hair, px_per_mm, weights
from vision.growth.texture import Likeness, Mask, likeness, repetition
from vision.growth.texture_colour import Depths, colour_distance, lab_of
from vision.types import Label, ParsingMap, RgbImage

DEEP_MM = 1.5
"""Hair is compared from so far behind its edge: nearer, skin shines through by right."""
PAINTED = 0.9
"""What takes so much of the backend's picture is its doing, also where it lies over hair that was there before."""
NEAR_MM = 30.0
"""The person's own hair is taken from so far around the region; from everywhere where there is too little."""
CELL_MM = 8.0
"""Side of the cells in which directions and gradients are compared."""
LEAST_OWN_CELLS = 8


class Limit(NamedTuple):
    """One number of the evidence and what it may be."""

    low: float
    high: float
    why: str


PROOF_LIMITS: Mapping[str, Limit] = {
    "outside_changed_pixels": Limit(0, 0, "the photo itself is never touched"),
    "hair_share": Limit(0.6, 1.0, "a face parser takes it for hair; a forehead as it was has next to none"),
    "edge_mm": Limit(0.0, 4.0, "hair begins where it was asked for"),
    "delta_e": Limit(0.0, 10.0, "own hair moved there by hand has up to 6, another colour 20"),
    "orientation_ratio": Limit(0.0, 1.9, "own hair moved there by hand has 0.6 to 1.8, a barcode 2.0 and more"),
    "gradient_ratio": Limit(0.0, 1.8, "own hair moved there by hand has 0.4 to 1.4, flat paint mostly 2.3 and more"),
    "repetition": Limit(0.0, 0.8, "own hair moved there by hand has 0.1 to 0.7, a tile 0.8 to 1"),
}
"""By the names of `Evidence.measured`. What is said of own hair and fakes was measured by `bench/growth.py`: ten
people, three designs each. In regions of less than half a square centimetre fakes may pass."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that was measured of one finished picture."""

    proof: GrowthProof
    """What is told to the caller."""
    edge: FrontEdge | None
    """By an assumed scale where the photo gave none; None without a front."""
    own_edge: FrontEdge | None
    """Of the person's present hairline, where there is one."""
    likeness: Likeness
    repetition: float

    @property
    def measured(self) -> Mapping[str, float | None]:
        """By the names of `PROOF_LIMITS`."""
        return {
            "outside_changed_pixels": self.proof.outside_changed_pixels,
            "hair_share": self.proof.hair_share,
            "edge_mm": None if self.edge is None else self.edge.distance_mm,
            "delta_e": self.proof.delta_e,
            "orientation_ratio": self.likeness.orientation_ratio,
            "gradient_ratio": self.likeness.gradient_ratio,
            "repetition": self.repetition,
        }


def convincing(evidence: Evidence) -> str | None:
    """The first number that breaks its limit, by name; None where the picture may be shown."""
    for name, value in evidence.measured.items():
        limit = PROOF_LIMITS[name]
        if value is not None and not limit.low <= value <= limit.high:
            return name
    return None


def prove(job: GrowthJob, finished: RgbImage, reach: Weights, parse: Callable[[RgbImage], ParsingMap]) -> Evidence:
    """Measure the finished picture (H, W, 3).

    `reach` (H, W) is what was composited by, `parse` the real parser on a picture of the canvas (see
    `vision.growth.scene.landmarks_of`). Raises `GrowthUnavailableError` (NO_OWN_HAIR) where the photo shows too little
    hair to compare with.
    """
    scene, scale = job.scene, px_per_mm(job.scene)
    before, after = lab_of(scene.rgb), lab_of(finished)
    own_hair = hair(scene)
    region, present = job.region >= INSIDE, own_hair >= INSIDE
    depth_mm, own_depth_mm = _depth(region | present) / scale, _depth(present) / scale
    grown = (reach >= PAINTED) & (depth_mm >= DEEP_MM)
    if not grown.any():
        grown = region
    own = _own(region, own_depth_mm, scale)
    found = likeness(before[..., 0], after[..., 0], grown, own, round(CELL_MM * scale))
    if found is None:
        raise GrowthUnavailableError(GrowthReason.NO_OWN_HAIR, "too little own hair to compare with")

    parsed = parse(finished)
    parsed_hair = _labelled_hair(parsed, canvas_shape(scene))
    edge = None if job.front is None else front_edge(after, parsed_hair, job.region, job.front, scale)
    own_edge = None if scene.hairline is None else front_edge(before, own_hair, own_hair, scene.hairline, scale)
    changed = (finished != scene.rgb).any(axis=2) & (reach == 0)
    proof = GrowthProof(
        hair_share=float((job.region * parsed_hair).sum() / job.region.sum()),
        edge_distance_mm=None if edge is None or scene.mm_per_px is None else edge.distance_mm,
        delta_e=colour_distance(Depths(after, grown, depth_mm), Depths(before, own, own_depth_mm), scale),
        orientation_distance=found.orientation,
        gradient_distance=found.gradient,
        outside_changed_pixels=int(np.count_nonzero(changed)),
    )
    return Evidence(
        proof=proof,
        edge=edge,
        own_edge=own_edge,
        likeness=found,
        repetition=repetition(after[..., 0], grown, scale),
    )


def _own(region: Mask, depth_mm: Weights, scale: float) -> Mask:
    """(H, W), the person's own hair: near the region, or all of it where there is too little."""
    own: Mask = ~region & (depth_mm >= DEEP_MM)
    near = own & (_depth(~region) <= NEAR_MM * scale)
    return near if np.count_nonzero(near) >= LEAST_OWN_CELLS * (CELL_MM * scale) ** 2 else own


def _depth(mask: Mask) -> Weights:
    """(H, W), distance to the nearest pixel outside the mask."""
    inside = mask.astype(np.uint8)
    return np.asarray(cv2.distanceTransform(inside, cv2.DIST_L2, cv2.DIST_MASK_PRECISE), dtype=np.float32)


def _labelled_hair(parsing: ParsingMap, shape: tuple[int, int]) -> Weights:
    """(H, W), 1 where hair is the most probable class, smooth at the border."""
    labelled = np.where(parsing.labels == Label.HAIR, 255, 0).astype(np.uint8)
    height, width = shape
    return weights(np.asarray(cv2.warpAffine(labelled, parsing.photo_from_map, (width, height)), dtype=np.uint8))
