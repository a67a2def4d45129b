"""The ground that hair is to grow on, on two rasters.

*Coarse*: the head in cells of about `CELL_MM`, for everything that varies slowly. *Plot*: the canvas's own pixels
around the region, for what is drawn. Lengths are in mm at the plane of the face, directions are unit vectors (x right,
y down).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError
from vision.growth.scene import px_per_mm
from vision.resample import reduced_by
from vision.types import Label, ParsingMap, Points

Floats = NDArray[np.float32]
Places = NDArray[np.intp]
"""(N, 2), x and y of cells."""

CELL_MM = 0.4
HEAD_MM = 90.0
"""The coarse raster reaches so far beyond the region: on a bald head the own hair is that over the ears."""
MARGIN_MM = 14.0
"""The plot reaches so far beyond the region: hair that is rooted in it ends there, and nothing is painted beyond."""
LEAST_AREA_MM2 = 4.0
"""A region smaller than this is none."""
SAME_BORDER_MM = 4.0
"""Skin nearer to hair than this is no free border of a region."""

_NASION = 168


@dataclass(frozen=True, slots=True)
class Frame:
    """A raster over the canvas: pixel (x, y) of it lies at canvas pixel `origin + step * (x, y)`."""

    origin: tuple[float, float]
    step: float
    width: int
    height: int

    def canvas_grid(self) -> tuple[Floats, Floats]:
        """Canvas x and y (height, width) of every pixel."""
        x = np.float32(self.origin[0]) + np.float32(self.step) * np.arange(self.width, dtype=np.float32)
        y = np.float32(self.origin[1]) + np.float32(self.step) * np.arange(self.height, dtype=np.float32)
        return np.tile(x, (self.height, 1)), np.tile(y[:, None], (1, self.width))

    def from_canvas(self, points: Points | Places) -> Points:
        """(..., 2) canvas pixels to pixels of this raster."""
        placed: Points = (points - np.array(self.origin)) / self.step
        return placed

    def to_canvas(self, points: Points | Places) -> Points:
        """(..., 2) pixels of this raster to canvas pixels."""
        placed: Points = points * self.step + np.array(self.origin)
        return placed

    def resampled(self, values: Floats, other: Frame) -> Floats:
        """Values on this raster (H, W) or (H, W, C), on another one; linear, the border goes on."""
        x, y = other.canvas_grid()
        at_x, at_y = (x - np.float32(self.origin[0])) / self.step, (y - np.float32(self.origin[1])) / self.step
        out = cv2.remap(values, at_x, at_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(out, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Coarse:
    """The head in coarse cells, (h, w)."""

    frame: Frame
    mm: float
    """Size of a cell."""
    rgb: Floats
    """(h, w, 3), 0 to 1."""
    hair: Floats
    """The parser's probability."""
    skin: Floats
    region: Floats
    """0 to 1."""
    outward: Floats
    """(h, w, 2), away from the middle of the face: where hair grows to when nothing else is known."""


@dataclass(frozen=True, slots=True)
class Plot:
    """The canvas's pixels around the region, (h, w)."""

    frame: Frame
    mm: float
    """Size of a pixel."""
    rgb: Floats
    """(h, w, 3), 0 to 1."""
    region: Floats
    """0 to 1."""
    hair: Floats
    """The parser's probability."""
    depth_mm: Floats
    """Distance from the free border of the region; negative beyond it, infinite where there is none."""

    @property
    def window(self) -> tuple[slice, slice]:
        """Rows and columns of the canvas."""
        x, y = int(self.frame.origin[0]), int(self.frame.origin[1])
        return slice(y, y + self.frame.height), slice(x, x + self.frame.width)


def survey(job: GrowthJob) -> tuple[Coarse, Plot]:
    """Both rasters. Raises `GrowthUnavailableError` (NOTHING_TO_GROW) for a region of no size."""
    mm = 1 / px_per_mm(job.scene)
    if float(job.region.sum()) * mm**2 < LEAST_AREA_MM2:
        raise GrowthUnavailableError(GrowthReason.NOTHING_TO_GROW, "the region has no area")
    return _coarse(job, mm), _plot(job, mm)


