"""Polygons to pixels and back: antialiased masks, smooth outlines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.types import Points

SAMPLES = 4
"""Samples per pixel and axis under the border of a polygon."""
_SHIFT = 6
"""Binary places of the polygon's corners on the grid of samples."""
_BAND_ROWS = 256
"""Rows at once: a polygon over 40 MP stays in 16 times a band."""
HALF = 128
"""A grey level from which on a pixel is inside."""
OUTLINE_SMOOTHED_PX = 1.5
"""Standard deviation along an outline: takes the steps of the pixels out of it."""


def coverage(polygons: Sequence[Points], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """(H, W), which part of 255 of every pixel lies in any of the closed polygons (N, 2). `shape` begins with H, W."""
    height, width = shape[:2]
    covered = np.zeros((height, width), dtype=np.uint8)
    for polygon in polygons:
        low = np.maximum(np.floor(polygon.min(axis=0) - 0.5).astype(int), 0)
        high = np.minimum(np.ceil(polygon.max(axis=0) + 0.5).astype(int) + 1, (width, height))
        for top in range(low[1], high[1], _BAND_ROWS):
            bottom = min(top + _BAND_ROWS, high[1])
            band = _covered(polygon - (low[0], top), bottom - top, high[0] - low[0])
            part = covered[top:bottom, low[0] : high[0]]
            np.maximum(part, band, out=part)
    return covered


def _covered(polygon: Points, height: int, width: int) -> NDArray[np.uint8]:
    """One polygon on a part of the canvas; its frame is the part's."""
    if height <= 0 or width <= 0:
        return np.zeros((max(height, 0), max(width, 0)), dtype=np.uint8)
    samples = np.zeros((height * SAMPLES, width * SAMPLES), dtype=np.uint8)
    at = (polygon + 0.5) * SAMPLES - 0.5
    # OpenCV also fills the samples that the outline passes: an eighth of a pixel too much on every side.
    corners = np.rint(at * (1 << _SHIFT)).astype(np.int32)[:, None]
    cv2.fillPoly(samples, [corners], 255, cv2.LINE_8, _SHIFT)
    return np.asarray(cv2.resize(samples, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def outlines(mask: NDArray[np.uint8]) -> Iterator[Points]:
    """Closed borders (N, 2) of what has at least half of 255 in a mask (H, W), holes included, without stair steps.

    The longest come first, and no more than are taken are smoothed: a mask may have many parts.
    """
    found, _ = cv2.findContours((mask >= HALF).astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    for contour in sorted(found, key=len, reverse=True):
        yield _smoothed(contour[:, 0].astype(np.float64))


def border_px(mask: NDArray[np.uint8]) -> int:
    """Sides of pixels between inside and outside of a mask (H, W) of 0 and 255: the length of all its borders."""
    across, down = mask[:, 1:] != mask[:, :-1], mask[1:] != mask[:-1]
    return int(np.count_nonzero(across)) + int(np.count_nonzero(down))


def _smoothed(closed: Points) -> Points:
    span = round(4 * OUTLINE_SMOOTHED_PX)
    if len(closed) <= 2 * span:
        return closed
    weights = np.exp(-0.5 * (np.arange(-span, span + 1) / OUTLINE_SMOOTHED_PX) ** 2)
    padded = np.vstack([closed[-span:], closed, closed[:span]])
    columns = [np.convolve(padded[:, axis], weights / weights.sum(), mode="valid") for axis in (0, 1)]
    return np.column_stack(columns)
