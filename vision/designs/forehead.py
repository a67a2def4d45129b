"""Coordinates on one forehead, in which a design is the same on every face, however the head is turned.

Face coordinates: `a` from the facial midline to the subject's left, `h` up from the glabella, along the head's own axes
as a frontal view would show them; unit: the distance of the outer corner of the eye from the midline, mean of both eyes
(38 to 48 mm). The forehead's depth is that of the mesh, continued (`vision.head.on_forehead`).
"""

from __future__ import annotations

import numpy as np

from vision.face_points import MESH_POINTS
from vision.head import Array, Spatial, head_axes, on_forehead, spatial_points
from vision.types import FaceLandmarks, Points

PLACING_STEPS = 60
"""Each step shrinks the error to a half or less on a head turned by as much as the gates allow."""
PLACED_PX = 1e-6


class Forehead:
    """Face coordinates of one face."""

    def __init__(self, landmarks: FaceLandmarks) -> None:
        axes = head_axes(landmarks.pose)
        mesh = spatial_points(landmarks)
        self._landmarks = landmarks
        self._axes = np.stack([axes.lateral, -axes.down])
        self._glabella = mesh[MESH_POINTS["glabella"]]
        eyes = mesh[MESH_POINTS["left_exocanthion"]] - mesh[MESH_POINTS["right_exocanthion"]]
        self.unit_px = float(eyes @ axes.lateral) / 2
        middle = mesh[MESH_POINTS["subnasale"]] - self._glabella
        self.middle_court = float(middle @ axes.down) / self.unit_px
        """Glabella to subnasale."""

    def to_face(self, points: Points) -> Points:
        """Photo pixels (N, 2) to face coordinates (N, 2)."""
        found: Points = (self.surface(points) - self._glabella) @ self._axes.T / self.unit_px
        return found

    def to_photo(self, face: Points) -> Points:
        """Face coordinates (N, 2) to photo pixels (N, 2): where `to_face` leads back to them."""
        frontal = np.linalg.inv(self._axes[:, :2])
        photo: Points = self._glabella[:2] + self.unit_px * face @ frontal.T
        for _ in range(PLACING_STEPS):
            error: Points = (face - self.to_face(photo)) * self.unit_px
            if np.abs(error).max(initial=0.0) < PLACED_PX:
                break
            photo = photo + error @ frontal.T
        return photo

    def surface(self, points: Points) -> Spatial:
        """(N, 3), photo pixels and the forehead's depth at photo pixels (N, 2)."""
        return on_forehead(self._landmarks, points)


def polar(face: Points) -> tuple[Array, Array]:
    """Angle (N,) in degrees against straight up, the subject's left positive, and distance (N,) from the glabella."""
    return np.degrees(np.arctan2(face[:, 0], face[:, 1])), np.hypot(face[:, 0], face[:, 1])
