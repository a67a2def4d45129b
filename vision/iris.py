"""One iris, fitted at its sub-pixel edge: the limbus, where the dark iris turns into the white of the eye.

MediaPipe's five iris points only say where to look: on studio portraits their diameter is 2 to 12 % too large. Rays
leave the iris centre to the nasal and the temporal side, away from the lids; on each the place is taken where
brightness has gone half its way from iris to sclera, which symmetric blur does not move. A circle is fitted to these
places by weighted least squares that give up outliers (lashes, reflections, a lid), first with few rays about the iris
points, then with more about the circle found. All lengths inside are in radii of the iris points, so that it holds at
any size of the photo.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.types import IrisFit, Points, RgbImage

Array = NDArray[np.float64]

MIN_DIAMETER_PX = 10.0
"""Smaller irises have an edge as wide as themselves: no fit."""

FIRST_RADIUS = 0.95
"""The circle the first pass begins with, in radii of the iris points, which lie outside of the limbus."""
PATCH_RADIUS = 32
"""Samples per radius in the straightened patch; smaller irises are interpolated up to it."""
PATCH_REACH = 1.9
"""Half-width of the patch, in radii."""
RAY_STEP = 0.02
"""Distance of two samples on a ray, in radii."""
PLATEAU = (0.06, 0.18)
"""Iris and sclera brightness are read so far inside and outside of the edge, in radii."""
RIM_QUANTILE = 0.1
"""Many irises are darkest at their rim, and it is this rim that ends: the darkest tenth of the iris side counts."""
MIN_CONTRAST = 10.0
"""Grey levels (of 255) between iris and sclera below which a ray says nothing."""
GLARE_LEVEL = 235.0
"""Grey level from which a sample just inside the edge is a reflection."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One round of rays and circle."""

    reach_deg: float
    """Rays go so far up and down from the line between the eye corners, to either side."""
    search: float
    """The edge is looked for so far inside and outside of the circle known so far, in radii."""
    outlier: float
    """Scale of the redescending weight (Tukey's biweight is nil at twice this), in radii."""


PASSES = (Pass(reach_deg=20.0, search=0.28, outlier=0.08), Pass(reach_deg=40.0, search=0.10, outlier=0.04))
RAY_EVERY_DEG = 2.5

MIN_RAYS_PER_SIDE = 4
FULL_RAYS_PER_SIDE = 14
"""As many accepted rays on each side give the full weight."""
HEIGHT_PRIOR = 0.1
"""Side arcs alone hardly hold the height of the centre: a weak pull to the iris points, standard deviation in radii."""
EDGE_DEFINITION = 0.06
"""Standard deviation with which half-way is the limbus, as a share of the width of the brightness transition."""
CORRELATED_RAYS = 3.0
"""Neighbouring rays see the same lashes and the same blur: so many count as one."""

MIN_RAYS_PER_HALF = 3
ONE_HALF = 0.3
"""Where the lids leave only rays above or below the centre, the other half counts as so much different."""
HALVES_CHANCE = 0.03
HALVES_SHARE = 0.5
"""Upper and lower rays of an open eye differ by up to 3 %; lids over an eye that is half closed make it 25 %. Half of
what goes beyond chance is the standard deviation of their mean."""


@dataclass(frozen=True, slots=True)
class EyePoints:
    """Where one eye lies, in pixels of the upright photo."""

    iris: Points
    """(5, 2), centre and four edge points."""
    outer_corner: Array
    """(2,), exocanthion."""
    inner_corner: Array
    """(2,), endocanthion."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Limbus places found by one pass, in radii about the iris point centre."""

    points: Points
    widths: Array
    """(N,), width of the brightness transition."""
    glared: int
    """Rays lost to reflections."""

    def per_side(self, kept: NDArray[np.bool_]) -> int:
        """Kept edges on the side that has fewer."""
        right = kept & (self.points[:, 0] > 0)
        return int(min(right.sum(), kept.sum() - right.sum()))


