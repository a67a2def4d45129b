"""Coordinates on one forehead, in which a design is the same on every face, however the head is turned.

Face coordinates: `a` from the facial midline to the subject's left, `h` up from the glabella, along the head's own axes
as a frontal view would show them; unit: the distance of the outer corner of the eye from the midline, mean of both eyes
(38 to 48 mm).
"""

from __future__ import annotations

import numpy as np

from vision.face_points import MESH_POINTS
from vision.forehead_surface import ForeheadSurface
from vision.head import GLABELLA, Array, Spatial, frontal_axes, spatial_points
from vision.types import FaceLandmarks, Points


class Forehead:
    """Face coordinates of one face."""

    def __init__(self, landmarks: FaceLandmarks) -> None:
        self._surface = ForeheadSurface(landmarks)
        self.unit_px = self._surface.unit_px
        mesh = spatial_points(landmarks)
        middle = mesh[MESH_POINTS["subnasale"]] - mesh[GLABELLA]
        self.middle_court = float(middle @ frontal_axes(landmarks.pose).down) / self.unit_px
        """Glabella to subnasale."""

    def to_face(self, points: Points) -> Points:
        """Photo pixels (N, 2) to face coordinates (N, 2)."""
        return self._surface.face_of(self._surface.seen_at(points))

    def to_photo(self, face: Points) -> Points:
        """Face coordinates (N, 2) to photo pixels (N, 2): where `to_face` leads back to them."""
        photo: Points = self._surface.at(face)[:, :2]
        return photo

    def surface(self, face: Points) -> Spatial:
        """(N, 3), photo pixels and depth at face coordinates (N, 2)."""
        return self._surface.at(face)


def polar(face: Points) -> tuple[Array, Array]:
    """Angle (N,) in degrees against straight up, the subject's left positive, and distance (N,) from the glabella."""
    return np.degrees(np.arctan2(face[:, 0], face[:, 1])), np.hypot(face[:, 0], face[:, 1])
