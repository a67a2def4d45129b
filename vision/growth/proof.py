"""What a finished picture proves: numbers, and whether they are good enough to show it to anybody.

A face parser is easily fooled: of a random barcode in hair colour it takes nearly all for hair, of a tile of real hair
the same, of flat paint half. So the picture is measured in several ways that fail for different fakes, against the
person's own hair: `vision.growth.proof_limits` says what each is for.

Frame: the canvas of `vision.growth.backend`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from vision.calls import GrowthProof
from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError
from vision.growth.proof_cover import bared_mm2
from vision.growth.proof_edge import FrontEdge, front_edge
from vision.growth.proof_limits import Broken, broken_by
from vision.growth.scene import INSIDE, Weights, canvas_shape, growable, hair, other_borders, px_per_mm, weights
from vision.growth.texture import Likeness, Mask, likeness, repetition
from vision.growth.texture_colour import DEPTHS_MM, Depths, colour_distance, lab_of
from vision.growth.texture_copy import copied
from vision.growth.texture_own import foreign
from vision.growth.texture_strands import Strands, strands
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
NO_HAIR, NEAR_SKIN_MM, BEHIND_MM = 0.2, 15.0, 3.0
"""Bare skin is what has less hair and is so near; nothing of it may be seen so far behind the new edge where own hair
was."""
MARGIN_MM = 6.0
"""Around all that is looked at, so that the widest scale sees the same as in the whole picture."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that was measured of one finished picture."""

    proof: GrowthProof
    """What is told to the caller."""
    edge: FrontEdge | None
    """By an assumed scale where the photo gave none; None without a front."""
    borders: tuple[FrontEdge, ...]
    """Of all free borders: the front, and what else of the region's border lies on bare skin."""
    own_edge: FrontEdge | None
    """Of the person's present hairline, where there is one."""
    likeness: Likeness
    strands: Strands
    foreign: float | None
    """None where there are too few pieces of hair to compare."""
    repetition: float
    copied: float
    bared_mm2: float | None
    """None where colours do not tell skin from hair."""

    @property
    def measured(self) -> dict[str, float | None]:
        """By the names of `vision.growth.proof_limits.PROOF_LIMITS`."""
        return {
            "outside_changed_pixels": self.proof.outside_changed_pixels,
            "hair_share": self.proof.hair_share,
            "edge_mm": max((border.distance_mm for border in self.borders), default=None),
            "edge_width_mm": min((at.width_mm for at in self.borders if at.width_mm is not None), default=None),
            "edge_raggedness": self._raggedness(),
            "delta_e": self.proof.delta_e,
            "fineness": self.strands.fineness,
            "contrast": self.strands.contrast,
            "locks": self.strands.locks,
            "coherence": self.strands.coherence,
            "turned_deg": self.strands.turned_deg,
            "orientation_ratio": self.likeness.orientation_ratio,
            "gradient_ratio": self.likeness.gradient_ratio,
            "foreign": self.foreign,
            "repetition": self.repetition,
            "copied": self.copied,
            "bared_mm2": self.bared_mm2,
        }

    def _raggedness(self) -> float | None:
        """Of the front, in that of the present hairline."""
        new, own = (None if edge is None else edge.ragged_mm for edge in (self.edge, self.own_edge))
        return None if new is None or not own else new / own


def convincing(evidence: Evidence) -> Broken | None:
    """The first number that breaks its limit; None where the picture may be shown."""
    return broken_by(evidence.measured)


def _nobody_watches() -> None:
    """For callers that cannot be given up."""


