"""What a design asks for: the regions between its curve and the present hair, and their area on the head.

Seen from the glabella both lines are crossed once by every ray, so a region is a run of rays on which hair begins
further out than the design. Where a lock hides a short stretch of the hairline the region goes on as if it ran straight
there, and where the hairline is lost in the temple it goes on to the end of the design: a region with a notch, or cut
off in the middle of a temple, is what nobody would fill.

The area is that of the forehead's surface (`vision.forehead_surface`), not of its picture: a forehead slopes back to
the crown and round to the temples, which hides a quarter to a half of a region from a frontal view.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vision.designs.forehead import Forehead, polar
from vision.designs.present import PresentLine
from vision.forehead_surface import MODEL_SD
from vision.head import Array
from vision.types import Interval, Measurement, Points

STEP_DEG = 0.25
MIN_DEPTH = 0.05
"""Slivers that are nowhere deeper (2 mm) are the lines' own uncertainty, not a region to fill."""
BRIDGED_DEG = 12.0
"""The hairline is guessed for regions over so wide a gap in what was seen of it (15 mm)."""
DEPTH_STEPS = 8
"""Pieces of each strip of surface, from design to hair."""
LEVEL_STEPS = 24
Z95 = 1.96


@dataclass(frozen=True, slots=True)
class Region:
    """One region in polar face coordinates, by rays (N,)."""

    angle_deg: Array
    inner: Array
    """Distance of the design from the glabella."""
    outer: Array
    """That of the hair, or where the scalp that is seen ends."""

    @property
    def outline(self) -> Points:
        """(M, 2), the closed polygon in face coordinates: along the design and back along the hair."""
        return np.vstack([_places(self.angle_deg, self.inner), _places(self.angle_deg, self.outer)[::-1]])


def find_regions(
    curve: Points, present: PresentLine, *, further: float = 0.0, least_depth: float = MIN_DEPTH
) -> list[Region]:
    """Where hair would have to grow, from the subject's right to the left. `curve` (N, 2) in face coordinates.

    Beside its ends a region is closed by a level line outwards. `further` is by how much the hair is taken to begin
    further out than it was found.
    """
    angle_deg, radius = polar(np.vstack([_level(curve[0], -1.0)[::-1], curve, _level(curve[-1], 1.0)]))
    rays = np.arange(angle_deg[0], angle_deg[-1], STEP_DEG)
    inner, outer = np.interp(rays, angle_deg, radius), _guessed(rays, present.radius_at(rays), curve)
    outer = outer + further
    depth = np.nan_to_num(outer - inner, nan=-1.0)
    bounds = np.flatnonzero(np.diff(np.concatenate([[False], depth > 0, [False]]).astype(int)))
    return [
        Region(rays[start:end], inner[start:end], outer[start:end])
        for start, end in bounds.reshape(-1, 2)
        if depth[start:end].max() > least_depth
    ]


def _guessed(rays: Array, outer: Array, curve: Points) -> Array:
    """`outer` (N,) of the hair by rays, with narrow gaps filled; beside the outermost rays on which it is known it goes
    on to the ends of the `curve` (M, 2)."""
    if np.isnan(outer).all():
        return outer
    ends_deg, ends = polar(curve[[0, -1]])
    beyond = (ends_deg - rays[~np.isnan(outer)][[0, -1]]) * (-1, 1) > 0
    known_deg = np.concatenate([ends_deg[:1][beyond[:1]], rays[~np.isnan(outer)], ends_deg[1:][beyond[1:]]])
    known = np.concatenate([ends[:1][beyond[:1]], outer[~np.isnan(outer)], ends[1:][beyond[1:]]])
    after = np.clip(np.searchsorted(known_deg, rays), 1, len(known_deg) - 1)
    near = known_deg[after] - known_deg[after - 1] <= BRIDGED_DEG
    guess = np.interp(rays, known_deg, known, left=np.nan, right=np.nan)
    return np.where(np.isnan(outer) & near, guess, outer)


def _level(end: Points, outwards: float) -> Points:
    """(M, 2), from an end of the design level to the side, as far as any head reaches."""
    beyond = np.linspace(0, 1, LEVEL_STEPS)[1:]
    return np.column_stack([end[0] + outwards * beyond, np.full(beyond.shape, end[1])])


def surface_mm2(regions: list[Region], forehead: Forehead, mm_per_px: float) -> float:
    """Area of the regions on the head."""
    total = 0.0
    for region in regions:
        share = np.linspace(0, 1, DEPTH_STEPS + 1)[:, None]
        radius = region.inner + share * (region.outer - region.inner)
        face = _places(np.broadcast_to(region.angle_deg, radius.shape).ravel(), radius.ravel())
        grid = forehead.surface(face).reshape(*radius.shape, 3) * mm_per_px
        across, back = grid[1:, 1:] - grid[:-1, :-1], grid[1:, :-1] - grid[:-1, 1:]
        total += float(np.linalg.norm(np.cross(across, back), axis=-1).sum() / 2)
    return total


def area_interval_cm2(area_cm2: float, within: tuple[float, float], height: Measurement) -> Interval:
    """95 % interval of an area: the scale counts twice, the hair's edge may lie all along a little further in or out,
    and the head may be rounder or flatter than `vision.forehead_surface` has it.

    `within` are the areas with the hair's edge at the two ends of its own interval: of a design that the hair reaches
    the area is 0, and may be more. The scale's part is that of `height`, a length in the same place.
    """
    causes, mm = height.causes_mm, height.mm
    scale = 0.0
    if causes is not None and mm:
        scale = 2 * float(np.sqrt(causes.population_mm**2 + causes.fit_mm**2 + causes.pose_mm**2)) / mm
    of_size = np.hypot(scale * area_cm2, Z95 * MODEL_SD * area_cm2)
    less, more = max(0.0, area_cm2 - within[0]), max(0.0, within[1] - area_cm2)
    return Interval(max(0.0, area_cm2 - float(np.hypot(of_size, less))), area_cm2 + float(np.hypot(of_size, more)))


def _places(angle_deg: Array, radius: Array) -> Points:
    """(N, 2), face coordinates of polar ones."""
    angle = np.radians(angle_deg)
    places: Points = np.column_stack([radius * np.sin(angle), radius * np.cos(angle)])
    return places