def fit_iris(rgb: RgbImage, eye: EyePoints, foreshortening: float) -> IrisFit | None:
    """The iris of one eye in the photo (H, W, 3), or None where no limbus can be seen.

    `foreshortening` is the cosine of the gaze against the line of sight: the horizontal diameter is divided by it.
    """
    centre = eye.iris[0]
    along = eye.inner_corner - eye.outer_corner
    axis = along / np.linalg.norm(along)
    across = np.array([-axis[1], axis[0]])
    radius = float(np.abs((eye.iris[1:] - centre) @ axis).max())
    if 2 * radius < MIN_DIAMETER_PX or not (0 <= centre[0] < rgb.shape[1] and 0 <= centre[1] < rgb.shape[0]):
        return None
    # Patch x runs along the eye corners in foreshortened radii, so that a turned iris is a circle again.
    to_photo = np.column_stack([axis * foreshortening, across]) * radius
    patch = _patch(rgb, centre, to_photo)

    circle = np.array([0.0, 0.0, FIRST_RADIUS])
    for stage in PASSES:
        edges = _edges(patch, circle, stage)
        if edges.per_side(np.ones(len(edges.points), dtype=bool)) < MIN_RAYS_PER_SIDE:
            return None
        circle = _circle(edges.points, stage.outlier)
        weights = _weights(edges.points, circle, stage.outlier)
    kept = edges.per_side(weights > 0.25)
    if kept < MIN_RAYS_PER_SIDE:
        return None
    rays = len(edges.points)
    fitted = centre + to_photo @ circle[:2]
    return IrisFit(
        centre_px=(float(fitted[0]), float(fitted[1])),
        diameter_px=float(2 * circle[2] * radius),
        sd_px=_diameter_sd(edges, weights, circle, stage.outlier) * radius,
        weight=min(1.0, kept / FULL_RAYS_PER_SIDE) * rays / (rays + edges.glared),
    )


