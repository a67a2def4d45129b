"""Where hair begins along a line, and over which width: seen across the line, by the photo's own colours.

Frame: any canvas; x right, y down.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.texture_colour import Lab
from vision.types import Points

Floats = NDArray[np.float32]
Array = NDArray[np.float64]

SEARCH_MM = 10.0
"""On either side of the line. Where no edge is seen at all, it counts as so far away."""
STEP_MM = 0.1
SPACING_MM = 0.5
"""From one place on the line to the next."""
TURN_MM = 2.0
"""Along the line over which its direction is taken."""
INSIDE_MM = 1.5
"""A place counts where hair is wanted so far on one side of the line, and none so far on the other."""
SKIN_MM = (-8.0, -4.0)
HAIR_MM = (3.0, 8.0)
"""Where the colours of bare skin and full hair are learned, from the line; towards the hair is positive."""
BAND_MM = 2.0
COLOUR_BAND_MM = 6.0
"""Standard deviations along the line over which profiles, and the colours they are measured by, are averaged: single
strands are no edge."""
LEAST_CONTRAST = 8.0
"""Distance in Lab between skin and hair from which colours tell the edge. White hair on pale skin has less: there the
parser's probability of hair has to."""
LASTING_MM = 2.0
"""What is hair for less than this is a strand before the edge."""


@dataclass(frozen=True, slots=True)
class FrontEdge:
    """Of all places on the line where hair is wanted."""

    distance_mm: float
    """Median distance of the edge, half of the way from skin to full hair, from the line."""
    width_mm: float | None
    """Median width from a quarter to three quarters of the way, as `vision.hair_edge` takes it."""
    whole_width_mm: float | None
    """The same from a tenth to nine tenths. Both None where they were seen nowhere."""


def front_edge(lab: Lab, hair: Floats, wanted: Floats, line: Points, px_per_mm: float) -> FrontEdge | None:
    """The edge along `line` (N, 2) in a picture.

    `lab` is (H, W, 3), `hair` the parser's probability and `wanted` where hair should be, (H, W) both. None where hair
    is wanted on neither side of the line.
    """
    places, normals = _places(line, px_per_mm)
    ahead, behind = (_sampled(wanted, places + side * INSIDE_MM * px_per_mm * normals) for side in (1, -1))
    normals = normals * np.where(ahead >= behind, 1, -1)[:, None]
    counts = (np.maximum(ahead, behind) >= 0.5) & (np.minimum(ahead, behind) < 0.5)
    if not counts.any():
        return None
    offsets = np.arange(-SEARCH_MM, SEARCH_MM + STEP_MM / 2, STEP_MM)
    grid = places[:, None] + offsets[None, :, None] * px_per_mm * normals[:, None]
    level = _levels(_sampled(lab, grid), _sampled(hair, grid), offsets)[counts]

    lasting = round(LASTING_MM / STEP_MM)
    ahead_mean = cv2.blur(level, (lasting, 1), anchor=(0, 0), borderType=cv2.BORDER_REPLICATE)
    begins = (level >= 0.5) & (np.asarray(ahead_mean) >= 0.5)
    seen = begins.any(axis=1)
    at = begins.argmax(axis=1)
    distance = np.where(seen, np.abs(offsets[at]), SEARCH_MM)
    widths = [_width_mm(level[seen], at[seen], share) for share in (0.25, 0.1)]
    return FrontEdge(float(np.median(distance)), *widths)


def _width_mm(level: Floats, edge: NDArray[np.intp], share: float) -> float | None:
    """Median width of the edges at the columns `edge` (M,), from `share` of the way to as much before its end."""
    columns = np.arange(level.shape[1])
    low = np.where((level <= share) & (columns < edge[:, None]), columns, -1).max(axis=1)
    high = np.where((level >= 1 - share) & (columns >= edge[:, None]), columns, len(columns)).min(axis=1)
    whole = (low >= 0) & (high < len(columns))
    return float(np.median((high - low)[whole]) * STEP_MM) if whole.any() else None


def _places(line: Points, px_per_mm: float) -> tuple[Points, Points]:
    """Places along the line, `SPACING_MM` apart, and the unit normals there; both (M, 2)."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    at = np.arange(0.0, along[-1], SPACING_MM * px_per_mm)

    def on_line(where: Array) -> Points:
        return np.column_stack([np.interp(where, along, line[:, axis]) for axis in (0, 1)])

    reach = TURN_MM * px_per_mm
    tangents = on_line(np.minimum(at + reach, along[-1])) - on_line(np.maximum(at - reach, 0.0))
    tangents /= np.maximum(np.linalg.norm(tangents, axis=1, keepdims=True), 1e-9)
    return on_line(at), np.column_stack([tangents[:, 1], -tangents[:, 0]])


def _sampled(picture: Floats, at: Points) -> Floats:
    """Values of a picture (H, W, ...) at points (..., 2); its border goes on beyond it."""
    grid = np.atleast_3d(at.astype(np.float32)) if at.ndim == 3 else at.astype(np.float32)[None]
    values = cv2.remap(picture, grid[..., 0], grid[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(values if at.ndim == 3 else values[0], dtype=np.float32)


def _levels(lab: Lab, hair: Floats, offsets: Array) -> Floats:
    """(M, offsets), how far the way from skin to full hair is gone; `lab` (M, offsets, 3), `hair` (M, offsets)."""
    lab = _along(lab, BAND_MM)
    skin, full = (
        _along(lab[:, (offsets >= low) & (offsets <= high)].mean(axis=1), COLOUR_BAND_MM)
        for low, high in (SKIN_MM, HAIR_MM)
    )
    towards = full - skin
    contrast = np.linalg.norm(towards, axis=1, keepdims=True)
    by_colour = ((lab - skin[:, None]) * towards[:, None]).sum(axis=2) / np.maximum(contrast, 1e-6) ** 2
    return np.asarray(np.where(contrast >= LEAST_CONTRAST, by_colour, hair), dtype=np.float32)


def _along(values: Floats, sigma_mm: float) -> Floats:
    """Smoothed along the line, the first axis."""
    flat = values.reshape(len(values), -1)
    sigma = sigma_mm / SPACING_MM
    smooth = cv2.GaussianBlur(flat, (1, 0), sigmaX=1, sigmaY=sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(smooth, dtype=np.float32).reshape(values.shape)
