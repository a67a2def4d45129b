"""Whether something else than hair is seen where the person's own hair was: a hole behind the front.

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
PARTING_MM = 4.0
"""What is narrower may be a parting that goes on, or a lock."""
LEAST_CONTRAST = 8.0
"""Distance in Lab between skin and hair from which colours tell the two."""
LEAST_MM2 = 20.0
"""Skin and hair are known from as much."""
WAS_HAIR, IS_NONE = 0.4, 0.5
"""Of the distance in Lab between skin and hair: what was nearer to hair was hair, what is further from it is none, be
it skin or the background."""


def bared_mm2(before: Lab, after: Lab, skin: Mask, hair: Mask, behind: Mask, *, px_per_mm: float) -> float | None:
    """Area in `behind` that looks like `hair` in the photo `before` and not in the finished picture.

    Pictures (H, W, 3), masks (H, W). None where the photo shows too little of either, or colours do not tell them.
    """
    least = LEAST_MM2 * px_per_mm**2
    if min(np.count_nonzero(skin), np.count_nonzero(hair)) < least:
        return None
    full = np.median(before[hair], axis=0)
    contrast = float(np.linalg.norm(np.median(before[skin], axis=0) - full))
    if contrast < LEAST_CONTRAST:
        return None

    def from_hair(lab: Lab) -> Floats:
        smooth = cv2.GaussianBlur(lab, (0, 0), SPOT_MM * px_per_mm)
        return np.asarray(np.linalg.norm(smooth - full, axis=2) / contrast, dtype=np.float32)

    bared = behind & (from_hair(before) <= WAS_HAIR) & (from_hair(after) > IS_NONE)
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * round(PARTING_MM * px_per_mm / 2) + 1,) * 2)
    wide = cv2.morphologyEx(bared.astype(np.uint8), cv2.MORPH_OPEN, disc)
    return float(np.count_nonzero(wide)) / px_per_mm**2
