"""Landmarks made by hand, for decisions that need no model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vision.types import Box, FaceLandmarks, Pose

FRONTAL = Pose(yaw_deg=0.0, pitch_deg=7.0, roll_deg=0.0)


def face(
    *, height: float = 300, pose: Pose = FRONTAL, at: Mapping[int, tuple[float, float]] | None = None
) -> FaceLandmarks:
    """A face whose points all lie at (300, 300), but for its top and chin, `height` apart, and those given in `at`."""
    points = np.full((478, 2), 300.0)
    points[10, 1] -= height / 2
    points[152, 1] += height / 2
    for index, point in (at or {}).items():
        points[index] = point
    low, high = points.min(axis=0), points.max(axis=0)
    return FaceLandmarks(
        points=points,
        depth=np.zeros(478),
        transform=np.eye(4),
        pose=pose,
        box=Box(*low, *(high - low)),
        faces_found=1,
    )
