"""The head's axes against the pose they come from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vision.measured_faces import laid, turned
from vision.forehead_surface import FOREHEAD, on_forehead
from vision.head import head_axes, photo_axes
from vision.pose import pose_of
from vision.types import Pose

poses = st.builds(Pose, yaw_deg=st.floats(-40, 40), pitch_deg=st.floats(-40, 40), roll_deg=st.floats(-60, 60))


@given(poses)
def test_axes_are_orthonormal_and_right_handed(pose: Pose) -> None:
    axes = head_axes(pose)
    basis = np.stack([axes.lateral, axes.down, axes.back])
    assert basis @ basis.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(basis) == pytest.approx(1)


def test_a_straight_head_looks_along_the_axes_of_the_photo() -> None:
    axes = head_axes(Pose(0.0, 0.0, 0.0))
    assert axes.lateral == pytest.approx([1, 0, 0])
    assert axes.down == pytest.approx([0, 1, 0])
    assert axes.back == pytest.approx([0, 0, 1])


@pytest.mark.parametrize(("yaw", "pitch"), [(18, 0), (-18, 0), (0, 15), (0, -10), (12, 14)])
def test_the_pose_of_a_turned_mesh_gives_back_how_it_was_turned(yaw: float, pitch: float) -> None:
    face = turned(yaw, pitch)
    found = pose_of(face.points, face.depth)
    assert (found.yaw_deg, found.pitch_deg, found.roll_deg) == pytest.approx((yaw, pitch, 0), abs=1e-6)


@pytest.mark.parametrize("roll", [-25.0, 0.0, 25.0])
def test_in_the_photo_down_follows_the_roll(roll: float) -> None:
    lateral, down = photo_axes(laid(roll_deg=roll))
    upright = photo_axes(laid())[1]
    turned_by = np.degrees(np.arctan2(upright[0] * down[1] - upright[1] * down[0], upright @ down))
    assert turned_by == pytest.approx(roll, abs=1e-6)
    assert lateral @ down == pytest.approx(0)


def test_the_forehead_goes_on_where_the_mesh_ends() -> None:
    face = laid()
    known = on_forehead(face, face.points[list(FOREHEAD)])
    width = float(face.points[454, 0] - face.points[234, 0])
    assert np.abs(known[:, 2] - face.depth[list(FOREHEAD)]).mean() < 0.05 * width
    up = on_forehead(face, face.points[[10]] - (0, 0.3 * width))[0, 2]
    side = on_forehead(face, face.points[[10]] + (0.3 * width, -0.3 * width))[0, 2]
    assert side > up + 0.02 * width
