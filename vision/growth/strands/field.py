"""The direction in which hair grows: that of the own hair near by, continued over the region."""

from __future__ import annotations

import cv2
import numpy as np

from vision.growth.strands.own_hair import OwnHair
from vision.growth.strands.plot import Coarse, Floats

REACHES_MM = (40.0, 20.0, 10.0, 5.0, 2.5)
"""What is not known is taken from hair so far away (standard deviations); the nearer, the more it counts."""
ENOUGH = 0.08
"""Share of a neighbourhood that must be known for it to count half."""
OUTWARD_WEIGHT = 0.12
"""How much growing straight away from the face counts beside what the own hair says, which has its coherence."""
SIGN_MM = 8.0
SIGN_PASSES = 4
"""An axis gets its sign from its neighbours so far around, in so many passes; first from the outward direction."""
SIGN_OUTWARD = 0.3
SMOOTH_MM = 1.5
RISING = 0.3
"""How much a strand grows outward beside its neighbours' direction: hair rises from the skin before it lies down, and
where directions part or meet it goes neither way."""


def spread(values: Floats, weight: Floats, cell_mm: float) -> Floats:
    """Values (h, w, n) known with a weight (h, w), everywhere: where unknown, a mean of the nearest known ones.

    0 where nothing is known at all.
    """
    known = np.dstack([values * weight[..., None], weight]).astype(np.float32)
    total = known.reshape(-1, known.shape[-1]).sum(axis=0)
    filled = np.broadcast_to(total[:-1] / max(float(total[-1]), 1e-9), values.shape).astype(np.float32)
    for reach in REACHES_MM:
        near = _blurred(known, reach / cell_mm)
        share = near[..., -1:]
        # mean = near / share, and how far to go there is share / (share + ENOUGH)
        filled = (near[..., :-1] + ENOUGH * filled) / (share + ENOUGH)
    return filled


def growth_field(coarse: Coarse, own: OwnHair) -> Floats:
    """(h, w, 2), unit vectors on the coarse raster, from root to tip."""
    away = coarse.outward
    double_away = np.stack([away[..., 0] ** 2 - away[..., 1] ** 2, 2 * away[..., 0] * away[..., 1]], axis=-1)
    double = spread(own.double_angle, own.sure, coarse.mm) + OUTWARD_WEIGHT * double_away
    angle = np.arctan2(double[..., 1], double[..., 0]) / 2
    axis = np.stack([np.cos(angle), np.sin(angle)], axis=-1).astype(np.float32)
    field = _signed(axis, away)
    for _ in range(SIGN_PASSES):
        field = _signed(axis, SIGN_OUTWARD * away + _blurred(field, SIGN_MM / coarse.mm))
    field = _blurred(field, SMOOTH_MM / coarse.mm) + np.float32(RISING) * away
    unit: Floats = field / np.maximum(np.linalg.norm(field, axis=-1, keepdims=True), 1e-6)
    return unit


def _signed(axis: Floats, guide: Floats) -> Floats:
    """The axes (h, w, 2), each turned round where that brings it nearer to its guide."""
    turned: Floats = np.where((axis * guide).sum(axis=-1, keepdims=True) < 0, -axis, axis)
    return turned


def _blurred(values: Floats, sigma: float) -> Floats:
    """Gaussian of any width; wide ones on a smaller raster."""
    height, width = values.shape[:2]
    shrink = max(1, int(sigma / 3))
    small = cv2.resize(values, (-(-width // shrink), -(-height // shrink)), interpolation=cv2.INTER_AREA)
    small = cv2.GaussianBlur(small, (0, 0), sigma / shrink, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.float32)
