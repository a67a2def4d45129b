"""A receded head, made of a portrait: bald above the forehead, the hair at the sides and on the crown as it was."""

from __future__ import annotations

import numpy as np

from bench.portraits.bald import make_bald
from bench.portraits.face import Face, noise, over
from vision.types import RgbImage

CENTRE_V = 0.24
HALF_AXES = (0.25, 0.20)
"""Of the bald ellipse, in face units (`bench.portraits.face`): up to the middle between hairline and crown."""
SOFT = 0.12
"""Over this part of the half axes hair thins out."""
WANDER = 0.05
"""The border comes and goes by this part of them."""
SEED = 11


def receded(face: Face) -> RgbImage:
    """(H, W, 3), without the hair above the forehead."""
    rng = np.random.default_rng(SEED)
    u, v = face.coordinates()
    away = np.hypot(u / HALF_AXES[0], (v - CENTRE_V) / HALF_AXES[1]) + WANDER * noise(u.shape, 0.03 * face.unit_px, rng)
    gone = np.clip((1 + SOFT / 2 - away) / SOFT, 0, 1).astype(np.float32)
    picture = over(face.image, make_bald(face, rng), gone)
    return np.asarray(np.clip(np.rint(picture * 255), 0, 255), dtype=np.uint8)
