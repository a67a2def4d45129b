"""Ratios of a face by its mesh, and the classes they fall into.

Lengths are taken along the head's own axes (`vision.head`), so a turned head is described as if it looked straight
ahead. Left and right are averaged. They tell of the face as it is in the photo: a smile widens mouth and nose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import erf, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from vision.describe_terms import Feature
from vision.head import GLABELLA, head_axes, spatial_points
from vision.types import FaceLandmarks

Flat = NDArray[np.float64]
"""(2,): along the head's lateral and downward axes, in pixels."""

SURE = 0.7
"""Probability of a class below which it is borderline with the next, and from which it is held against another opinion:
our own choice."""


@dataclass(frozen=True, slots=True)
class Row:
    """How one feature is decided by one ratio: below `low` the first class, above `high` the last."""

    ratio: str
    classes: tuple[str, str, str]
    low: float
    high: float
    noise_sd: float
    """Standard deviation of the ratio between two photos of one person, once the mean difference is taken off."""


ROWS: Mapping[str, Row] = {
    "brows.shape": Row("arch_to_length", ("straight", "soft_arch", "arched"), 0.159, 0.187, 0.007),
    "brows.thickness": Row("area_to_length_squared", ("thin", "average", "thick"), 0.31, 0.45, 0.04),
    "brows.tilt": Row("tilt_deg", ("drooping", "level", "rising"), -7.9, -4.3, 1.2),
    "eyes.shape": Row("height_to_width", ("slender", "almond", "round"), 0.285, 0.353, 0.020),
    "eyes.tilt": Row("tilt_deg", ("downturned", "neutral", "upturned"), 3.2, 5.8, 1.2),
    "eyes.spacing": Row("intercanthal_to_eye_width", ("close_set", "average", "wide_set"), 1.18, 1.39, 0.046),
    "eyes.opening": Row("height_to_iris", ("narrow", "average", "wide"), 0.60, 0.76, 0.042),
    "nose.width": Row("width_to_intercanthal", ("narrow", "average", "wide"), 1.07, 1.24, 0.044),
    "nose.length": Row("length_to_glabella_menton", ("short", "average", "long"), 0.364, 0.382, 0.007),
    "lips.thickness": Row("height_to_glabella_menton", ("thin", "average", "full"), 0.107, 0.143, 0.013),
    "lips.width": Row("width_to_nose_width", ("narrow", "average", "wide"), 1.33, 1.53, 0.078),
    "jaw.width": Row("width_to_face_width", ("narrow", "average", "wide"), 0.772, 0.812, 0.010),
    "jaw.angle": Row("angle_deg", ("square", "soft", "tapered"), 130.9, 135.7, 1.2),
    "hair.length": Row("lowest_to_chin", ("short", "medium", "long"), -0.30, 0.10, 0.08),
    "hair.bangs": Row("share_of_forehead", ("none", "partial", "full"), 0.06, 0.55, 0.03),
}
"""The limits are our own and no norm: those of the face are the mean of 30 pictures of 20 adults (ten of them twice) by
this mesh, give or take 0.8 of their standard deviation; so most faces are average. For comparison, the canons of
drawing: intercanthal to eye width 1, nose to intercanthal width 1, mouth to nose width 1.5. Hair: short ends above the
mouth, long reaches the neck."""

_SIDES: tuple[dict[str, tuple[int, ...]], ...] = (
    {
        "brow_upper": (70, 63, 105, 66, 107),
        "brow_lower": (46, 53, 52, 65, 55),
        "eye": (133, 33),
        "lids": (159, 145),
        "iris": (469, 471),
        "jaw": (234, 172),
    },
    {
        "brow_upper": (300, 293, 334, 296, 336),
        "brow_lower": (276, 283, 282, 295, 285),
        "eye": (362, 263),
        "lids": (386, 374),
        "iris": (474, 476),
        "jaw": (454, 397),
    },
)
"""Points of the mesh on the subject's right and left. Brows from the tail to the head; eyes: inner and outer corner;
lids: upper and lower; iris: its sides; jaw: zygion and gonion."""
_MENTON, _SUBNASALE, _SELLION = 152, 2, 168
_LIPS = (0, 13, 14, 17)
_ALARIA, _CHEILIA, _ZYGIA, _GONIA = (64, 294), (61, 291), (234, 454), (172, 397)


def classify(name: str, value: float, ratios: Mapping[str, float]) -> Feature:
    """The class of a feature by the ratio of its row, with its probability for the row's noise."""
    row = ROWS[name]
    edges = (-inf, row.low, row.high, inf)
    index = int(value >= row.low) + int(value > row.high)
    confidence = probability_below(edges[index + 1], value, row.noise_sd) - probability_below(
        edges[index], value, row.noise_sd
    )
    nearer_low = index == 2 or (index == 1 and value - row.low < row.high - value)
    other = None if confidence >= SURE else row.classes[index - 1 if nearer_low else index + 1]
    return Feature(row.classes[index], confidence, other, {row.ratio: value, **ratios})


