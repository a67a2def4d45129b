"""Face coordinates: the same on every photo of a face, however it is turned, sized and placed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vision.measured_faces import laid, turned
from vision.designs.forehead import Forehead, polar
from vision.face_points import MESH_POINTS
from vision.gates import LIMITS
from vision.types import FaceLandmarks

GRID = np.array([(a, h) for a in np.linspace(-1.6, 1.6, 9) for h in np.linspace(0.3, 2.4, 8)])


@given(
    yaw_deg=st.floats(-LIMITS.yaw_max_deg, LIMITS.yaw_max_deg),
    pitch_deg=st.floats(LIMITS.pitch_min_deg, LIMITS.pitch_max_deg),
)
def test_to_the_photo_and_back(yaw_deg: float, pitch_deg: float) -> None:
    forehead = Forehead(turned(yaw_deg, pitch_deg))
    placed = forehead.to_photo(GRID)
    assert np.isfinite(placed).all()
    back = forehead.to_face(placed)
    # Further out and up a head turned far, or with its chin up, hides its own temple and crown.
    seen = (np.abs(GRID[:, 0]) <= (1.0 if pitch_deg > -8 else 0.6)) & (GRID[:, 1] <= 1.5)
    np.testing.assert_allclose(back[seen], GRID[seen], atol=1e-6)
    if abs(yaw_deg) < 8 and pitch_deg > 0:
        np.testing.assert_allclose(back[GRID[:, 1] <= 1.5], GRID[GRID[:, 1] <= 1.5], atol=1e-6)


def test_what_no_forehead_reaches_is_placed_beside_it() -> None:
    """Where there is no surface to meet, nothing jumps and nothing is infinite."""
    forehead = Forehead(turned(LIMITS.yaw_max_deg, 0.0))
    level = np.column_stack([np.linspace(0, -6, 61), np.full(61, 0.5)])
    across = forehead.to_photo(level)[:, 0]
    assert (np.diff(across) < 0).all()
    assert (np.diff(across) > -0.2 * forehead.unit_px).all()
    beyond = np.column_stack([np.linspace(200, 1800, 161), np.full(161, 800.0)])
    found = forehead.to_face(beyond)
    assert np.isfinite(found).all()
    assert (np.abs(np.diff(found[:, 0])) < 0.3).all()


@given(size=st.floats(0.2, 3.0), roll_deg=st.floats(-30, 30), x=st.floats(-500, 4000), y=st.floats(-500, 4000))
def test_coordinates_move_with_the_face(size: float, roll_deg: float, x: float, y: float) -> None:
    still, moved = laid(), laid(size, roll_deg, (x, y))
    roll = np.radians(roll_deg)
    turn = np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
    expected = size * (Forehead(still).to_photo(GRID) - 1000.0) @ turn.T + (x, y)
    np.testing.assert_allclose(Forehead(moved).to_photo(GRID), expected, atol=1e-3 * size)


@pytest.mark.parametrize("face", [laid(), laid(0.5, 20.0), turned(10, 5)])
def test_the_unit_is_the_mean_distance_of_the_eye_corners_from_the_midline(face: FaceLandmarks) -> None:
    forehead = Forehead(face)
    eyes = face.points[[MESH_POINTS["right_exocanthion"], MESH_POINTS["left_exocanthion"]]]
    across = float(np.linalg.norm(eyes[1] - eyes[0])) / forehead.unit_px
    assert across == pytest.approx(2.0 * np.cos(np.radians(face.pose.yaw_deg)), rel=0.02)


def test_left_is_the_subjects_and_up_is_up() -> None:
    landmarks = laid()
    left, up = Forehead(landmarks).to_photo(np.array([[1.0, 1.0], [0.0, 2.0]]))
    glabella = landmarks.points[MESH_POINTS["glabella"]]
    assert left[0] > glabella[0] + 100
    assert up[1] < glabella[1] - 100
    angle_deg, radius = polar(np.array([[1.0, 1.0], [0.0, 2.0]]))
    np.testing.assert_allclose(angle_deg, [45.0, 0.0])
    np.testing.assert_allclose(radius, [np.sqrt(2), 2.0])
