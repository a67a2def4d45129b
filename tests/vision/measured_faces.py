"""Faces for the measuring stages, made from one mesh: laid anywhere, turned, mirrored; with a hairline and a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tests.vision.annotate_faces import MESH
from vision.face_points import MESH_POINTS
from vision.forehead_surface import FOREHEAD
from vision.head import USUAL_PITCH_DEG
from vision.pose import pose_of
from vision.types import (
    Box,
    FaceLandmarks,
    Hairline,
    HairlinePoint,
    HairlineState,
    IntervalCauses,
    Points,
    Pose,
    Scale,
    ScaleSource,
)

UPRIGHT: NDArray[np.float64] = MESH * 700.0
"""(478, 3): x, y, depth in pixels about the root of the nose; the face is 700 px wide."""
PAIRS = (
    *((MESH_POINTS[name], MESH_POINTS["right" + name[4:]]) for name in MESH_POINTS if name.startswith("left")),
    *((FOREHEAD[i], FOREHEAD[i + 1]) for i in range(3, len(FOREHEAD), 2)),
)
"""Points that change places in a mirror."""


def landmarks_of(spatial: NDArray[np.float64], pose: Pose | None = None) -> FaceLandmarks:
    """A face with these points (478, 3); its pose is fitted unless given."""
    low, high = spatial[:, :2].min(axis=0), spatial[:, :2].max(axis=0)
    return FaceLandmarks(
        points=spatial[:, :2],
        depth=spatial[:, 2],
        transform=np.eye(4),
        pose=pose or pose_of(spatial[:, :2], spatial[:, 2]),
        box=Box(*low, *(high - low)),
        faces_found=1,
    )


def laid(size: float = 1.0, roll_deg: float = 0.0, at: tuple[float, float] = (1000.0, 1000.0)) -> FaceLandmarks:
    """The face at another size, leaning to the viewer's right, elsewhere."""
    spatial = size * UPRIGHT @ _about(2, roll_deg).T
    spatial[:, :2] += at
    return landmarks_of(spatial)


def turned(yaw_deg: float, pitch_deg: float) -> FaceLandmarks:
    """The face as it looks when the head turns to its own left and nods."""
    upright = pose_of(UPRIGHT[:, :2], UPRIGHT[:, 2])
    # Out of its own pose into the new one; the head's frame has y up and depth towards the camera.
    flip = np.diag([1.0, -1.0, -1.0])
    old = _rotation(upright.yaw_deg, upright.pitch_deg) @ _about(2, -upright.roll_deg)
    spatial = UPRIGHT @ (flip @ _rotation(yaw_deg, pitch_deg) @ old.T @ flip).T
    spatial[:, :2] += 1000.0
    return landmarks_of(spatial, Pose(yaw_deg, pitch_deg, 0.0))


def straight() -> FaceLandmarks:
    """The face as it looks straight into the camera."""
    return turned(0.0, USUAL_PITCH_DEG)


def mirrored(face: FaceLandmarks) -> FaceLandmarks:
    """The face as a mirror shows it."""
    spatial = np.column_stack([2000.0 - face.points[:, 0], face.points[:, 1], face.depth])
    swapped = spatial.copy()
    for left, right in PAIRS:
        swapped[[left, right]] = spatial[[right, left]]
    return landmarks_of(swapped, replace(face.pose, yaw_deg=-face.pose.yaw_deg, roll_deg=-face.pose.roll_deg))


def hairline_of(
    face: FaceLandmarks,
    *,
    height: float = 0.42,
    hidden: Sequence[int] = (),
    state: HairlineState = HairlineState.OCCLUDED,
) -> Hairline:
    """A round hairline `height` glabella–menton distances above the glabella, highest a little off the midline.

    Of its 41 points those in `hidden` have `state`; the trichion is number 20.
    """
    glabella, menton = face.points[9], face.points[152]
    down = (menton - glabella) / np.linalg.norm(menton - glabella)
    across = np.array([down[1], -down[0]])
    reach = float(np.linalg.norm(menton - glabella))
    angles = np.radians(np.linspace(-75, 75, 41))
    radii = reach * height * (1 + 0.05 * np.sin(3 * np.abs(angles)))
    places: Points = glabella + radii[:, None] * (np.sin(angles)[:, None] * across - np.cos(angles)[:, None] * down)
    points = tuple(
        HairlinePoint(float(x), float(y), state if i in hidden else HairlineState.OBSERVED, 0.8)
        for i, (x, y) in enumerate(places)
    )
    status = points[20].state
    return Hairline(points, status, points[20] if status is HairlineState.OBSERVED else None, 0.004 * reach)


def scale_of(mm_per_px: float | None = 0.19, **causes: float) -> Scale:
    """A scale, by default with the usual causes."""
    return Scale(
        mm_per_px,
        ScaleSource.IRIS if mm_per_px else None,
        IntervalCauses(**{"population_pct": 6.4, "fit_pct": 2.0, "pose_pct": 1.0, **causes}),
        None,
        None,
    )


def _rotation(yaw_deg: float, pitch_deg: float) -> NDArray[np.float64]:
    return _about(1, yaw_deg) @ _about(0, pitch_deg)


def _about(axis: int, degrees: float) -> NDArray[np.float64]:
    turn = np.radians(degrees)
    a, b = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[a, a] = matrix[b, b] = np.cos(turn)
    matrix[a, b], matrix[b, a] = -np.sin(turn), np.sin(turn)
    return matrix