def _around(region: Floats, margin_px: int) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of the region with a margin."""
    columns, rows = (np.flatnonzero(region.max(axis=axis) > 0) for axis in (0, 1))
    left, top = max(0, int(columns[0]) - margin_px), max(0, int(rows[0]) - margin_px)
    right = min(region.shape[1], int(columns[-1]) + margin_px + 1)
    bottom = min(region.shape[0], int(rows[-1]) + margin_px + 1)
    return left, top, right, bottom


def _coarse(job: GrowthJob, mm: float) -> Coarse:
    scene = job.scene
    cells = max(1, round(CELL_MM / mm))
    left, top, right, bottom = _around(job.region, round(HEAD_MM / mm))
    rgb = reduced_by(scene.rgb[top:bottom, left:right], cells)
    height, width = rgb.shape[:2]
    inset = (cells - 1) / 2
    frame = Frame((left + inset, top + inset), float(cells), width, height)
    region = job.region[top : top + height * cells, left : left + width * cells]
    x, y = frame.canvas_grid()
    away = np.stack([x - scene.landmarks[_NASION, 0], y - scene.landmarks[_NASION, 1]], axis=-1)
    away /= np.maximum(np.linalg.norm(away, axis=-1, keepdims=True), 1.0)
    return Coarse(
        frame=frame,
        mm=mm * cells,
        rgb=rgb.astype(np.float32) / np.float32(255),
        hair=_probability(scene.parsing, Label.HAIR, frame),
        skin=_probability(scene.parsing, Label.SKIN, frame),
        region=np.asarray(cv2.resize(region, (width, height), interpolation=cv2.INTER_AREA), dtype=np.float32),
        outward=away.astype(np.float32),
    )


def _plot(job: GrowthJob, mm: float) -> Plot:
    left, top, right, bottom = _around(job.region, round(MARGIN_MM / mm))
    frame = Frame((float(left), float(top)), 1.0, right - left, bottom - top)
    region = np.ascontiguousarray(job.region[top:bottom, left:right])
    hair = _probability(job.scene.parsing, Label.HAIR, frame)
    return Plot(
        frame=frame,
        mm=mm,
        rgb=job.scene.rgb[top:bottom, left:right].astype(np.float32) / np.float32(255),
        region=region,
        hair=hair,
        depth_mm=_depth(region, hair, None if job.front is None else frame.from_canvas(job.front), mm),
    )


def _probability(parsing: ParsingMap, label: int, frame: Frame) -> Floats:
    """(h, w) on a raster of the canvas; beyond the parsed part there is nothing."""
    x, y = frame.canvas_grid()
    (xx, xy, x0), (yx, yy, y0) = parsing.map_from_photo.astype(np.float32)
    at = (xx * x + xy * y + x0, yx * x + yy * y + y0)
    return np.asarray(cv2.remap(parsing.probabilities[label], *at, cv2.INTER_LINEAR, borderValue=0), dtype=np.float32)


def distance_mm(mask: NDArray[np.bool_], mm: float) -> Floats:
    """(h, w), how far the nearest place in the mask is; infinite without one."""
    if not mask.any():
        return np.full(mask.shape, np.inf, dtype=np.float32)
    found = cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    return np.asarray(found, dtype=np.float32) * np.float32(mm)


def _depth(region: Floats, hair: Floats, front: Points | None, mm: float) -> Floats:
    """How far inside the free border; a strip of skin left between region and hair is no free border."""
    inside, haired = region > 0.5, hair >= 0.5
    to_hair = distance_mm(haired, mm)
    bare = ~inside & (to_hair > SAME_BORDER_MM)
    if front is not None:
        line = np.zeros(region.shape, np.uint8)
        cv2.polylines(line, [np.round(front * 16).astype(np.int32)], isClosed=False, color=1, shift=4)
        bare |= (line > 0) & ~haired
    beyond = bare & ~inside
    return np.where(beyond, -distance_mm(inside, mm), distance_mm(bare, mm)).astype(np.float32)
