"""Finds upside-down faces without a parser: a mesh that fits moves with the picture, one that does not slips.

MediaPipe fits an upright mesh to most upside-down faces. Where it is looked for again in the picture mirrored and in
the picture turned by a few degrees, a good mesh comes back to the same place: over 32 portraits of people its midline
moved by 0.004 to 0.026 of the face height when mirrored, all of it by 0.002 to 0.008 (root mean square) when turned. Of
the 20 meshes found on the same portraits upside down, not one stayed within both limits; so where one does not, the
photo is turned, and the way up in which the mesh slips less is the right one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.errors import PhotoError, Reason
from vision.gates import LIMITS, MAY_BE_UPSIDE_DOWN, choose_face
from vision.resample import reduced_by
from vision.types import FaceLandmarks, Photo, Points, RgbImage

MIRRORED_MAX = 0.025
"""How far a point of the midline may lie from where it was, as a share of the face height."""
TURNED_MAX = 0.0085
"""The same for the root mean square over all points."""
SLIPS_MAX = 1.5
"""The face of a photo that is turned for a closer look must be this steady, in limits, to be one."""
TURN_DEG = 12.0
ROOM = 0.75
"""What is looked at around the face's box, in sides of it."""
SIDE_PX = 1024

_MIDLINE = (10, 151, 9, 8, 168, 6, 197, 195, 5, 4, 1, 2, 0, 13, 14, 17, 18, 200, 199, 175, 152)
_TOP, _CHIN = 10, 152


class Detector(Protocol):
    """What `vision.landmarks.LandmarkDetector` offers."""

    def find(self, rgb: RgbImage, step: Callable[[], None]) -> Sequence[FaceLandmarks]:
        """All faces, the one that counts first; `step` is called before each look."""

    def detect(self, rgb: RgbImage) -> Sequence[FaceLandmarks]:
        """The same in one pass."""


def find_face(photo: Photo, detector: Detector, step: Callable[[], None] = lambda: None) -> FaceLandmarks:
    """The face that counts, which passes all gates; raises `PhotoError`, UPSIDE_DOWN among others.

    `step` is called before each look; what it raises ends the search.
    """
    faces = detector.find(photo.rgb, step)
    try:
        face = choose_face(faces, width_px=photo.width_px, height_px=photo.height_px)
    except PhotoError as refused:
        if refused.reason in MAY_BE_UPSIDE_DOWN:
            step()
            slips = slip(photo.rgb, faces[0], detector) if faces else math.inf
            _refuse_upside_down(photo, slips, detector, step)
        raise
    step()
    if (slips := slip(photo.rgb, face, detector)) > 1:
        _refuse_upside_down(photo, slips, detector, step)
    return face


def _refuse_upside_down(photo: Photo, slips: float, detector: Detector, step: Callable[[], None]) -> None:
    """Raise `PhotoError` where the photo turned by 180 degrees shows a face whose mesh slips less."""
    small = reduced_by(photo.rgb, max(photo.rgb.shape) // (2 * SIDE_PX))  # so large as the closest look needs it
    turned = np.asarray(cv2.rotate(small, cv2.ROTATE_180), dtype=np.uint8)
    faces = detector.find(turned, step)
    step()
    if faces and slip(turned, faces[0], detector) < min(slips, SLIPS_MAX):
        raise PhotoError(Reason.UPSIDE_DOWN, {"roll_deg": 180, "max": LIMITS.roll_max_deg})


def slip(rgb: RgbImage, face: FaceLandmarks, detector: Detector) -> float:
    """How far the mesh of `face` in the picture (H, W, 3) moves when that is mirrored, or turned: 1 is the limit.

    Infinite where no face is found then.
    """
    part, points = _around(rgb, face)
    height_px = float(np.linalg.norm(points[_TOP] - points[_CHIN]))
    mirror = np.array([[-1.0, 0.0, part.shape[1] - 1.0], [0.0, 1.0, 0.0]])
    mirrored = _moved_by(part, points, mirror, detector)
    x, y = points.mean(axis=0)
    turn = np.asarray(cv2.getRotationMatrix2D((float(x), float(y)), TURN_DEG, 1.0), dtype=np.float64)
    turned = _moved_by(part, points, turn, detector)
    if mirrored is None or turned is None:
        return math.inf
    of_midline = float(mirrored[list(_MIDLINE)].max()) / (MIRRORED_MAX * height_px)
    return max(of_midline, float(np.sqrt((turned**2).mean())) / (TURNED_MAX * height_px))


def _moved_by(
    part: RgbImage, points: Points, transform: NDArray[np.float64], detector: Detector
) -> NDArray[np.float64] | None:
    """(478,): how far each point lies from where it should, in the transformed picture; None where no face is found."""
    seen = cv2.warpAffine(part, transform, part.shape[1::-1], flags=cv2.INTER_LINEAR)
    faces = detector.detect(np.ascontiguousarray(seen, dtype=np.uint8))
    if not faces:
        return None
    expected = points @ transform[:, :2].T + transform[:, 2]
    return np.asarray(np.linalg.norm(faces[0].points - expected, axis=1), dtype=np.float64)


def _around(rgb: RgbImage, face: FaceLandmarks) -> tuple[RgbImage, Points]:
    """The face with some room, at most about `SIDE_PX` large, and its mesh there."""
    box, limits = face.box, np.array([rgb.shape[1], rgb.shape[0]])
    size = np.array([box.width_px, box.height_px])
    low = np.maximum(0, np.floor(np.array([box.x_px, box.y_px]) - ROOM * size)).astype(int)
    high = np.minimum(limits, np.ceil(np.array([box.x_px, box.y_px]) + (1 + ROOM) * size)).astype(int)
    factor = max(1, int((high - low).max()) // SIDE_PX)
    part = reduced_by(np.ascontiguousarray(rgb[low[1] : high[1], low[0] : high[0]]), factor)
    return part, (face.points - low + 0.5) / factor - 0.5
