"""Which photos are measured: limits on the face that was found. Pure decisions; the refusal says what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vision.errors import PhotoError, Reason
from vision.types import FaceLandmarks


@dataclass(frozen=True, slots=True)
class FaceLimits:
    """One row per gate."""

    comparable_share: float = 0.5
    """A second face at least so high, as a share of the first, leaves open which one is meant."""
    outside_max_pct: float = 2.0
    """Share of the mesh's points that may lie outside the photo."""
    height_min_px: float = 120.0
    """Height of the mesh, upper forehead to chin: below it an iris has less than 10 px."""
    roll_max_deg: float = 30.0
    """Crops are turned upright with the face, so this one is wide."""
    yaw_max_deg: float = 20.0
    pitch_min_deg: float = -18.0
    pitch_max_deg: float = 30.0
    """Not symmetric: people who look straight into the camera have a pitch of 3 to 12 degrees."""


LIMITS = FaceLimits()

MAY_BE_UPSIDE_DOWN = frozenset({Reason.NO_FACE, Reason.YAW, Reason.PITCH, Reason.FACE_CUT_OFF})
"""What an upside-down face is refused for when nobody looks closer: no mesh, or a badly fitting one."""

_TOP, _CHIN = 10, 152


def choose_face(
    faces: Sequence[FaceLandmarks], *, width_px: int, height_px: int, limits: FaceLimits = LIMITS
) -> FaceLandmarks:
    """The face that counts, of `faces` in their stable order, in a photo of that size; raises `PhotoError`."""
    if not faces:
        raise PhotoError(Reason.NO_FACE)
    face = faces[0]
    comparable = sum(_height_px(other) >= limits.comparable_share * _height_px(face) for other in faces)
    if comparable > 1:
        raise PhotoError(Reason.MULTIPLE_FACES, {"faces": comparable, "max": 1})
    if (height := _height_px(face)) < limits.height_min_px:
        raise PhotoError(Reason.FACE_TOO_SMALL, {"face_height_px": round(height), "min": limits.height_min_px})
    if abs(face.pose.roll_deg) > limits.roll_max_deg:
        raise PhotoError(Reason.ROLL, {"roll_deg": round(face.pose.roll_deg, 1), "max": limits.roll_max_deg})
    outside = ((face.points < -0.5) | (face.points > (width_px - 0.5, height_px - 0.5))).any(axis=1)
    if (outside_pct := 100 * float(outside.mean())) > limits.outside_max_pct:
        raise PhotoError(Reason.FACE_CUT_OFF, {"outside_pct": round(outside_pct, 1), "max": limits.outside_max_pct})
    if abs(face.pose.yaw_deg) > limits.yaw_max_deg:
        raise PhotoError(Reason.YAW, {"yaw_deg": round(face.pose.yaw_deg, 1), "max": limits.yaw_max_deg})
    if not limits.pitch_min_deg <= face.pose.pitch_deg <= limits.pitch_max_deg:
        details = {"min": limits.pitch_min_deg, "max": limits.pitch_max_deg}
        raise PhotoError(Reason.PITCH, {"pitch_deg": round(face.pose.pitch_deg, 1), **details})
    return face


def _height_px(face: FaceLandmarks) -> float:
    return float(np.linalg.norm(face.points[_TOP] - face.points[_CHIN]))