def prove(
    job: GrowthJob,
    finished: RgbImage,
    reach: Weights,
    parse: Callable[[RgbImage], ParsingMap],
    look: Callable[[], None] = _nobody_watches,
) -> Evidence:
    """Measure the finished picture (H, W, 3).

    `reach` (H, W) is what was composited by, `parse` the real parser on a picture of the canvas (see
    `vision.growth.scene.landmarks_of`), `look` raises when nobody waits any more. Raises `GrowthUnavailableError`
    (NO_OWN_HAIR) where the photo shows too little hair to compare with.
    """
    scene, scale = job.scene, px_per_mm(job.scene)
    before, after = lab_of(scene.rgb), lab_of(finished)
    light_before, light_after = (np.ascontiguousarray(lab[..., 0]) for lab in (before, after))
    own_hair = hair(scene)
    region, present = job.region >= INSIDE, own_hair >= INSIDE
    depth_mm, own_depth_mm = _depth(region | present) / scale, _depth(present) / scale
    grown = (reach >= PAINTED) & (depth_mm >= DEEP_MM)
    if not grown.any():
        grown = region
    own = _own(region, own_depth_mm, scale)
    look()
    found = likeness(light_before, light_after, grown, own, round(CELL_MM * scale))
    if found is None:
        raise GrowthUnavailableError(GrowthReason.NO_OWN_HAIR, "too little own hair to compare with")
    look()
    part = _around(grown | own, scale)
    weighed = _as_deep(grown[part], depth_mm[part], own[part], own_depth_mm[part])
    made_of = strands(light_before[part], light_after[part], *weighed, scale)
    look()
    is_foreign = foreign(light_before[part], light_after[part], grown[part], own[part], scale)
    look()
    comes_again = repetition(light_after, grown, scale)
    look()
    is_copy = copied(light_before[part], light_after[part], grown[part], own[part], scale)
    look()
    delta_e = colour_distance(
        Depths(after[part], grown[part], depth_mm[part]), Depths(before[part], own[part], own_depth_mm[part]), scale
    )
    look()
    skin = (own_hair < NO_HAIR) & (growable(scene) > INSIDE) & (_depth(~region) <= NEAR_SKIN_MM * scale)
    behind = (reach > 0) & (depth_mm >= BEHIND_MM)
    part = _around(grown | own | skin, scale)
    bared = bared_mm2(before[part], after[part], skin[part], own[part], behind[part], px_per_mm=scale)
    look()
    parsed_hair = _labelled_hair(parse(finished), canvas_shape(scene))
    look()
    edge = None if job.front is None else front_edge(after, parsed_hair, job.region, job.front, scale)
    others = [front_edge(after, parsed_hair, job.region, border, scale) for border in other_borders(job)]
    look()
    own_edge = None if scene.hairline is None else front_edge(before, own_hair, own_hair, scene.hairline, scale)
    changed = (finished != scene.rgb).any(axis=2) & (reach == 0)
    proof = GrowthProof(
        hair_share=float((job.region * parsed_hair).sum() / job.region.sum()),
        edge_distance_mm=None if edge is None or scene.mm_per_px is None else edge.distance_mm,
        delta_e=delta_e,
        orientation_distance=found.orientation,
        gradient_distance=found.gradient,
        outside_changed_pixels=int(np.count_nonzero(changed)),
    )
    return Evidence(
        proof=proof,
        edge=edge,
        borders=tuple(border for border in (edge, *others) if border is not None),
        own_edge=own_edge,
        likeness=found,
        strands=made_of,
        foreign=is_foreign,
        repetition=comes_again,
        copied=is_copy,
        bared_mm2=bared,
    )


def _around(mask: Mask, scale: float) -> tuple[slice, slice]:
    """The part of the canvas (rows, columns) that holds the mask, with a margin."""
    left, top, width, height = cv2.boundingRect(mask.astype(np.uint8))
    margin = round(MARGIN_MM * scale)
    return np.s_[max(0, top - margin) : top + height + margin, max(0, left - margin) : left + width + margin]


def _as_deep(grown: Mask, depth_mm: Weights, own: Mask, own_depth_mm: Weights) -> tuple[Weights, Weights]:
    """How much each pixel counts, (H, W) both: own hair of each depth as much as there is grown hair of that depth."""
    bins, own_bins = np.digitize(depth_mm, DEPTHS_MM), np.digitize(own_depth_mm, DEPTHS_MM)
    count, own_count = (np.bincount(which, minlength=len(DEPTHS_MM) + 1) for which in (bins[grown], own_bins[own]))
    known = own_count > 0
    if not (count * known).any():
        return grown.astype(np.float32), own.astype(np.float32)
    shares = count / np.maximum(own_count, 1)
    return (grown & known[bins]).astype(np.float32), np.where(own, shares[own_bins], 0).astype(np.float32)


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
