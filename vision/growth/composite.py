"""Putting grown hair back into the photo: outside the feathered region every pixel stays the input's.

Frame: the canvas of `vision.growth.backend`.
"""

from __future__ import annotations

import cv2
import numpy as np

from vision.growth.backend import GrowthJob
from vision.growth.scene import INSIDE, Weights, growable, hair, px_per_mm, ramp
from vision.types import RgbImage

INTO_SKIN_MM = 4.5
"""Single strands reach so far beyond the region into bare skin."""
INTO_HAIR_MM = 13.0
"""New hair fades into the person's own over this width: the seam has to lie where strands hide it."""


def reach(job: GrowthJob) -> Weights:
    """(H, W), how much of the grown picture each pixel takes: 1 in the region, falling to exactly 0 around it.

    Never over brows, eyes, nose or lips, nor beyond the head.
    """
    outside = (job.region < INSIDE).astype(np.uint8)
    if outside.all():
        return np.zeros_like(job.region)
    distance = np.asarray(cv2.distanceTransform(outside, cv2.DIST_L2, cv2.DIST_MASK_PRECISE), dtype=np.float32)
    width_mm = np.float32(INTO_SKIN_MM) + np.float32(INTO_HAIR_MM - INTO_SKIN_MM) * hair(job.scene)
    weights: Weights = ramp(1 - distance / (width_mm * np.float32(px_per_mm(job.scene))), 0.0, 1.0)
    weights *= growable(job.scene)
    return weights


def composite(canvas: RgbImage, grown: RgbImage, weights: Weights) -> RgbImage:
    """(H, W, 3): `grown` where `weights` (H, W) is 1, `canvas` where it is 0, to the last bit in both; mixed between.

    Raises ValueError when the three do not fit.
    """
    if not canvas.shape == grown.shape == (*weights.shape, 3):
        raise ValueError(f"canvas {canvas.shape}, grown {grown.shape}, weights {weights.shape}")
    finished = canvas.copy()
    touched = np.flatnonzero(weights.ravel())
    share = weights.ravel()[touched, None]
    old, new = (picture.reshape(-1, 3)[touched].astype(np.float32) for picture in (canvas, grown))
    finished.reshape(-1, 3)[touched] = np.rint(old + share * (new - old)).astype(np.uint8)
    return finished
