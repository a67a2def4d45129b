"""Where hair begins along a line, and over which width: seen across the line, by the photo's own colours.

Frame: any canvas; x right, y down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

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
SPACING_MM = 0.2
"""From one place on the line to the next: single strands are told apart."""
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
STRAND_MM = 1.0
"""A strand that lasts as long makes the edge ragged."""
COURSE_MM = 3.0
"""Standard deviation along the line over which the edge's course is smoothed."""
LEAST_PLACES = 50
"""Of the line, where the edge is seen, for its raggedness to be told."""


@dataclass(frozen=True, slots=True)
class FrontEdge:
    """Of all places on the line where hair is wanted."""

    distance_mm: float
    """Median distance of the edge, half of the way from skin to full hair, from the line."""
    width_mm: float | None
    """Median width from a quarter to three quarters of the way, as `vision.hair_edge` takes it."""
    whole_width_mm: float | None
    """The same from a tenth to nine tenths. Both None where they were seen nowhere by colours."""
    ragged_mm: float | None
    """How far single strands leave the edge's course, to either side (median). None where it is seen by no colours."""


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
    colours = _sampled(lab, grid)
    ground = _Ground.of(colours, offsets)
    level = np.where(ground.tells, ground.levels(_along(colours, BAND_MM)), _along(_sampled(hair, grid), BAND_MM))[
        counts
    ]
    seen, at = _begins(level, LASTING_MM)
    distance = np.where(seen, np.abs(offsets[at]), SEARCH_MM)
    seen &= ground.tells[counts, 0]
    width_mm, whole_width_mm = (_width_mm(level[seen], at[seen], share) for share in (0.25, 0.1))
    single = ground.levels(colours)[counts & ground.tells[:, 0]]
    return FrontEdge(float(np.median(distance)), width_mm, whole_width_mm, _ragged_mm(single, offsets))


def _begins(level: Floats, lasting_mm: float) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Whether and at which column lasting hair begins in each row of (M, offsets)."""
    lasting = (round(lasting_mm / STEP_MM), 1)
    ahead = np.asarray(cv2.blur(level, lasting, anchor=(0, 0), borderType=cv2.BORDER_REPLICATE))
    begins: NDArray[np.bool_] = (level >= 0.5) & (ahead >= 0.5)
    seen: NDArray[np.bool_] = np.asarray(begins.any(axis=1))
    return seen, begins.argmax(axis=1)


def _ragged_mm(level: Floats, offsets: Array) -> float | None:
    """Of the levels (M, offsets) place by place along the line."""
    if len(level) < LEAST_PLACES:
        return None
    seen, at = _begins(level, STRAND_MM)
    if np.count_nonzero(seen) < LEAST_PLACES:
        return None
    edge = offsets[at[seen]].astype(np.float32)[:, None]
    return float(np.median(np.abs(edge - _along(edge, COURSE_MM))))


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


@dataclass(frozen=True, slots=True)
class _Ground:
    """The colours of bare skin and full hair beside each place of the line."""

    skin: Floats
    """(M, 3)."""
    towards: Floats
    """(M, 3), from skin to full hair."""

    @classmethod
    def of(cls, colours: Lab, offsets: Array) -> Self:
        """`colours` is (M, offsets, 3)."""
        skin, full = (
            _along(colours[:, (offsets >= low) & (offsets <= high)].mean(axis=1), COLOUR_BAND_MM)
            for low, high in (SKIN_MM, HAIR_MM)
        )
        return cls(skin, full - skin)

    @property
    def tells(self) -> NDArray[np.bool_]:
        """(M, 1), whether the two differ enough."""
        return np.asarray(np.linalg.norm(self.towards, axis=1, keepdims=True) >= LEAST_CONTRAST)

    def levels(self, colours: Lab) -> Floats:
        """(M, offsets), how far the way from skin to full hair is gone."""
        whole = np.maximum((self.towards**2).sum(axis=1, keepdims=True), np.float32(1e-6))
        gone = ((colours - self.skin[:, None]) * self.towards[:, None]).sum(axis=2)
        return np.asarray(gone / whole, dtype=np.float32)


def _along(values: Floats, sigma_mm: float) -> Floats:
    """Smoothed along the line, the first axis."""
    flat = values.reshape(len(values), -1)
    sigma = sigma_mm / SPACING_MM
    smooth = cv2.GaussianBlur(flat, (1, 0), sigmaX=1, sigmaY=sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(smooth, dtype=np.float32).reshape(values.shape)