def _patch(rgb: RgbImage, centre: Array, to_photo: Array) -> NDArray[np.float32]:
    """The eye in grey, straightened to `PATCH_RADIUS` samples per radius; low-passed first where the photo is finer."""
    half = int(PATCH_REACH * PATCH_RADIUS)
    step = float(np.linalg.norm(to_photo[:, 1])) / PATCH_RADIUS
    reach = int(np.ceil(1.5 * half * step)) + 4
    x0, y0 = (max(0, int(c) - reach) for c in centre)
    part = rgb[y0 : int(centre[1]) + reach, x0 : int(centre[0]) + reach]
    grey = np.asarray(cv2.cvtColor(part, cv2.COLOR_RGB2GRAY), dtype=np.float32)
    if step > 1:
        grey = np.asarray(cv2.GaussianBlur(grey, (0, 0), 0.5 * step), dtype=np.float32)
    linear = to_photo / PATCH_RADIUS
    matrix = np.column_stack([linear, centre - (x0, y0) - linear @ np.full(2, half)])
    patch = cv2.warpAffine(
        grey,
        matrix,
        (2 * half + 1, 2 * half + 1),
        flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return np.asarray(patch, dtype=np.float32)


def _edges(patch: NDArray[np.float32], circle: Array, stage: Pass) -> Edges:
    """Limbus places on rays from the centre of `circle` (x, y, radius)."""
    reach = stage.search + PLATEAU[1]
    radii = np.arange(circle[2] - reach, circle[2] + reach + RAY_STEP / 2, RAY_STEP)
    fan = np.radians(np.arange(-stage.reach_deg, stage.reach_deg + 0.1, RAY_EVERY_DEG))
    angles = np.concatenate([fan, fan + np.pi])
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    places = circle[:2] + radii[None, :, None] * directions[:, None, :]
    at = (patch.shape[0] // 2 + PATCH_RADIUS * places).astype(np.float32)
    profiles = cv2.remap(patch, at[..., 0], at[..., 1], cv2.INTER_LINEAR).astype(np.float64)
    index, width, seen, reflection = _edges_on_rays(profiles)
    good = seen & ~reflection
    found = circle[:2] + directions * (radii[0] + index * RAY_STEP)[:, None]
    return Edges(found[good], width[good] * RAY_STEP, int(np.count_nonzero(seen & reflection)))


def _edges_on_rays(profiles: Array) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Per ray (N,): where its profile (N, M) is half-way from iris to sclera and over which width, both in samples;
    whether that was seen; and whether a reflection lies at it.
    """
    near, far = (round(p / RAY_STEP) for p in PLATEAU)
    sums = np.cumsum(np.pad(profiles, ((0, 0), (1, 0))), axis=1)
    at = np.arange(far, profiles.shape[1] - far)
    rises = (sums[:, at + far + 1] - sums[:, at + near]) - (sums[:, at - near + 1] - sums[:, at - far])
    best = at[np.argmax(rises, axis=1)][:, None]
    plateau = np.arange(near, far + 1)
    low = np.quantile(np.take_along_axis(profiles, best - plateau, axis=1), RIM_QUANTILE, axis=1)
    high = np.median(np.take_along_axis(profiles, best + plateau, axis=1), axis=1)
    level = (profiles - low[:, None]) / np.maximum(high - low, MIN_CONTRAST)[:, None]
    start, middle, end = (_crossing(level, best, value) for value in (0.25, 0.5, 0.75))
    seen = (high - low >= MIN_CONTRAST) & ~np.isnan(start + middle + end)
    inside = np.take_along_axis(profiles, best - np.arange(1, far + 1), axis=1)
    reflection: NDArray[np.bool_] = inside.max(axis=1) > GLARE_LEVEL
    return middle, 2 * np.abs(end - start), seen, reflection


def _crossing(level: Array, near: NDArray[np.intp], value: float) -> Array:
    """(N,), index with fraction of the upward crossing of `value` closest to `near` (N, 1); NaN without one."""
    ups = (level[:, :-1] < value) & (level[:, 1:] >= value)
    index = np.argmin(np.where(ups, np.abs(np.arange(ups.shape[1]) - near), np.inf), axis=1)
    rays = np.arange(len(level))
    found = ups[rays, index]
    below, above = level[rays, index], level[rays, index + 1]
    return np.where(found, index + (value - below) / np.where(found, above - below, 1.0), np.nan)


def _weights(points: Points, circle: Array, outlier: float) -> Array:
    """Tukey's biweights of the edge points about a circle."""
    off = np.linalg.norm(points - circle[:2], axis=1) - circle[2]
    weights: Array = np.clip(1 - (off / (2 * outlier)) ** 2, 0, None) ** 2
    return weights


def _circle(points: Points, outlier: float) -> Array:
    """Robust circle (x, y, radius) through the edge points, begun half-way between the medians of the two sides."""
    right = float(np.median(points[points[:, 0] > 0, 0]))
    left = float(np.median(points[points[:, 0] <= 0, 0]))
    circle = np.array([(right + left) / 2, 0.0, (right - left) / 2])
    for _ in range(15):
        weights = _weights(points, circle, outlier)
        towards = points - circle[:2]
        distance = np.linalg.norm(towards, axis=1)
        jacobian = np.column_stack([towards / distance[:, None], np.ones(len(points))])
        pull = outlier / HEIGHT_PRIOR
        root = np.sqrt(weights)
        rows = np.vstack([jacobian * root[:, None], [0.0, pull, 0.0]])
        values = np.append((distance - circle[2]) * root, -circle[1] * pull)
        circle = circle + np.linalg.lstsq(rows, values, rcond=None)[0]
    return circle


def _diameter_sd(edges: Edges, weights: Array, circle: Array, outlier: float) -> float:
    """Standard deviation of the diameter, in radii: scatter of the rays, what counts as the limbus, and whether the
    rays above and below the centre tell of the same circle.
    """
    off = np.linalg.norm(edges.points - circle[:2], axis=1) - circle[2]
    scatter = float(np.sqrt((weights * off**2).sum() / weights.sum()))
    independent = max(1.0, float(weights.sum()) / 2 / CORRELATED_RAYS)
    width = float(np.median(edges.widths[weights > 0.25]))
    upper = edges.points[:, 1] < circle[1]
    apart = ONE_HALF * float(circle[2])
    if min(edges.per_side(upper), edges.per_side(~upper)) >= MIN_RAYS_PER_HALF:
        apart = float(_circle(edges.points[upper], outlier)[2] - _circle(edges.points[~upper], outlier)[2])
    beyond = max(0.0, abs(apart) - HALVES_CHANCE * float(circle[2]))
    causes = [scatter * np.sqrt(2 / independent), 2 * EDGE_DEFINITION * width, 2 * HALVES_SHARE * beyond]
    return float(np.linalg.norm(causes))
