"""How far the camera is told to be, and what lengths look like from where portraits are taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vision.measured_faces import hairline_of, laid, scale_of
from vision.anthropometry import LENGTHS, measure_face
from vision.perspective import EFFECTIVE_DEPTH_MM, NEAR_MM, NEAREST_MM, PORTRAIT_MM, as_in_portrait, camera_mm
from vision.types import FaceLandmarks

PUPILS = [468, 473]
MM_PER_PX = 0.19

distances = st.floats(NEAREST_MM, PORTRAIT_MM)


def near(distance_mm: float, face: FaceLandmarks | None = None) -> FaceLandmarks:
    """The face, drawn before from infinity, as a camera sees it that has its eyes' plane at the same size."""
    face = face or laid()
    centre = face.points[PUPILS].mean(axis=0)
    behind_mm = MM_PER_PX * (face.depth - face.depth[PUPILS].mean())
    shrink = distance_mm / (distance_mm + behind_mm)
    return replace(face, points=centre + (face.points - centre) * shrink[:, None])


def test_the_nearer_the_camera_the_nearer_it_is_told_to_be() -> None:
    told = [camera_mm(near(distance_mm)) for distance_mm in (300.0, 400.0, 600.0, 1000.0, 3000.0)]
    assert told == sorted(told)
    assert told[0] < 0.5 * told[-1]


@given(size=st.floats(0.2, 3.0), roll_deg=st.floats(-30, 30))
def test_the_distance_hangs_on_proportions_alone(size: float, roll_deg: float) -> None:
    face, other = near(400.0), near(400.0, laid())
    angle = np.radians(roll_deg)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    moved = replace(
        other,
        points=size * other.points @ turn,
        depth=size * other.depth,
        pose=replace(other.pose, roll_deg=other.pose.roll_deg + roll_deg),
    )
    assert camera_mm(moved) == pytest.approx(camera_mm(face), rel=0.01)


def test_a_face_no_camera_could_see_so_is_not_told_as_nearer_than_a_picture_allows() -> None:
    face = laid()
    narrow = replace(face, points=face.points.copy())
    for zygion in (234, 454):
        narrow.points[zygion, 0] = 0.6 * face.points[zygion, 0] + 0.4 * face.points[PUPILS, 0].mean()
    assert camera_mm(narrow) == NEAREST_MM


def test_a_broad_face_is_far_away() -> None:
    face = laid()
    broad = replace(face, points=face.points.copy())
    for zygion in (234, 454):
        broad.points[zygion, 0] += 0.5 * (face.points[zygion, 0] - face.points[PUPILS, 0].mean())
    assert camera_mm(broad) == np.inf


@given(distance_mm=st.floats(PORTRAIT_MM, 1e6), length=st.floats(1, 1000))
def test_from_far_away_nothing_changes(distance_mm: float, length: float) -> None:
    for name in ("face_width", "thirds.middle", "pupillary_distance"):
        assert as_in_portrait(name, length, distance_mm) == pytest.approx(length)


@given(distance_mm=distances)
def test_what_lies_behind_is_given_back_its_size_and_what_lies_before_loses_it(distance_mm: float) -> None:
    assert as_in_portrait("face_width", 1.0, distance_mm) >= 1
    assert as_in_portrait("thirds.middle", 1.0, distance_mm) <= 1
    assert as_in_portrait("nose_width", 1.0, distance_mm) == 1


def test_the_table_knows_no_length_that_is_not_measured() -> None:
    assert set(EFFECTIVE_DEPTH_MM) <= {length.name for length in LENGTHS}


def test_ratios_of_a_face_seen_from_near_are_given_both_ways() -> None:
    face = near(350.0)
    measured = measure_face(face, hairline_of(face), scale_of())
    for name, drop in (("face_height", 1), ("thirds.middle", 1), ("fifths.left_outer", -1), ("jaw_width", -1)):
        shown, corrected = measured[name].ratio, measured[name].ratio_perspective_corrected
        assert shown is not None
        assert corrected is not None
        assert drop * (shown / corrected - 1) > 0.005, name


@pytest.mark.parametrize("name", ["fifths.right_outer", "fifths.left_outer", "face_width", "temple_width"])
def test_the_interval_of_a_face_seen_from_near_holds_what_a_portrait_shows(name: str) -> None:
    """An outer fifth shrinks by more than the depth of its middle says."""
    face = laid()
    selfie, portrait = near(350.0, face), near(PORTRAIT_MM, face)
    assert camera_mm(selfie) < NEAR_MM
    shown = measure_face(selfie, hairline_of(selfie), scale_of())[name]
    true_mm = measure_face(portrait, hairline_of(portrait), scale_of())[name].mm
    assert shown.mm is not None
    assert true_mm is not None
    assert shown.mm < 0.95 * true_mm, "otherwise this shows nothing"
    assert shown.interval_same_person_mm is not None
    assert shown.interval_same_person_mm.low <= true_mm <= shown.interval_same_person_mm.high


def test_ratios_of_a_portrait_are_left_alone() -> None:
    face = laid()
    broad = replace(face, points=face.points.copy())
    for zygion in (234, 454):
        broad.points[zygion, 0] += 0.3 * (face.points[zygion, 0] - face.points[PUPILS, 0].mean())
    assert camera_mm(broad) >= PORTRAIT_MM
    for quantity in measure_face(broad, hairline_of(broad), scale_of()).values():
        assert quantity.ratio_perspective_corrected == pytest.approx(quantity.ratio)
