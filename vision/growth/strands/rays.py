"""The person's hairline and what is wanted before it, ray by ray from the glabella.

Angles are clockwise from straight up, in radians from -π to π; lengths are canvas pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.growth.backend import GrowthJob
from vision.growth.strands.looks import Looks
from vision.growth.strands.plot import Coarse, Floats
from vision.head import GLABELLA
from vision.types import Points

Array = NDArray[np.float64]

RAYS = 1024
"""Over the whole turn: 0.6 mm apart where the hairline is 100 mm away."""
STEEPEST = 1.6
"""The move changes along the front by no more than this, mm per mm: a region that ends with a step gets a slope."""
CALM_MM = 2.0
"""What is said of rays is smoothed over so much (standard deviation): lines are drawn finer than they are known."""
GENTLE = 0.4
"""Strands are bent by no more than that, mm per mm: where the front turns more sharply, it is cut out of hair that is
moved further (`moved.CUT_MM`)."""
GAP_MM = 12.0
"""Between two parts of a region hair goes on, as far as compositing lets it."""
BEYOND_MM = 4.0
"""So far the move goes on beyond the ends of the region, where compositing lets single hairs through."""
LEAST_MM = 1.0
"""A front that lies before the hairline by less than this everywhere needs no move."""
JOINED_MM = 5.0
"""A region with less skin than this between it and the hairline joins the hair."""
EDGE_MM = 2.5
"""Behind the hairline the parser is sure of hair from here on."""
BACKGROUND_MM = 2.0
"""So near to where the hair ends the background shines through."""
LEAST_ROOM_PX = 1.0
SKIN_MM, HAIR_MM = (-7.0, -4.0), (4.0, 8.0)
"""There bare skin and full hair are seen, from the hairline; towards the hair is positive."""
SEEN_MM = 4.0
"""A hairline is known to a few mm: so near to it lies the place half of the way from the one to the other."""
LEAST_RISE = 0.3
"""Of the level of hair, from 0 for skin to 1, from which it tells the place."""
LEVEL_MM = 0.8
"""Over so much that level is smoothed."""
STEP_MM = 0.2
STRANDS_OVER_MM, EDGE_OVER_MM = 2.0, 4.0
"""Along the hairline over which level and place are averaged (standard deviations): single strands are no edge, and the
line keeps its course."""
WIDENS = 0.6
"""Behind the front hair moves as its neighbourhood does, as wide (standard deviation) as this part of the depth: where
the front turns, only the roots follow it, and the strands behind lie as they lay."""
DEPTHS_MM = (0.0, 4.0, 8.0, 16.0, 32.0)
"""At which that is computed."""


@dataclass(frozen=True, slots=True)
class Rays:
    """All (RAYS,), clockwise from straight down."""

    own_px: Array
    """Where the person's hair begins."""
    room_px: Array
    """How deep it is behind that."""
    shift_px: Array
    """By how much it is to begin nearer."""
    behind_px: Array
    """(DEPTHS_MM, RAYS), how far what lies so deep behind the new front is moved: at the front no less than `shift_px`,
    behind it as its neighbourhood."""
    joined: Array
    """0 where the region does not join it, 1 elsewhere."""

    @classmethod
    def of(cls, job: GrowthJob, coarse: Coarse, looks: Looks) -> Self | None:
        """None where there is no hairline or no front, or where the front lies hardly anywhere before the hairline."""
        line = job.scene.hairline
        if line is None or job.front is None:
            return None
        centre = job.scene.landmarks[GLABELLA]
        angles = np.linspace(-np.pi, np.pi, RAYS, endpoint=False)
        radii = np.arange(_furthest(coarse, centre))
        x = (centre[0] + radii * np.sin(angles)[:, None]).astype(np.float32)
        y = (centre[1] - radii * np.cos(angles)[:, None]).astype(np.float32)
        wanted = np.asarray(cv2.remap(job.region, x, y, cv2.INTER_LINEAR, borderValue=0)) > 0.5
        some = np.asarray(wanted.any(axis=1))
        inner, outer = radii[wanted.argmax(axis=1)], radii[::-1][wanted[:, ::-1].argmax(axis=1)]
        own = _own(angles, line - centre, np.where(some, outer, np.nan))
        mm = coarse.mm / coarse.frame.step
        along_px = 2 * np.pi / RAYS * float(np.median(own))
        per_mm = 1 / (along_px * mm)
        at = coarse.frame.from_canvas(np.stack([x, y], axis=-1)).astype(np.float32)
        told = own
        own = told + _further(looks.level(coarse.rgb, coarse.hair, LEVEL_MM / coarse.mm), at, told, mm, per_mm)

        joined = _by_majority(some, outer + JOINED_MM / mm >= told)
        raw = _closed(np.where(some & joined, np.maximum(own - inner, 0.0), 0.0), round(GAP_MM * per_mm))
        shift = _no_steeper(_lengthened(raw, round(BEYOND_MM * per_mm)), STEEPEST * along_px)
        if shift.max() * mm < LEAST_MM:
            return None
        haired = np.asarray(cv2.remap(coarse.hair, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderValue=0)) > 0.5
        ends = ~haired & (radii >= np.maximum(own, told)[:, None] + EDGE_MM / mm)
        deep = np.where(ends.any(axis=1), radii[ends.argmax(axis=1)], radii[-1]) - own - BACKGROUND_MM / mm
        room = _no_steeper(np.maximum(deep, LEAST_ROOM_PX), STEEPEST * along_px)
        room, shift, joins = (_calm(of, CALM_MM * per_mm) for of in (room, shift, joined.astype(np.float64)))
        gentle = _calm(-_no_steeper(-shift, GENTLE * along_px), CALM_MM * per_mm)
        behind = [np.minimum(gentle, _calm(gentle, WIDENS * depth * per_mm)) for depth in DEPTHS_MM[1:]]
        return cls(own, room, shift, np.stack([gentle, *behind]), joins)

    def at(self, values: Array, angle: Floats, row: Floats | None = None) -> Floats:
        """Values of the rays, (RAYS,) or (rows, RAYS), at angles and rows (h, w)."""
        place = np.clip((angle + np.float32(np.pi)) * np.float32(RAYS / (2 * np.pi)), 0, RAYS)
        rows = np.atleast_2d(values).astype(np.float32)
        table = np.hstack([rows, rows[:, :1]])
        row = np.zeros_like(place) if row is None else row
        found = cv2.remap(table, place, row, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(found, dtype=np.float32)

    def move_at(self, angle: Floats, depth_mm: Floats) -> Floats:
        """(h, w), how far what lies at an angle and so deep behind the new front is moved."""
        return self.at(
            self.behind_px, angle, np.interp(depth_mm, DEPTHS_MM, np.arange(len(DEPTHS_MM))).astype(np.float32)
        )


def _furthest(coarse: Coarse, centre: Points) -> float:
    """From the centre (2,) to the furthest corner of the raster."""
    corners = np.array([(x, y) for x in (0, coarse.frame.width) for y in (0, coarse.frame.height)])
    return float(np.linalg.norm(coarse.frame.to_canvas(corners) - centre, axis=1).max())


def _own(angles: Array, line: Points, outer: Array) -> Array:
    """Radius of the hairline (N, 2), about the centre, on every ray; beyond its ends the region's far border."""
    line_angles = np.arctan2(line[:, 0], -line[:, 1])
    order = np.argsort(line_angles, kind="stable")
    ends = line_angles[order[[0, -1]]]
    radius = np.interp(angles, line_angles[order], np.hypot(*line[order].T))
    seen = (angles >= ends[0]) & (angles <= ends[1])
    own: Array = np.where(seen | np.isnan(outer), radius, outer)
    return own


def _further(level: Floats, at: Floats, own: Array, mm: float, per_mm: float) -> Array:
    """(RAYS,), px by which hair begins behind the hairline `own` by its level on the coarse raster; never before it,
    where shadows may be as dark.

    `at` (RAYS, radii, 2) are the places on the raster of every px of every ray; `per_mm` is rays to the mm.
    """
    offsets = np.arange(SKIN_MM[0], HAIR_MM[1], STEP_MM) / mm
    radius = np.maximum(own[:, None] + offsets, 0)
    places = (at[:, :1] + radius[..., None] * (at[:, 1:2] - at[:, :1])).astype(np.float32)
    seen = cv2.remap(level, places[..., 0], places[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    over = STRANDS_OVER_MM * per_mm
    seen = np.asarray(cv2.GaussianBlur(seen, (1, 0), sigmaX=1, sigmaY=over, borderType=cv2.BORDER_REPLICATE))
    skin, hair = (
        seen[:, (offsets >= low / mm) & (offsets < high / mm)].mean(axis=1) for low, high in (SKIN_MM, HAIR_MM)
    )
    is_hair = (seen >= ((skin + hair) / 2)[:, None]) & (np.abs(offsets) <= SEEN_MM / mm)
    known = ((hair - skin > LEAST_RISE) & is_hair.any(axis=1)).astype(np.float64)
    places_seen = known * np.maximum(offsets[is_hair.argmax(axis=1)], 0)
    total, weight = (_calm(values, EDGE_OVER_MM * per_mm) for values in (places_seen, known))
    # Far from where it is seen it lies where the parser says.
    further: Array = total / np.maximum(weight, 0.1)
    return further


def _by_majority(some: NDArray[np.bool_], holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What holds for most rays of a run of `some`, for all of it; True beside them."""
    decided = np.ones_like(some)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], some, [False]]).astype(int)))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        decided[start:end] = 2 * np.count_nonzero(holds[start:end]) > end - start
    return decided


def _closed(values: Array, span: int) -> Array:
    """Morphological closing: gaps of up to so many rays get the lower of the values at their ends."""
    row = values.astype(np.float32)[None]
    closed = cv2.morphologyEx(row, cv2.MORPH_CLOSE, np.ones((1, span | 1), np.uint8))
    return np.asarray(closed[0], dtype=np.float64)


def _lengthened(values: Array, span: int) -> Array:
    """The first and the last value that are not 0 go on for so many rays."""
    longer, filled = values.copy(), np.flatnonzero(values)
    if filled.size:
        longer[max(0, filled[0] - span) : filled[0]] = values[filled[0]]
        longer[filled[-1] + 1 : filled[-1] + 1 + span] = values[filled[-1]]
    return longer


def _no_steeper(values: Array, rise: float) -> Array:
    """The greatest function nowhere above the values that changes by at most `rise` from ray to ray."""
    slope = rise * np.arange(len(values))
    up = slope + np.minimum.accumulate(values - slope)
    down = (slope + np.minimum.accumulate(values[::-1] - slope))[::-1]
    least: Array = np.minimum(up, down)
    return least


def _calm(values: Array, sigma: float) -> Array:
    """Smoothed over rays."""
    smooth = cv2.GaussianBlur(values[None], (0, 1), sigmaX=sigma, sigmaY=1, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(smooth[0], dtype=np.float64)
