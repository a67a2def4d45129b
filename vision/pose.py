"""Head pose by fitting MediaPipe's canonical face to the landmarks.

MediaPipe's own transformation matrix assumes a camera whose axis goes through the middle of the picture and whose field
of view is 63 degrees: on a photo cropped off-centre its yaw and pitch drift by 4 degrees. The fit used here is a rigid
one in weak perspective (orthogonal Procrustes over the same points and weights that MediaPipe uses), so that a crop, a
resize or a border leaves the pose as it was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vision.types import Points, Pose

_CANONICAL: tuple[tuple[int, float, float, float, float], ...] = (
    # landmark, weight, then x (to the viewer's right), y (up), z (towards the camera) in cm
    (4, 0.0709, 0.0, -0.463, 7.587),
    (6, 0.0321, 0.0, 2.473, 5.789),
    (10, 0.0084, 0.0, 8.262, 4.482),
    (33, 0.0587, -4.446, 2.664, 3.173),
    (54, 0.0077, -6.279, 6.615, 1.426),
    (67, 0.0091, -3.524, 8.006, 3.729),
    (117, 0.0098, -5.259, 0.946, 2.974),
    (119, 0.0146, -3.301, 0.862, 3.873),
    (121, 0.0186, -1.821, 1.468, 4.224),
    (127, 0.0052, -7.743, 2.365, -2.005),
    (129, 0.1206, -1.786, -0.978, 4.85),
    (132, 0.0056, -7.271, -2.891, -2.252),
    (133, 0.0533, -1.856, 2.585, 3.758),
    (136, 0.0669, -5.085, -7.179, 0.715),
    (143, 0.0148, -6.408, 2.236, 1.561),
    (147, 0.0143, -6.235, -1.944, 1.664),
    (198, 0.0255, -1.247, 0.23, 5.681),
    (205, 0.0473, -3.833, -1.537, 4.138),
    (263, 0.0587, 4.446, 2.664, 3.173),
    (284, 0.0077, 6.279, 6.615, 1.426),
    (297, 0.0091, 3.524, 8.006, 3.729),
    (346, 0.0098, 5.259, 0.946, 2.974),
    (348, 0.0146, 3.301, 0.862, 3.873),
    (350, 0.0186, 1.821, 1.468, 4.224),
    (356, 0.0052, 7.743, 2.365, -2.005),
    (358, 0.1206, 1.786, -0.978, 4.85),
    (361, 0.0056, 7.271, -2.891, -2.252),
    (362, 0.0533, 1.856, 2.585, 3.758),
    (365, 0.0669, 5.085, -7.179, 0.715),
    (372, 0.0148, 6.408, 2.236, 1.561),
    (376, 0.0143, 6.235, -1.944, 1.664),
    (420, 0.0255, 1.247, 0.23, 5.681),
    (425, 0.0473, 3.833, -1.537, 4.138),
)
"""The 33 points of MediaPipe's face geometry module that carry a weight (Apache-2.0)."""

_INDEX = np.array([row[0] for row in _CANONICAL])
_WEIGHT = np.array([[row[1]] for row in _CANONICAL])
_WEIGHT = _WEIGHT / _WEIGHT.sum()
_MODEL = np.array([row[2:] for row in _CANONICAL])
_MODEL = _MODEL - (_WEIGHT * _MODEL).sum(axis=0)


def pose_of(points: Points, depth: NDArray[np.float64]) -> Pose:
    """Pose of the head from its (478, 2) points and (478,) depth, all in pixels, y down, smaller depth nearer.

    The rotation is read as yaw about the vertical, then pitch, then roll about the line of sight; all three are 0 for
    MediaPipe's canonical face. (People who look straight into the camera have a pitch of 3 to 12 degrees.)
    """
    found = np.column_stack([points[_INDEX, 0], -points[_INDEX, 1], -depth[_INDEX]])
    found = found - (_WEIGHT * found).sum(axis=0)
    u, _, vt = np.linalg.svd((found * _WEIGHT).T @ _MODEL)
    rotation = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    forward = rotation[:, 2]
    return Pose(
        yaw_deg=float(np.degrees(np.arctan2(forward[0], forward[2]))),
        pitch_deg=float(np.degrees(np.arctan2(-forward[1], np.hypot(forward[0], forward[2])))),
        roll_deg=float(-np.degrees(np.arctan2(rotation[1, 0], rotation[1, 1]))),
    )
