"""What the reader of the numbers should know about the photo, each with the value measured and its limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.head import USUAL_PITCH_DEG
from vision.perspective import NEAR_MM, camera_mm
from vision.scale import GLASSES_SHARE, glasses_share
from vision.types import FaceLandmarks, Label, ParsingMap, Photo, PhotoWarning, Pose

CHILD = "CHILD"
"""The reason of the warning by which other parts know a child."""
CHILD_IRIS_SHARE = 0.24
"""Iris diameter over pupillary distance. The iris is full-grown at two, the distance is not: 11.7 mm over 49 mm. Adults
of the test pictures 0.18 to 0.22, the infant 0.27."""
CHILD_MIDFACE_SHARE = 0.63
"""Height from the root of the nose to its base over pupillary distance: the middle of the face grows last. Adults of
the test pictures 0.66 to 0.90 (mean 0.78), the boy 0.60."""
PEOPLES_IRIS_SHARE = (0.075, 0.115)
"""Iris diameter over face width: 11.7 mm over 100 mm in infants, over 150 in the broadest adults. Outside of it the
eyes are not those of a person: painted, drawn, a doll's. People of the test pictures 0.081 to 0.109."""
UNTILTED_PITCH_DEG = (USUAL_PITCH_DEG - 12, USUAL_PITCH_DEG + 12)
"""Beyond it heights on the forehead are wrong by several millimetres: the mesh shrinks how far a head nods
(`vision.anthropometry.PITCH_SHRINKS`). Portraits and selfies of adults at hand are told as -3 to 17 degrees, and as -10
the one that was taken from below."""
ONE_TONE = 0.03
"""Interquartile range of the skin's brightness over its median: below it nothing is shaded, as in flat drawings. People
of the test pictures 0.13 and more, overexposed 0.06."""

_RIGHT_PUPIL, _LEFT_PUPIL = 468, 473
_IRISES = ((469, 471), (474, 476))
_ZYGIA = (234, 454)
_NOSE_ROOT, _SUBNASALE = 168, 2
_STRIDE = 4
_FROM_EDGE = 9


def find_warnings(photo: Photo, landmarks: FaceLandmarks, parsing: ParsingMap) -> tuple[PhotoWarning, ...]:
    """CHILD, PERSPECTIVE, NOT_A_PHOTO, HEAD_TILTED and GLASSES, where they hold; each once at most."""
    found = [*_of_proportions(landmarks), *_of_pose(landmarks.pose)]
    if (tones := _skin_tones(photo, parsing)) < ONE_TONE and all(given.reason != "NOT_A_PHOTO" for given in found):
        found.append(_warning("NOT_A_PHOTO", tones, ONE_TONE))
    if (share := glasses_share(landmarks, parsing)) > GLASSES_SHARE:
        found.append(_warning("GLASSES", share, GLASSES_SHARE))
    return tuple(found)


def _of_proportions(landmarks: FaceLandmarks) -> Iterator[PhotoWarning]:
    spatial = np.column_stack([landmarks.points, landmarks.depth])
    pupils = _distance(spatial, _RIGHT_PUPIL, _LEFT_PUPIL)
    iris = _iris_px(landmarks)
    iris_share = iris / pupils
    midface_share = _distance(spatial, _NOSE_ROOT, _SUBNASALE) / pupils
    face_width = _distance(spatial, *_ZYGIA)
    if iris_share > CHILD_IRIS_SHARE:
        yield _warning(CHILD, iris_share, CHILD_IRIS_SHARE)
    elif midface_share < CHILD_MIDFACE_SHARE:
        yield _warning(CHILD, midface_share, CHILD_MIDFACE_SHARE)
    if (distance_mm := camera_mm(landmarks)) < NEAR_MM:
        yield PhotoWarning("PERSPECTIVE", round(distance_mm, -1), NEAR_MM, "mm")
    low, high = PEOPLES_IRIS_SHARE
    if not low <= (share := iris / face_width) <= high:
        yield _warning("NOT_A_PHOTO", share, low if share < low else high)


def _of_pose(pose: Pose) -> Iterator[PhotoWarning]:
    low, high = UNTILTED_PITCH_DEG
    if not low <= pose.pitch_deg <= high:
        limit = low if pose.pitch_deg < low else high
        yield PhotoWarning("HEAD_TILTED", round(pose.pitch_deg, 1), limit, "deg")


def is_child(warnings: Iterable[PhotoWarning]) -> bool:
    """Whether what holds for adults does not hold."""
    return any(warning.reason == CHILD for warning in warnings)


def _skin_tones(photo: Photo, parsing: ParsingMap) -> float:
    """Spread of the skin's brightness, at every fourth pixel of the map; infinite where there is no skin to judge."""
    skin = (parsing.probabilities[Label.SKIN] > 0.5).astype(np.uint8)
    inner = np.asarray(cv2.erode(skin, np.ones((_FROM_EDGE, _FROM_EDGE), dtype=np.uint8)))
    rows, columns = np.nonzero(inner[::_STRIDE, ::_STRIDE])
    in_map = np.stack([columns * _STRIDE, rows * _STRIDE, np.ones_like(rows)])
    x, y = np.rint(parsing.photo_from_map @ in_map).astype(int)
    inside = (x >= 0) & (x < photo.width_px) & (y >= 0) & (y < photo.height_px)
    if not inside.any():
        return np.inf
    low, middle, high = np.percentile(photo.rgb[y[inside], x[inside]].mean(axis=1), [25, 50, 75])
    return float((high - low) / max(middle, 1.0))


def _warning(reason: str, share: float, limit: float) -> PhotoWarning:
    return PhotoWarning(reason, round(share, 3), limit, "ratio")


def _iris_px(landmarks: FaceLandmarks) -> float:
    """Mean of both irises' five-point diameters, as a frontal view would show them."""
    seen = np.mean([np.linalg.norm(landmarks.points[a] - landmarks.points[b]) for a, b in _IRISES])
    return float(seen / np.cos(np.radians(landmarks.pose.yaw_deg)))


def _distance(spatial: NDArray[np.float64], first: int, second: int) -> float:
    return float(np.linalg.norm(spatial[first] - spatial[second]))
