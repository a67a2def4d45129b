"""From points, hairline and scale to measured quantities. Pure geometry; left and right are the subject's.

Every length is taken along the head's own axes (`vision.head.frontal_axes`), as a frontal view would show it: widths
along the lateral axis, heights along the vertical one. So the thirds add up to the face height and the fifths to the
width between the temples, and `px` equals what a ruler on a frontal photo shows. (A calliper between trichion and
glabella shows 2 to 5 % more: a forehead slants.)

Each mm value has two intervals of 95 %. Its relative half-widths add as squares: those of the scale (population, fit,
pose), where the two end points may lie (`POINT_SD`, and the hairline's own edge), an error of the head pose
(`pose_sd_deg`), and perspective: what lies behind the irises by `d` looks smaller by d over the camera's distance. That
distance is known too badly to correct millimetres for it (see `vision.perspective`); ratios are given both ways. The
intervals tell of the face as it was: a smile that widens mouth and nose is no error of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from vision.face_points import FacePoints, face_points
from vision.head import USUAL_PITCH_DEG
from vision.norms import NORMS
from vision.perspective import EFFECTIVE_DEPTH_MM, NEAR_MM, PORTRAIT_MM, as_in_portrait, camera_mm
from vision.types import (
    FaceLandmarks,
    FaceShape,
    FaceShapeClass,
    Hairline,
    Interval,
    IntervalCausesMm,
    Measurement,
    Pose,
    Scale,
)

POINT_SD: Mapping[str, float] = {
    "glabella": 0.0045,
    "subnasale": 0.0035,
    "pronasale": 0.0050,
    "menton": 0.0125,
    "zygion": 0.0075,
    "gonion": 0.0110,
    "temple": 0.0090,
    "exocanthion": 0.0034,
    "endocanthion": 0.0034,
    "pupil": 0.0022,
    "alare": 0.0050,
    "cheilion": 0.0052,
    "brow": 0.0060,
}
"""Standard deviation of each kind of point along the axis it is measured on, as a share of the face width: the mesh is
fitted to faces reduced to one size (0.0037 is half a millimetre). The same photo smaller, compressed, turned, cropped
and mirrored moves lengths by 0.4 to 0.8 mm, root mean square; the rest is where two people would put a point."""
POINT_SD_PX = 1.2
"""The same in pixels: what small photos add."""
ON_THE_HAIRLINE = {"trichion", "hairline", "recess", "recess_foot"}
"""These are as certain as the hairline's edge is sharp."""

POSE_SD_DEG = 1.5
PITCH_SHRINKS = 0.3
"""How much farther from the usual a nodding head is than it is told to be, as a share of what is told: of 30
portraits whose mesh was turned by 6 to 24 degrees up and by 6 and 12 down, the pose was told to have changed by 0.77 of
that, 0.57 to 0.93. It is left as it is told, and counts as an error, since nobody knows which person's share it is."""
Z95 = 1.96

NO_SCALE = "NO_SCALE"

LATERAL, DOWN = "lateral", "down"


@dataclass(frozen=True, slots=True)
class Length:
    """One length of the measure call."""

    name: str
    axis: str
    first: str
    second: str
    """Names of its end points; the axis leads from the first to the second."""


LENGTHS: tuple[Length, ...] = (
    Length("thirds.upper", DOWN, "trichion", "glabella"),
    Length("thirds.middle", DOWN, "glabella", "subnasale"),
    Length("thirds.lower", DOWN, "subnasale", "menton"),
    Length("thirds_nose_tip.upper", DOWN, "trichion", "glabella"),
    Length("thirds_nose_tip.middle", DOWN, "glabella", "pronasale"),
    Length("thirds_nose_tip.lower", DOWN, "pronasale", "menton"),
    Length("fifths.right_outer", LATERAL, "right_temple", "right_exocanthion"),
    Length("fifths.right_eye", LATERAL, "right_exocanthion", "right_endocanthion"),
    Length("fifths.middle", LATERAL, "right_endocanthion", "left_endocanthion"),
    Length("fifths.left_eye", LATERAL, "left_endocanthion", "left_exocanthion"),
    Length("fifths.left_outer", LATERAL, "left_exocanthion", "left_temple"),
    Length("face_height", DOWN, "trichion", "menton"),
    Length("face_width", LATERAL, "right_zygion", "left_zygion"),
    Length("jaw_width", LATERAL, "right_gonion", "left_gonion"),
    Length("temple_width", LATERAL, "right_brow_temple", "left_brow_temple"),
    Length("intercanthal_width", LATERAL, "right_endocanthion", "left_endocanthion"),
    Length("palpebral_width.left", LATERAL, "left_endocanthion", "left_exocanthion"),
    Length("palpebral_width.right", LATERAL, "right_exocanthion", "right_endocanthion"),
    Length("pupillary_distance", LATERAL, "right_pupil", "left_pupil"),
    Length("nose_width", LATERAL, "right_alare", "left_alare"),
    Length("mouth_width", LATERAL, "right_cheilion", "left_cheilion"),
    Length("brow_to_hairline.left", DOWN, "left_hairline", "left_brow"),
    Length("brow_to_hairline.right", DOWN, "right_hairline", "right_brow"),
    Length("mid_frontal_height", DOWN, "trichion", "glabella"),
    Length("temple_recession.left", DOWN, "left_recess", "left_recess_foot"),
    Length("temple_recession.right", DOWN, "right_recess", "right_recess_foot"),
)

