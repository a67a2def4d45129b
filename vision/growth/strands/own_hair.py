"""The person's own hair: where it surely is, which way it runs, what light lies on it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.backend import GrowthReason, GrowthUnavailableError
from vision.growth.strands.looks import LIKELY, Looks
from vision.growth.strands.plot import Coarse, Floats, distance_mm
from vision.types import RgbImage

EDGE_MM = 2.0
"""The border of the hair is left out: there background and skin shine through."""
HAIR_COLOURED = 0.7
"""Below so much of the way from the colour of skin to that of hair, scalp shines through, as in a parting."""
SHINE_MM = 0.8
"""A strand may shine; a place is judged by its mean over so much (standard deviation)."""
LEAST_OWN_MM2 = 150.0
"""Less hair than this has too few places to take texture from: a strip of 30 × 5 mm over each ear is more."""
LEAST_SHARE = 0.2
"""Less than this part of the region's own area would have to come again everywhere."""
FAR_MM, MOST_FAR = 30.0, 0.5
"""Where more than this part of the region lies further from all own hair, nobody knows what hair would look like there:
a wreath round a bald head tells nothing of its top. Of receded fronts next to nothing does."""
BEHIND_MM = (3.0, 8.0)
"""How full hair is behind its edge is seen there: nearer every edge is soft, further away hair lies over hair."""
OCTAVES_PX = (0.7, 1.4, 2.8)
BLUR_OF_RATIO = ((0.55, 0.8, 1.0, 1.25), (1.5, 1.0, 0.7, 0.5))
"""Contrast between the first two of these blurs against that between the last two, and the blur it comes from: that of
independent lines. Sharp portraits have 0.9 to 1.1, soft ones 0.55 to 0.8."""
DIRECTION_MM = 2.5
"""Directions are averaged over so much (standard deviation)."""
FINE_MM = 0.2
"""Size of the cells in which gradients are taken: strands are thinner, locks are not."""
STRAIGHT, CURLED = 0.75, 0.15
"""Mean coherence of directions of straight hair, and of tight curls."""


@dataclass(frozen=True, slots=True)
class OwnHair:
    """All on the coarse raster (h, w)."""

    sure: Floats
    """1 where there is nothing but hair."""
    double_angle: Floats
    """(h, w, 2), cosine and sine of twice the angle of the strands, times the coherence (0 to 1)."""
    fullness: Floats
    """How much of the scalp hair hides just behind its edge near by, 0 to 1; known with the weight `edge`."""
    edge: Floats
    blur_px: float
    """How far a strand's edge is blurred in this photo (standard deviation, canvas pixels)."""
    curliness: float
    """0 for straight hair, 1 for hair without a common direction."""


def look_at_hair(rgb: RgbImage, coarse: Coarse, looks: Looks) -> OwnHair:
    """Raises `GrowthUnavailableError` (NO_OWN_HAIR) when there is too little to learn from, or only far away."""
    likely = coarse.hair > LIKELY
    cells = max(1, round(EDGE_MM / coarse.mm))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * cells + 1, 2 * cells + 1))
    inner = cv2.erode(likely.astype(np.uint8), kernel, borderType=cv2.BORDER_REPLICATE) > 0
    # White hair on pale skin: that colours tell nothing says nothing against it.
    everywhere = np.ones(coarse.hair.shape, dtype=np.float32)
    hairiness = looks.level(coarse.rgb, everywhere, SHINE_MM / coarse.mm)
    sure = inner & (coarse.region < 0.01) & (hairiness > HAIR_COLOURED)
    if float(sure.sum()) < max(LEAST_OWN_MM2 / coarse.mm**2, LEAST_SHARE * float(coarse.region.sum())):
        raise GrowthUnavailableError(GrowthReason.NO_OWN_HAIR, "hardly any hair is to be seen")
    if float(coarse.region[distance_mm(sure, coarse.mm) > FAR_MM].sum()) > MOST_FAR * float(coarse.region.sum()):
        raise GrowthUnavailableError(GrowthReason.NO_OWN_HAIR, "most of the region is far from any hair")
    weight = sure.astype(np.float32)
    grey = _grey(rgb, coarse)
    double_angle = _double_angle(grey, coarse, weight)
    coherence = float(np.average(np.linalg.norm(double_angle, axis=-1), weights=weight))
    return OwnHair(
        sure=weight,
        double_angle=double_angle,
        fullness=np.clip(hairiness, 0, 1),
        edge=_edge(coarse),
        blur_px=_blur_px(grey, cv2.resize(weight, grey.shape[::-1], interpolation=cv2.INTER_NEAREST) > 0),
        curliness=float(np.clip((STRAIGHT - coherence) / (STRAIGHT - CURLED), 0, 1)),
    )


def _edge(coarse: Coarse) -> Floats:
    """(h, w), 1 a little behind the edge of skin and hair."""
    behind = distance_mm(coarse.skin > 0.5, coarse.mm)
    within = (behind >= BEHIND_MM[0]) & (behind < BEHIND_MM[1])
    return (within & (coarse.hair > 0.5)).astype(np.float32)


def _grey(rgb: RgbImage, coarse: Coarse) -> NDArray[np.uint8]:
    """The canvas's pixels in the cells of the coarse raster: (h, w) cells of `frame.step` squared."""
    height, width = coarse.hair.shape
    step = int(coarse.frame.step)
    left, top = (round(at - (step - 1) / 2) for at in coarse.frame.origin)
    window = rgb[top : top + height * step, left : left + width * step]
    return np.asarray(cv2.cvtColor(window, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def _blur_px(grey: NDArray[np.uint8], hair: NDArray[np.bool_]) -> float:
    """By the texture of the hair in the second octave against that in the third."""
    finest, middle, coarsest = (cv2.GaussianBlur(grey.astype(np.float32), (0, 0), sigma)[hair] for sigma in OCTAVES_PX)
    ratio = np.sqrt(np.square(finest - middle).mean() / max(float(np.square(middle - coarsest).mean()), 1e-3))
    return float(np.interp(ratio, *BLUR_OF_RATIO))


def _double_angle(grey: NDArray[np.uint8], coarse: Coarse, sure: Floats) -> Floats:
    """(h, w, 2), by the structure tensor: strands run across the gradient."""
    height, width = sure.shape
    shrink = max(1, round(FINE_MM * coarse.frame.step / coarse.mm))
    fine = cv2.resize(grey, (grey.shape[1] // shrink, grey.shape[0] // shrink), interpolation=cv2.INTER_AREA)
    across, down = (cv2.Scharr(fine, cv2.CV_32F, *order) for order in ((1, 0), (0, 1)))
    xx, yy, xy = across * across, down * down, across * down

    def averaged(part: Floats) -> Floats:
        known = cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA) * sure
        return np.asarray(cv2.GaussianBlur(known, (0, 0), DIRECTION_MM / coarse.mm), dtype=np.float32)

    energy = np.maximum(averaged(xx + yy), np.float32(1e-6))
    return np.stack([averaged(yy - xx) / energy, averaged(-2 * xy) / energy], axis=-1)
