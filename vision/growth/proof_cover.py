"""Whether new hair has uncovered skin where the person's own hair was: a hole behind the front.

Frame: any canvas; x right, y down.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.texture_colour import Lab

Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]

SPOT_MM = 0.7
"""Standard deviation over which colours are averaged: smaller gaps between strands show skin by right."""
LEAST_CONTRAST = 8.0
"""Distance in Lab between skin and hair from which colours tell the two."""
LEAST_MM2 = 20.0
"""Skin and hair are known from as much."""
WAS_HAIR, IS_SKIN = 0.6, 0.5
"""Of the way from skin to hair: more was hair before, less is skin now."""


def bared_mm2(before: Lab, after: Lab, skin: Mask, hair: Mask, behind: Mask, *, px_per_mm: float) -> float | None:
    """Area in `behind` that looks like `hair` in the photo `before` and like `skin` in the finished picture.

    Pictures (H, W, 3), masks (H, W). None where the photo shows too little of either, or colours do not tell them.
    """
    least = LEAST_MM2 * px_per_mm**2
    if min(np.count_nonzero(skin), np.count_nonzero(hair)) < least:
        return None
    ground = np.median(before[skin], axis=0)
    towards = np.median(before[hair], axis=0) - ground
    contrast = float(np.linalg.norm(towards))
    if contrast < LEAST_CONTRAST:
        return None

    def level(lab: Lab) -> Floats:
        smooth = cv2.GaussianBlur(lab, (0, 0), SPOT_MM * px_per_mm)
        return np.asarray((smooth - ground) @ towards / contrast**2, dtype=np.float32)

    bared = behind & (level(before) >= WAS_HAIR) & (level(after) < IS_SKIN)
    return float(np.count_nonzero(bared)) / px_per_mm**2