ANGLE = "golden_triangle_angle"

RATIO_OF: Mapping[str, str] = {
    "thirds": "face_height",
    "thirds_nose_tip": "face_height",
    "fifths": "palpebral_width",
    "face_height": "face_width",
    "face_width": "face_height",
    "jaw_width": "face_width",
    "temple_width": "face_width",
    "intercanthal_width": "palpebral_width",
    "palpebral_width": "face_width",
    "pupillary_distance": "face_width",
    "nose_width": "intercanthal_width",
    "mouth_width": "nose_width",
    "brow_to_hairline": "face_height",
    "mid_frontal_height": "face_height",
    "temple_recession": "mid_frontal_height",
}
"""What each ratio divides by, for a name or its part before the dot; `palpebral_width` is the mean of both eyes."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """Everything that all quantities of one face are made from."""

    face: FacePoints
    scale: Scale
    camera_mm: float
    px: Mapping[str, float]
    """Lengths by name; those whose ends are not seen are not there."""
    in_portrait_px: Mapping[str, float]
    """The same as a camera at the distance of portraits would show them."""
    pose_sd_deg: Mapping[str, float]
    """How far the head may be turned otherwise than told, by the axis whose lengths that changes."""


def measure_face(landmarks: FaceLandmarks, hairline: Hairline, scale: Scale) -> dict[str, Measurement]:
    """All quantities by dotted name, as the fields of `hair.analysis.v1.Measurements`; none is ever left out."""
    face = face_points(landmarks, hairline)
    distance_mm = camera_mm(landmarks)
    px = {
        length.name: _px(face, length)
        for length in LENGTHS
        if length.first not in face.missing and length.second not in face.missing
    }
    in_portrait_px = {name: as_in_portrait(name, value, distance_mm) for name, value in px.items()}
    measured = _Measured(face, scale, distance_mm, px, in_portrait_px, pose_sd_deg(landmarks.pose))
    found = {length.name: _quantity(length, measured) for length in LENGTHS}
    found[ANGLE] = _golden_triangle(face)
    return found


def pose_sd_deg(pose: Pose) -> dict[str, float]:
    """Standard deviations of yaw and pitch, in degrees, by the axis of the lengths that hang on them."""
    shrunk = PITCH_SHRINKS * (pose.pitch_deg - USUAL_PITCH_DEG)
    return {LATERAL: POSE_SD_DEG, DOWN: float(np.hypot(POSE_SD_DEG, shrunk))}


def _px(face: FacePoints, length: Length) -> float:
    direction = face.axes.lateral if length.axis == LATERAL else face.axes.down
    return float((face.at[length.second] - face.at[length.first]) @ direction)


def _quantity(length: Length, measured: _Measured) -> Measurement:
    face, mm_per_px = measured.face, measured.scale.mm_per_px
    ratio_of = RATIO_OF[length.name.split(".", maxsplit=1)[0]]
    norms = NORMS.get(length.name, ())
    if length.name not in measured.px:
        reason = face.missing.get(length.first) or face.missing[length.second]
        return Measurement(ratio_of=ratio_of, norms=norms, unavailable_reason=reason)
    px = measured.px[length.name]
    known = Measurement(
        px=px,
        ratio=_ratio(length.name, ratio_of, measured.px),
        ratio_perspective_corrected=_ratio(length.name, ratio_of, measured.in_portrait_px),
        ratio_of=ratio_of,
        norms=norms,
        line=tuple((float(face.at[end][0]), float(face.at[end][1])) for end in (length.first, length.second)),
    )
    if mm_per_px is None:
        return replace(known, unavailable_reason=NO_SCALE)
    mm = px * mm_per_px
    causes = _causes_mm(length, measured, mm, mm_per_px)
    same_person, total = causes.same_person_mm, causes.total_mm
    return replace(
        known,
        mm=mm,
        interval_mm=Interval(max(0.0, mm - total), mm + total),
        interval_same_person_mm=Interval(max(0.0, mm - same_person), mm + same_person),
        causes_mm=causes,
    )


def _ratio(name: str, ratio_of: str, lengths: Mapping[str, float]) -> float | None:
    """Of two lengths by name; None where the one to divide by was not measured or is nil."""
    if ratio_of == "palpebral_width":
        whole = (lengths["palpebral_width.left"] + lengths["palpebral_width.right"]) / 2
    else:
        whole = lengths.get(ratio_of, 0.0)
    return lengths[name] / whole if whole else None


def _causes_mm(length: Length, measured: _Measured, mm: float, mm_per_px: float) -> IntervalCausesMm:
    """What makes up the 95 % interval of a length of `mm`: the scale's part, end points, pose, perspective."""
    face, scale = measured.face, measured.scale.causes
    a, b = face.at[length.first], face.at[length.second]
    points = np.hypot(_point_sd_mm(length.first, face, mm_per_px), _point_sd_mm(length.second, face, mm_per_px))
    # What is seen is the photo; a head of the same shape, turned by a small angle more, has its ends farther apart by
    # what lies in depth between them.
    between = abs(float(b[2] - a[2])) * mm_per_px
    turned = between * np.sin(np.radians(measured.pose_sd_deg[length.axis]))
    # An outer fifth shrinks by far more than its depth says: its farther end moves inwards more than the nearer one.
    depth_mm = abs(float((a[2] + b[2]) / 2 - face.eye_depth_px)) * mm_per_px
    behind = max(depth_mm, abs(EFFECTIVE_DEPTH_MM.get(length.name, 0.0)))
    perspective = mm * behind / (measured.camera_mm if measured.camera_mm < NEAR_MM else PORTRAIT_MM)
    return IntervalCausesMm(
        population_mm=mm * scale.population_pct / 100,
        fit_mm=mm * scale.fit_pct / 100,
        pose_mm=float(np.sqrt((mm * scale.pose_pct / 100) ** 2 + (Z95 * turned) ** 2 + perspective**2)),
        segmentation_mm=float(Z95 * points),
    )


