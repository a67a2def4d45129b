"""Coordinates on one forehead, in which a design is the same on every face, however the head is turned.

Face coordinates: `a` from the facial midline to the subject's left, `h` up from the glabella, along the head's own axes
as a frontal view would show them; unit: the distance of the outer corner of the eye from the midline, mean of both eyes
(38 to 48 mm). The forehead's depth is that of the mesh, continued (`vision.head.on_forehead`).
"""

from __future__ import annotations

import numpy as np

from vision.face_points import MESH_POINTS
from vision.head import Array, Spatial, forehead_depth, head_axes, on_forehead, photo_axes, spatial_points
from vision.types import FaceLandmarks, Points


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
        """Face coordinates (N, 2) to photo pixels (N, 2): where `to_face` leads back to them.

        The continued forehead of a head turned far ends somewhere behind the temple; what lies beyond is placed there.
        """
        # With the photo's axes u and v and the depth c0 + c1 u + c2 v + c3 u², both coordinates are linear in v, and
        # what remains is a quadratic equation for u. The photo's u has no share in the head's vertical axis.
        c0, c1, c2, c3 = forehead_depth(self._landmarks)
        u_axis, v_axis = photo_axes(self._landmarks)
        lateral, lateral_depth = self._axes[0, :2], self._axes[0, 2]
        up, up_depth = self._axes[1, :2], self._axes[1, 2]
        across, above = face.T * self.unit_px
        behind = c0 - self._glabella[2]
        v_of_up = up @ v_axis + c2 * up_depth
        ratio = (lateral @ v_axis + c2 * lateral_depth) / v_of_up
        share = lateral_depth - ratio * up_depth
        square, linear = share * c3, lateral @ u_axis + share * c1
        constant = share * behind + ratio * above - across
        most = linear**2 / 4
        constant *= most / np.maximum(square * constant, most)
        u = -2 * constant / (linear + 2 * np.sqrt(most - np.minimum(square * constant, most)))
        v = (above - up_depth * (behind + c1 * u + c3 * u * u)) / v_of_up
        photo: Points = self._glabella[:2] + u[:, None] * u_axis + v[:, None] * v_axis
        return photo

    def surface(self, points: Points) -> Spatial:
        """(N, 3), photo pixels and the forehead's depth at photo pixels (N, 2)."""
        return on_forehead(self._landmarks, points)


def polar(face: Points) -> tuple[Array, Array]:
    """Angle (N,) in degrees against straight up, the subject's left positive, and distance (N,) from the glabella."""
    return np.degrees(np.arctan2(face[:, 0], face[:, 1])), np.hypot(face[:, 0], face[:, 1])
