"""Fakes that a face parser takes for hair, and the one thing that is hair: the person's own, moved by hand.

Each makes a whole canvas (H, W, 3) for a job, as a backend would. The fakes must fail the proof, the moved hair must
pass it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.backend import GrowthJob
from vision.growth.scene import hair, px_per_mm
from vision.head import GLABELLA
from vision.types import Points, RgbImage

NEAR_MM = 25.0
BAR_PX = (1, 5)
"""Widths of the barcode's bars: from the first to just below the second."""
TILE_MM = (3.0, 7.0)
"""Side of a tile: a third of that of a square as large as the region, within these limits. What does not come again
is no tile."""
SEED = 7


def barcode(job: GrowthJob) -> RgbImage:
    """Upright bars, each in the colour of some pixel of the own hair."""
    rng = np.random.default_rng(SEED)
    height, width = job.region.shape
    own = job.scene.rgb[_own(job)]
    bars = np.repeat(own[rng.integers(0, len(own), width)], rng.integers(*BAR_PX, width), axis=0)[:width]
    return np.broadcast_to(bars, (height, width, 3)).copy()


def tiled(job: GrowthJob) -> RgbImage:
    """One square of the own hair, laid side by side."""
    height, width = job.region.shape
    scale = px_per_mm(job.scene)
    side = round(scale * float(np.clip(np.sqrt(job.region.sum()) / scale / 3, *TILE_MM)))
    full = cv2.blur(_own(job).astype(np.float32), (side, side))
    # The square nearest to the region that holds hair alone, or as nearly as there is one.
    whole = full >= min(0.999, float(full.max()))
    y, x = np.unravel_index(np.argmin(np.where(whole, _distance(job), np.inf)), whole.shape)
    top, left = min(max(0, int(y) - side // 2), height - side), min(max(0, int(x) - side // 2), width - side)
    tile = job.scene.rgb[top : top + side, left : left + side]
    return np.tile(tile, (height // side + 1, width // side + 1, 1))[:height, :width]


def paint(job: GrowthJob) -> RgbImage:
    """The mean colour of the own hair, flat."""
    mean = job.scene.rgb[_own(job)].mean(axis=0)
    return np.broadcast_to(np.rint(mean).astype(np.uint8), job.scene.rgb.shape).copy()


def moved(job: GrowthJob) -> RgbImage:
    """The photo drawn towards the glabella, ray by ray, until its hairline lies on the front where that is nearer.

    Raises ValueError without a hairline or a front.
    """
    scene, front = job.scene, job.front
    if scene.hairline is None or front is None:
        raise ValueError("nothing can be moved without a hairline and a front")
    height, width = job.region.shape
    centre = scene.landmarks[GLABELLA]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    across, up = x - np.float32(centre[0]), np.float32(centre[1]) - y
    radius, angle = np.hypot(across, up), np.arctan2(across, up)
    line, wanted = (_radius_at(points - centre, angle) for points in (scene.hairline, front))
    stretch = (radius + np.maximum(0.0, line - wanted)) / np.maximum(radius, 1.0)
    at = [(origin + offset * stretch).astype(np.float32) for origin, offset in zip(centre, (across, -up), strict=True)]
    drawn = cv2.remap(scene.rgb, at[0], at[1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(drawn, dtype=np.uint8)


FAKES: Mapping[str, Callable[[GrowthJob], RgbImage]] = {"barcode": barcode, "tiled": tiled, "paint": paint}


def _radius_at(line: Points, angle: NDArray[np.floating]) -> NDArray[np.floating]:
    """How far a line (N, 2) about the origin is from it, in directions `angle` from straight up, clockwise."""
    angles = np.arctan2(line[:, 0], -line[:, 1])
    order = np.argsort(angles)
    return np.asarray(np.interp(angle, angles[order], np.hypot(*line[order].T)))


def _distance(job: GrowthJob) -> NDArray[np.float32]:
    outside = (job.region < 0.5).astype(np.uint8)
    return np.asarray(cv2.distanceTransform(outside, cv2.DIST_L2, 5), dtype=np.float32)


def _own(job: GrowthJob) -> NDArray[np.bool_]:
    """(H, W), hair near the region that was there before."""
    distance = _distance(job)
    own: NDArray[np.bool_] = (hair(job.scene) > 0.9) & (distance > 0) & (distance < NEAR_MM * px_per_mm(job.scene))
    return own
