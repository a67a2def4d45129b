"""Which faces are measured; each refusal says what was measured and the limit it broke."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vision.faces import FRONTAL, face
from vision.errors import PhotoError, Reason
from vision.gates import LIMITS, choose_face
from vision.types import FaceLandmarks, Pose


def refusal(*faces: FaceLandmarks) -> PhotoError:
    with pytest.raises(PhotoError) as refused:
        choose_face(faces, width_px=600, height_px=600)
    return refused.value


def test_a_frontal_face_is_chosen() -> None:
    good = face()
    assert choose_face([good], width_px=600, height_px=600) is good


def test_no_face() -> None:
    assert refusal().reason is Reason.NO_FACE


def test_a_small_face_in_the_background_leaves_no_doubt() -> None:
    big, small = face(height=300), face(height=80)
    assert choose_face([big, small], width_px=600, height_px=600) is big


def test_two_comparable_faces() -> None:
    refused = refusal(face(height=300), face(height=160), face(height=40))
    assert refused.reason is Reason.MULTIPLE_FACES
    assert refused.details == {"faces": 2, "max": 1}


def test_a_small_face_tells_its_height() -> None:
    refused = refusal(face(height=97))
    assert refused.reason is Reason.FACE_TOO_SMALL
    assert refused.details == {"face_height_px": 97, "min": 120}


def test_a_face_cut_off_tells_how_much() -> None:
    refused = refusal(face(at=dict.fromkeys(range(200, 236), (610, 300))))
    assert refused.reason is Reason.FACE_CUT_OFF
    assert refused.details == {"outside_pct": 7.5, "max": 2}


@pytest.mark.parametrize(
    ("pose", "reason", "details"),
    [
        (replace(FRONTAL, yaw_deg=31.23), Reason.YAW, {"yaw_deg": 31.2, "max": 20}),
        (replace(FRONTAL, yaw_deg=-31.23), Reason.YAW, {"yaw_deg": -31.2, "max": 20}),
        (replace(FRONTAL, pitch_deg=40), Reason.PITCH, {"pitch_deg": 40, "min": -18, "max": 30}),
        (replace(FRONTAL, pitch_deg=-25), Reason.PITCH, {"pitch_deg": -25, "min": -18, "max": 30}),
        (replace(FRONTAL, roll_deg=-90), Reason.ROLL, {"roll_deg": -90, "max": 30}),
    ],
)
def test_a_turned_head_tells_which_way(pose: Pose, reason: Reason, details: dict[str, float]) -> None:
    refused = refusal(face(pose=pose))
    assert refused.reason is reason
    assert refused.details == details


@given(
    yaw=st.floats(-LIMITS.yaw_max_deg, LIMITS.yaw_max_deg),
    pitch=st.floats(LIMITS.pitch_min_deg, LIMITS.pitch_max_deg),
    roll=st.floats(-LIMITS.roll_max_deg, LIMITS.roll_max_deg),
    height=st.floats(LIMITS.height_min_px, 600),
)
def test_within_the_limits_every_face_passes(yaw: float, pitch: float, roll: float, height: float) -> None:
    found = face(height=height, pose=Pose(yaw, pitch, roll))
    assert choose_face([found], width_px=600, height_px=600) is found
