"""What of the canvas a diffusion model gets to see: the region with some of the head around it, at the model's size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.types import RgbImage

MARGIN = 0.35
"""Of the longer side of what is to be painted, on each side of it: hair to continue, forehead to end at. Eyes and mouth
are hardly ever in the window."""
MULTIPLE_PX = 8
"""Latents have one cell per 8 × 8 pixels; other sizes would be cropped by the server."""


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of the canvas and its size as sent. Pixels."""

    left: int
    top: int
    width: int
    height: int
    sent_width: int
    sent_height: int

    @classmethod
    def around(cls, weights: NDArray[np.float32], side_px: int) -> Window | None:
        """The window for what is to be painted (H, W); None where all of it is 0.

        That with the same margin on all sides, as far as the canvas reaches; it is sent with as many pixels as a square
        of `side_px` has.
        """
        rows, columns = np.flatnonzero(weights.any(axis=1)), np.flatnonzero(weights.any(axis=0))
        if not len(rows):
            return None
        margin = round(MARGIN * (max(np.ptp(rows), np.ptp(columns)) + 1))
        top, height = _span(int(rows[0]), int(rows[-1]), margin, weights.shape[0])
        left, width = _span(int(columns[0]), int(columns[-1]), margin, weights.shape[1])
        zoom = side_px / math.sqrt(width * height)
        return cls(left, top, width, height, _sent(width * zoom), _sent(height * zoom))

    def cut(self, rgb: RgbImage) -> RgbImage:
        """The window of a canvas (H, W, 3) as sent, (sent_height, sent_width, 3)."""
        return np.asarray(self._resized(self._view(rgb), self.sent_width, self.sent_height), dtype=np.uint8)

    def cut_mask(self, weights: NDArray[np.float32]) -> NDArray[np.uint8]:
        """The window of the weights as sent, (sent_height, sent_width): 255 where hair is to grow, 0 where none is."""
        # Linear: nothing is to be painted beyond an edge, as cubic would overshoot.
        cut = self._resized(self._view(weights), self.sent_width, self.sent_height, enlarging=cv2.INTER_LINEAR)
        return np.asarray(np.rint(cut * 255.0), dtype=np.uint8)

    def pasted(self, canvas: RgbImage, picture: RgbImage) -> RgbImage:
        """A copy of the canvas with a picture of the window in it, of any size."""
        whole = canvas.copy()
        self._view(whole)[:] = self._resized(picture, self.width, self.height)
        return whole

    def _view(self, raster: NDArray[Any]) -> NDArray[Any]:
        return raster[self.top : self.top + self.height, self.left : self.left + self.width]

    @staticmethod
    def _resized(raster: NDArray[Any], width: int, height: int, *, enlarging: int = cv2.INTER_CUBIC) -> NDArray[Any]:
        shrinks = width * height < raster.shape[0] * raster.shape[1]
        method = cv2.INTER_AREA if shrinks else enlarging
        return np.asarray(cv2.resize(np.ascontiguousarray(raster), (width, height), interpolation=method))


def _span(first: int, last: int, margin: int, length: int) -> tuple[int, int]:
    """Start and length of `first` to `last` with a margin on both sides, inside `length`."""
    start = max(first - margin, 0)
    return start, min(last + 1 + margin, length) - start


def _sent(pixels: float) -> int:
    return max(1, round(pixels / MULTIPLE_PX)) * MULTIPLE_PX
