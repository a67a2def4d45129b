"""Where labels go: pure geometry, no pixels drawn.

Frame: layout pixels, origin at the photo's top left corner; the canvas may reach beyond the photo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.drawing import Rect
from vision.types import Points, RgbImage


def spread(wanted: Sequence[float], sizes: Sequence[float], gap: float, low: float = -np.inf) -> list[float]:
    """Centres of intervals along a line, as near to the `wanted` ones as their `sizes` allow.

    Keeps the order of `wanted`, leaves at least `gap` between neighbours and starts no interval before `low`. Exact
    least squares: neighbours that would overlap move together as one block around the mean of their wishes.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    blocks: list[tuple[float, float, list[int]]] = []
    """(start, mean start wished by the members, members)"""
    for index in order:
        members, wish = [index], wanted[index] - sizes[index] / 2
        start = max(wish, low)
        while blocks:
            above_start, above_wish, above = blocks[-1]
            length = sum(sizes[member] + gap for member in above)
            if above_start + length <= start:
                break
            blocks.pop()
            # The lower block's wish, told as a wish for the upper block's start.
            wish = (above_wish * len(above) + (wish - length) * len(members)) / (len(above) + len(members))
            members, start = above + members, max(wish, low)
        blocks.append((start, wish, members))
    centres = [0.0] * len(wanted)
    for start, _, members in blocks:
        at = start
        for member in members:
            centres[member] = at + sizes[member] / 2
            at += sizes[member] + gap
    return centres


ALONG_AXIS_PX = 1e-9
"""A line that moves less than this along an axis does not move along it: its slope would say nothing."""


def crosses(rect: Rect, line: NDArray[np.float64]) -> bool:
    """Whether a straight line (2, 2), end to end, passes through `rect`; one without length is a point."""
    start, step = line[0], line[1] - line[0]
    first, last = 0.0, 1.0
    for axis, low, high in ((0, rect.x, rect.right), (1, rect.y, rect.bottom)):
        if abs(step[axis]) < ALONG_AXIS_PX:
            if not low < start[axis] < high:
                return False
            continue
        enters, leaves = sorted(((low - start[axis]) / step[axis], (high - start[axis]) / step[axis]))
        first, last = max(first, float(enters)), min(last, float(leaves))
    return first < last


@dataclass(frozen=True, slots=True)
class FaceFrame:
    """Axes of the face in the picture plane: u to the viewer's right, v towards the chin; roll taken out."""

    origin: NDArray[np.float64]
    roll_deg: float
    """Positive when the top of the head leans to the viewer's right."""

    @property
    def axes(self) -> NDArray[np.float64]:
        """(2, 2), unit vectors u and v as rows."""
        roll = np.deg2rad(self.roll_deg)
        return np.array([[np.cos(roll), np.sin(roll)], [-np.sin(roll), np.cos(roll)]])

    def uv(self, points: Points) -> Points:
        """Layout pixels to face axes, (N, 2)."""
        return np.asarray((points - self.origin) @ self.axes.T, dtype=np.float64)

    def xy(self, u: float, v: float) -> NDArray[np.float64]:
        """Face axes to layout pixels, (2,)."""
        return np.asarray(self.origin + np.array([u, v]) @ self.axes, dtype=np.float64)

    def along_u_to(self, v: float, x: float) -> NDArray[np.float64]:
        """Where the line of height `v` across the face meets the vertical line at `x`."""
        (ux, uy), (vx, vy) = self.axes
        u = (x - self.origin[0] - v * vx) / ux
        return np.array([x, self.origin[1] + u * uy + v * vy])

    def along_v_to(self, u: float, y: float) -> NDArray[np.float64]:
        """Where the line at `u` along the face meets the horizontal line at `y`."""
        (ux, uy), (vx, vy) = self.axes
        v = (y - self.origin[1] - u * uy) / vy
        return np.array([self.origin[0] + u * ux + v * vx, y])


class Detail:
    """How busy the photo is, looked up by rectangle: labels go where there is little to see.

    `rgb` is the photo (H, W, 3), `scale` the number of layout pixels to one of its own.
    """

    def __init__(self, rgb: RgbImage, scale: float) -> None:
        step = max(1, max(rgb.shape[:2]) // 256)
        green = rgb[::step, ::step, 1].astype(np.float32)
        busy = np.abs(cv2.Sobel(green, cv2.CV_32F, 1, 0)) + np.abs(cv2.Sobel(green, cv2.CV_32F, 0, 1))
        self._sums = cv2.integral(np.minimum(busy, 200.0))
        self._per_px = 1.0 / (step * scale)

    def mean(self, rect: Rect) -> float:
        """Mean gradient inside `rect`, in grey levels per sample; 0 outside the photo."""
        height, width = self._sums.shape[0] - 1, self._sums.shape[1] - 1
        x0, x1 = (min(max(int(value * self._per_px), 0), width) for value in (rect.x, rect.right))
        y0, y1 = (min(max(int(value * self._per_px), 0), height) for value in (rect.y, rect.bottom))
        if x0 >= x1 or y0 >= y1:
            return 0.0
        total = self._sums[y1, x1] - self._sums[y0, x1] - self._sums[y1, x0] + self._sums[y0, x0]
        return float(total / ((x1 - x0) * (y1 - y0)))