def probability_below(limit: float, value: float, sd: float) -> float:
    """Probability that what was measured as `value` lies below `limit`."""
    return (1 + erf((limit - value) / (sd * sqrt(2)))) / 2


def features_of_mesh(landmarks: FaceLandmarks) -> dict[str, Feature]:
    """Brows (but for their thickness), eyes, nose, lips and jaw."""
    face = _Flattened(landmarks)
    eye_width = float(np.mean([face.across(*side["eye"]) for side in _SIDES]))
    intercanthal = face.across(_SIDES[0]["eye"][0], _SIDES[1]["eye"][0])
    lower_face = face.down(GLABELLA, _MENTON)
    upper_lip, lower_lip = face.down(_LIPS[0], _LIPS[1]), face.down(_LIPS[2], _LIPS[3])
    nose_width, face_width = face.across(*_ALARIA), face.across(*_ZYGIA)
    arch, brow_tilt = np.mean([face.brow(side) for side in _SIDES], axis=0)
    height_to_width, height_to_iris, eye_tilt = np.mean([face.eye(side) for side in _SIDES], axis=0)
    values = {
        "brows.shape": arch,
        "brows.tilt": brow_tilt,
        "eyes.shape": height_to_width,
        "eyes.tilt": eye_tilt,
        "eyes.spacing": intercanthal / eye_width,
        "eyes.opening": height_to_iris,
        "nose.width": nose_width / intercanthal,
        "nose.length": face.down(_SELLION, _SUBNASALE) / lower_face,
        "lips.thickness": (upper_lip + lower_lip) / lower_face,
        "lips.width": face.across(*_CHEILIA) / nose_width,
        "jaw.width": face.across(*_GONIA) / face_width,
        "jaw.angle": np.mean([face.jaw_deg(side) for side in _SIDES]),
    }
    more = {"lips.thickness": {"upper_to_lower": upper_lip / max(lower_lip, 1e-6)}}
    return {name: classify(name, float(value), more.get(name, {})) for name, value in values.items()}


class _Flattened:
    """The mesh in the head's frontal plane."""

    def __init__(self, landmarks: FaceLandmarks) -> None:
        mesh, axes = spatial_points(landmarks), head_axes(landmarks.pose)
        self._spatial = mesh
        self._points = np.column_stack([mesh @ axes.lateral, mesh @ axes.down])

    def at(self, *indices: int) -> Flat:
        """The middle of these points."""
        middle: Flat = self._points[list(indices)].mean(axis=0)
        return middle

    def across(self, first: int, second: int) -> float:
        return abs(float((self.at(first) - self.at(second))[0]))

    def down(self, upper: int, lower: int) -> float:
        return max(0.0, float((self.at(lower) - self.at(upper))[1]))

    def brow(self, side: Mapping[str, tuple[int, ...]]) -> tuple[float, float]:
        """Height of the arch over the line from head to tail, over its length; and the rise of that line outwards."""
        middles = [self.at(*pair) for pair in zip(side["brow_upper"], side["brow_lower"], strict=True)]
        tail, head = middles[0], middles[-1]
        along = tail - head
        length = float(np.linalg.norm(along))
        up = np.array([along[1], -along[0]]) / length
        up = up if up[1] < 0 else -up
        arch = max(float((middle - head) @ up) for middle in middles) / length
        return arch, _rise_deg(along)

    def eye(self, side: Mapping[str, tuple[int, ...]]) -> tuple[float, float, float]:
        """Opening over width, opening over the diameter of the iris, and the rise of the outer corner."""
        inner, outer = (self.at(index) for index in side["eye"])
        opening = float(np.linalg.norm(self.at(side["lids"][0]) - self.at(side["lids"][1])))
        # An iris that looks at the camera is round however the head is turned.
        iris = float(np.linalg.norm((self._spatial[side["iris"][0]] - self._spatial[side["iris"][1]])[:2]))
        width = float(np.linalg.norm(outer - inner))
        return opening / width, opening / iris, _rise_deg(outer - inner)

    def jaw_deg(self, side: Mapping[str, tuple[int, ...]]) -> float:
        """Angle at the corner of the jaw between cheekbone and chin."""
        zygion, gonion = (self.at(index) for index in side["jaw"])
        to_zygion, to_menton = zygion - gonion, self.at(_MENTON) - gonion
        cosine = to_zygion @ to_menton / (np.linalg.norm(to_zygion) * np.linalg.norm(to_menton))
        return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def _rise_deg(outwards: Flat) -> float:
    """How steeply a line from the midline outwards rises."""
    return float(np.degrees(np.arctan2(-outwards[1], abs(outwards[0]))))
