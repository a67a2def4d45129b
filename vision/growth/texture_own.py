"""Whether every small piece of new hair looks like some piece of the person's own hair near by.

Single numbers of a whole region can be met by a texture that is nobody's hair: noise can be as strong, as fine and as
much along one direction as hair is on the average. So both are cut into small pieces, each is described by what makes
strands strands, and each new piece is compared with the likest own pieces around. Strands gather light and leave dark
between: fine detail comes unevenly and bright on dark. Noise of any spectrum has it everywhere, to either side.

Pure functions of lightness (CIELAB, 0 to 100) and masks. Frame: any canvas; x right, y down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

SIDE_MM = 5.0
"""Of a piece, a square; the next begins half of it further."""
LEAST_SHARE = 0.5
"""Part of a piece that must be hair. Where a narrow region fills none as much, those count that are nearly (`NEARLY`)
as full as the fullest."""
NEARLY = 0.7
LEAST_FULLEST = 0.1
NEAREST = 60
"""Own pieces that each is compared with, and the likest of them counts: hair at the temple has another texture than at
the crown, and of more pieces the likest is liker."""
LEAST_NEW, LEAST_OWN = 20, 8
"""Of fewer new pieces all lie at the very front, and there are no own ones like them."""
OVERLAPPING = 1.0
"""Pieces that are less sides apart share hair."""
LEAST_DISTANCE = 1e-3
"""Hair that is everywhere the same to the last bit is painted."""

GRADIENTS_PX = (0.7, 1.4, 2.8, 5.6)
"""Scales whose gradients are compared: from the finest that a picture shows to locks."""
DETAILS_PX = (0.7, 1.4)
"""Standard deviations of the finer Gaussian of the two whose difference is fine detail."""
COARSER = 1.6
"""The other one's, in that."""
SPOT_PX = 3.0
"""Over so much (standard deviation) strands lie side by side, and energy is local."""
FLOOR_GRADIENT, FLOOR_DIRECTION, FLOOR_ENERGY, FLOOR_DETAIL = 0.05, 0.02, 0.01, 0.005
"""Squared lightness that counts as nothing: a picture of 8 bits does not tell it."""


def foreign(before: Floats, after: Floats, grown: Mask, own: Mask, px_per_mm: float) -> float | None:
    """How far pieces of the hair in `grown` of the finished picture are from the likest of `own` of the photo near by.

    Median over the pieces, divided by that of own pieces among each other: 1 is as like as these are.
    All (H, W). None where there is too little of either to compare, or own hair in one spot alone.
    """
    side = max(4, round(SIDE_MM * px_per_mm))
    new, old = _Pieces.of(after, grown, side), _Pieces.of(before, own, side)
    if len(new.at) < LEAST_NEW or len(old.at) < LEAST_OWN:
        return None
    among = _to_likest(old, old, OVERLAPPING)
    if not len(among):
        return None
    return float(np.median(_to_likest(new, old, 0.0))) / max(float(np.median(among)), LEAST_DISTANCE)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Squares of hair and what they look like."""

    at: Floats
    """(N, 2), row and column of their middles, in sides."""
    looks: Floats
    """(N, descriptors), such that a step of 1 is about equally much in each."""

    @classmethod
    def of(cls, lightness: Floats, hair: Mask, side: int) -> Self:
        """Of the hair in the mask (H, W)."""
        inside = hair.astype(np.float32)
        height, width = hair.shape
        grid = np.mgrid[side // 2 : height : side // 2, side // 2 : width : side // 2]
        full = _means(inside, side)[tuple(grid)]
        counts = full >= max(LEAST_FULLEST, min(LEAST_SHARE, NEARLY * float(full.max(initial=0))))
        at = grid[:, counts]

        def over(plane: Floats) -> Floats:
            """Means over the hair of each piece."""
            return np.asarray(_means(plane * inside, side)[tuple(at)] / full[counts], dtype=np.float32)

        looks = [*_gradients(lightness, over), *_details(lightness, over)]
        return cls((at.T / side).astype(np.float32), np.column_stack(looks))


def _means(plane: Floats, side: int) -> Floats:
    return np.asarray(cv2.blur(plane, (side, side), borderType=cv2.BORDER_CONSTANT), dtype=np.float32)


def _smooth(plane: Floats, sigma_px: float) -> Floats:
    return np.asarray(cv2.GaussianBlur(plane, (0, 0), sigma_px), dtype=np.float32)


def _gradients(lightness: Floats, over: Callable[[Floats], Floats]) -> list[Floats]:
    """Strength of the gradients by scale, in octaves, and how far the finest lie along one direction within a spot."""
    strengths, together = [], np.zeros(0, dtype=np.float32)
    for sigma in GRADIENTS_PX:
        blurred = _smooth(lightness, sigma)
        across, down = (cv2.Sobel(blurred, cv2.CV_32F, dx, 1 - dx, ksize=3, scale=sigma / 8) for dx in (1, 0))
        energy = over(np.asarray(across**2 + down**2, dtype=np.float32))
        strengths.append(np.log2(energy + FLOOR_GRADIENT) / 2)
        if sigma == GRADIENTS_PX[0]:
            along = np.hypot(_smooth(across**2 - down**2, SPOT_PX), _smooth(2 * across * down, SPOT_PX))
            together = 2 * over(along) / (energy + FLOOR_DIRECTION)
    return [*strengths, together]


def _details(lightness: Floats, over: Callable[[Floats], Floats]) -> list[Floats]:
    """How unevenly fine detail is spread, in octaves of its energy, by scale; and how far it is light on dark."""
    uneven, light = [], np.zeros(0, dtype=np.float32)
    for sigma in DETAILS_PX:
        detail = _smooth(lightness, sigma) - _smooth(lightness, COARSER * sigma)
        octaves = np.log2(_smooth(detail**2, SPOT_PX) + FLOOR_ENERGY)
        mean = over(octaves)
        uneven.append(np.sqrt(np.maximum(over(octaves**2) - mean**2, 0)))
        if sigma == DETAILS_PX[0]:
            light = over(detail**3) / (over(detail**2) + FLOOR_DETAIL) ** 1.5
    return [*uneven, light]


def _to_likest(pieces: _Pieces, others: _Pieces, least_apart: float) -> Floats:
    """(N,), distance to the likest of the nearest others that are at least so far away, in sides."""
    apart = np.hypot(*(pieces.at[:, None] - others.at).transpose(2, 0, 1))
    apart[apart < least_apart] = np.inf
    nearest = np.argsort(apart, axis=1, kind="stable")[:, :NEAREST]
    unlike = np.abs(pieces.looks[:, None] - others.looks[nearest]).sum(axis=2)
    unlike[np.isinf(np.take_along_axis(apart, nearest, axis=1))] = np.inf
    likest = unlike.min(axis=1)
    return np.asarray(likest[np.isfinite(likest)], dtype=np.float32)
