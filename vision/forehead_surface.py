"""The forehead as a surface, continued to where the mesh does not reach.

The mesh ends a third of the middle court below the hairline. What lies beyond has the shape of an average skull; the
mesh's own forehead says how strongly it is curved, how it is tilted and where it lies. On the test pictures that leaves
2.2 mm (root mean square) of the mesh's forehead unexplained, where a parabola leaves 3.8; the curvature it asks for is
1.06 times the average skull's, give or take 8 %, and it tilts it by no more than 3 degrees.
"""

from __future__ import annotations

import numpy as np

from vision.head import GLABELLA, Array, Spatial, frontal_axes, spatial_points
from vision.types import FaceLandmarks, Points

FOREHEAD = (10, 151, 9, 67, 297, 103, 332, 54, 284, 21, 251, 69, 299, 104, 333, 68, 298, 108, 337, 71, 301)
"""Points of the mesh on the forehead."""
SKULL = (0.205, 0.136, 0.096, 0.133, 0.034)
"""Depth of an adult's forehead and temples behind the glabella, up to 80 mm above it: the sum of these times a², h²,
a²h², a⁴ and h⁴, with `a` to the side and `h` up along `vision.head.frontal_axes`, all in units of
`ForeheadSurface.unit_px`. Least squares on the scalp of fsaverage (the mean of forty adults' MRI, as MNE-Python ships
it), 152 mm wide, at three heights of the head; 1.5 mm (root mean square) are left."""
MODEL_SD = 0.10
"""Of an area on the surface, as a share of it: how much single heads differ from this one. Where fsaverage, lower and
taller, and ellipsoids (half-axes 70 or 75, 100 to 115, 90 or 95 mm) take the place of four people's heads, the areas of
low designs are told 10 % too small to 20 % too large, 9 % root mean square. Heads measured one by one are not among
them."""
WIDEST, HIGHEST = 1.3, 2.0
"""Beyond them the surface goes on straight: there the head bends away from any frontal view."""
DEPTHS = np.linspace(-1.0, 3.0, 65)
"""Where along a line of sight the surface is looked for, in units behind the plane of the glabella."""
HALVINGS = 30

_RIGHT_EXOCANTHION, _LEFT_EXOCANTHION = 33, 263


class ForeheadSurface:
    """The forehead of one face, in the photo's frame with depth."""

    def __init__(self, landmarks: FaceLandmarks) -> None:
        axes, mesh = frontal_axes(landmarks.pose), spatial_points(landmarks)
        self._axes: Spatial = np.stack([axes.lateral, -axes.down, axes.back])
        self._glabella = mesh[GLABELLA]
        eyes = mesh[_LEFT_EXOCANTHION] - mesh[_RIGHT_EXOCANTHION]
        self.unit_px = float(eyes @ axes.lateral) / 2
        """Distance of the outer corner of the eye from the midline, mean of both eyes: 38 to 48 mm."""
        known = (mesh[list(FOREHEAD)] - self._glabella) @ self._axes.T / self.unit_px
        fitted = np.linalg.lstsq(_terms(known[:, :2]), known[:, 2], rcond=None)[0]
        self._coefficients: Array = np.asarray(fitted, dtype=np.float64)

    def at(self, face: Points) -> Spatial:
        """(N, 3), the surface at places (N, 2) to the subject's left of the glabella and above it, in units."""
        back = _terms(face) @ self._coefficients
        found: Spatial = self._glabella + self.unit_px * np.column_stack([face, back]) @ self._axes
        return found

    def seen_at(self, points: Points) -> Spatial:
        """(N, 3), where the lines of sight through points (N, 2) of the photo meet the surface.

        Those that pass by a head that is turned far end beside it, where they come nearest.
        """
        sight = self._axes[:, 2]
        start = (points - self._glabella[:2]) @ self._axes[:, :2].T / self.unit_px

        def behind(depth: Array) -> Array:
            at = start + depth[:, None] * sight
            return np.asarray(at[:, 2] - _terms(at[:, :2]) @ self._coefficients, dtype=np.float64)

        off = np.stack([behind(np.full(len(points), depth)) for depth in DEPTHS])
        hit = (off >= 0).any(axis=0)
        reached = np.where(hit, (off >= 0).argmax(axis=0), off.argmax(axis=0))
        far = DEPTHS[reached]
        near = np.where(hit, DEPTHS[np.maximum(reached - 1, 0)], far)
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            beyond = behind(middle) >= 0
            near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
        return np.column_stack([points, self._glabella[2] + far * self.unit_px])

    def face_of(self, places: Spatial) -> Points:
        """(N, 2), how far points (N, 3) lie to the subject's left of the glabella and above it, in units."""
        found: Points = (places - self._glabella) @ self._axes[:2].T / self.unit_px
        return found


def on_forehead(landmarks: FaceLandmarks, points: Points) -> Spatial:
    """(N, 3), points (N, 2) of the photo on the forehead, with the depth it has there."""
    return ForeheadSurface(landmarks).seen_at(points)


def _terms(face: Points) -> Array:
    """(N, 4): 1, to the left, up, and the skull's depth."""
    within = _within(face)
    beyond = face - np.column_stack(within)
    skull = _skull(*within) + (_skull_slopes(*within) * beyond).sum(axis=1)
    return np.column_stack([np.ones(len(face)), face, skull])


def _within(face: Points) -> tuple[Array, Array]:
    return np.clip(face[:, 0], -WIDEST, WIDEST), np.clip(face[:, 1], -HIGHEST, HIGHEST)


def _skull(a: Array, h: Array) -> Array:
    side, up, both, side_4, up_4 = SKULL
    return np.asarray(side * a**2 + up * h**2 + both * (a * h) ** 2 + side_4 * a**4 + up_4 * h**4, dtype=np.float64)


def _skull_slopes(a: Array, h: Array) -> Points:
    """(N, 2), the skull's derivatives by `a` and `h`."""
    side, up, both, side_4, up_4 = SKULL
    by_a = 2 * a * (side + both * h**2 + 2 * side_4 * a**2)
    return np.column_stack([by_a, 2 * h * (up + both * a**2 + 2 * up_4 * h**2)])
