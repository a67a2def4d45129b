"""What tells the person's hair from their skin, by colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.strands.plot import Coarse, Floats

LIKELY = 0.6
"""Probability of the parser from which on hair is hair and skin is skin; it is seldom surer than 0.8."""
LEAST_CELLS = 50
"""Fewer cells of skin or hair say nothing about its colour."""
COLOUR_FLOOR = 0.02
"""Standard deviation of a colour (0 to 1) that is never less than this: flat areas have noise, too."""
SEPARATE = 4.0
"""Squared distance of hair and skin colours, in their common variances, below which colours tell nothing: a shaved
head, or white hair on pale skin."""
HIGHEST = 1.2
"""Level of what is still more unlike skin than hair is."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Fisher's discriminant between the colours of hair and skin."""

    skin: NDArray[np.float32]
    """(3,), where it is 0."""
    axis: NDArray[np.float32] | None
    """(3,), from there to hair it rises by 1. None where colours tell nothing."""

    @classmethod
    def of(cls, coarse: Coarse) -> Self:
        """Learned outside the region."""
        hair, skin = coarse.rgb[coarse.hair > LIKELY], coarse.rgb[(coarse.skin > LIKELY) & (coarse.region < 0.01)]
        if min(len(hair), len(skin)) < LEAST_CELLS:
            return cls(np.zeros(3, np.float32), None)
        middle = np.median(skin, axis=0)
        towards = np.median(hair, axis=0) - middle
        axis = np.linalg.solve(np.cov(hair.T) + np.cov(skin.T) + 2 * COLOUR_FLOOR**2 * np.eye(3), towards)
        distance = float(axis @ towards)
        return cls(middle, None if distance < SEPARATE else (axis / distance).astype(np.float32))

    def level(self, rgb: Floats, parsed: Floats, sigma: float) -> Floats:
        """(h, w), from 0 for skin to 1 for hair: of colours (h, w, 3), smoothed by `sigma` pixels.

        Where colours tell nothing it is what the parser says, `parsed` (h, w).
        """
        if self.axis is None:
            return parsed
        level = np.clip((rgb - self.skin) @ self.axis, 0, HIGHEST).astype(np.float32)
        return np.asarray(cv2.GaussianBlur(level, (0, 0), sigma), dtype=np.float32)