def _point_sd_mm(name: str, face: FacePoints, mm_per_px: float) -> float:
    kind = name.removeprefix("left_").removeprefix("right_").removeprefix("brow_")
    width_px = float((face.at["left_zygion"] - face.at["right_zygion"]) @ face.axes.lateral)
    if kind not in ON_THE_HAIRLINE:
        return mm_per_px * float(np.hypot(POINT_SD[kind] * width_px, POINT_SD_PX))
    # On a steep line the height also hangs on where, sideways, the vertical above the brow stands.
    slope = face.slopes.get(name, 0.0)
    return mm_per_px * float(np.hypot(face.edge_sd_px * np.hypot(1, slope), POINT_SD["brow"] * width_px * slope))


def _golden_triangle(face: FacePoints) -> Measurement:
    """Angle at the nose tip between the exocanthia, in the frontal view."""
    names = ("right_exocanthion", "pronasale", "left_exocanthion")
    tip = face.at["pronasale"]
    arms = [
        np.array([(face.at[name] - tip) @ face.axes.lateral, (face.at[name] - tip) @ face.axes.down])
        for name in (names[0], names[2])
    ]
    cosine = arms[0] @ arms[1] / (np.linalg.norm(arms[0]) * np.linalg.norm(arms[1]))
    return Measurement(
        angle_deg=float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))),
        line=tuple((float(face.at[name][0]), float(face.at[name][1])) for name in names),
    )


OUTLINE: tuple[tuple[str, str, float, float], ...] = (
    # ratio, measurement over the face width, mean, standard deviation
    ("height_to_width", "face_height", 1.434, 0.06),
    ("jaw_to_width", "jaw_width", 0.79, 0.02),
    ("temple_to_width", "temple_width", 0.95, 0.016),
)
"""Proportions of the outline as measured here on portraits of adults: with other points or another mesh they differ.
Each is the `ratio_perspective_corrected` of that measurement."""

SHAPES: Mapping[FaceShapeClass, tuple[float, float, float]] = {
    FaceShapeClass.OVAL: (0.0, 0.0, 0.0),
    FaceShapeClass.ROUND: (-1.6, -0.2, 0.2),
    FaceShapeClass.SQUARE: (-1.0, 1.7, 0.3),
    FaceShapeClass.OBLONG: (1.7, 0.2, 0.0),
    FaceShapeClass.HEART: (0.0, -1.3, 1.3),
    FaceShapeClass.DIAMOND: (0.2, -1.0, -1.5),
    FaceShapeClass.TRIANGLE: (0.0, 1.5, -1.3),
}
"""Typical outlines, in standard deviations of `OUTLINE` from the average face. A face belongs to the nearest."""


def face_shape(measurements: Mapping[str, Measurement]) -> FaceShape | None:
    """Class of the outline as portraits show it; None where a length it needs was not measured (a hidden hairline)."""
    found = {ratio: measurements[name].ratio_perspective_corrected for ratio, name, _, _ in OUTLINE}
    ratios = {ratio: value for ratio, value in found.items() if value is not None}
    if len(ratios) < len(OUTLINE):
        return None
    face = np.array([(ratios[ratio] - mean) / sd for ratio, _, mean, sd in OUTLINE])
    distances = {shape: float(np.linalg.norm(face - typical)) for shape, typical in SHAPES.items()}
    nearest, second = sorted(distances, key=distances.__getitem__)[:2]
    confidence = 1 - distances[nearest] / distances[second]
    return FaceShape(shape=nearest, confidence=confidence, ratios=ratios, second=second)
