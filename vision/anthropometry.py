"""From points, hairline and scale to measured quantities. Pure geometry; left and right are the subject's.

Every length is taken along the head's own axes (`vision.head`), as a frontal view would show it: widths along the
lateral axis, heights along the vertical one. So the thirds add up to the face height and the fifths to the width
between the temples, and `px` equals what a ruler on a frontal photo shows.

Each mm value has two intervals of 95 %. Its relative half-widths add as squares: those of the scale (population, fit,
pose), where the two end points may lie (`POINT_SD`, and the hairline's own edge), an error of the head pose
(`POSE_SD_DEG`), and perspective (what lies behind the irises looks smaller; see `CAMERA_MM`). They tell of the face as
it was: a smile that widens mouth and nose is no error of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from vision.face_points import FacePoints, face_points
from vision.norms import NORMS
from vision.photo_warnings import NEAR_EYES_SHARE
from vision.types import (
    FaceLandmarks,
    FaceShape,
    FaceShapeClass,
    Hairline,
    Interval,
    IntervalCauses,
    IntervalCausesMm,
    Measurement,
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

POSE_SD_DEG = {"yaw": 1.5, "pitch": 1.5}
CAMERA_MM = 1500.0
NEAR_CAMERA_MM = 550.0
"""Distance of the camera, as portraits are taken, and of one from which the PERSPECTIVE warning is given. A point
behind the irises by `d` looks smaller by d over this. It is not corrected for, as the distance is not known, but stands
in the interval."""
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

_FACE_WIDTH, _PUPILS = (
    next(each for each in LENGTHS if each.name == name) for name in ("face_width", "pupillary_distance")
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


def measure_face(landmarks: FaceLandmarks, hairline: Hairline, scale: Scale) -> dict[str, Measurement]:
    """All quantities by dotted name, as the fields of `hair.analysis.v1.Measurements`; none is ever left out."""
    face = face_points(landmarks, hairline)
    px = {
        length.name: _px(face, length)
        for length in LENGTHS
        if length.first not in face.missing and length.second not in face.missing
    }
    found = {length.name: _measured(length, face, px, scale) for length in LENGTHS}
    found[ANGLE] = _golden_triangle(face)
    return found


def _px(face: FacePoints, length: Length) -> float:
    direction = face.axes.lateral if length.axis == LATERAL else face.axes.down
    return float((face.at[length.second] - face.at[length.first]) @ direction)


def _measured(length: Length, face: FacePoints, px_by_name: Mapping[str, float], scale: Scale) -> Measurement:
    ratio_of = RATIO_OF[length.name.split(".", maxsplit=1)[0]]
    norms = NORMS.get(length.name, ())
    if length.name not in px_by_name:
        reason = face.missing.get(length.first) or face.missing[length.second]
        return Measurement(ratio_of=ratio_of, norms=norms, unavailable_reason=reason)
    px = px_by_name[length.name]
    whole = _whole(ratio_of, px_by_name)
    known = Measurement(
        px=px,
        ratio=None if whole is None else px / whole,
        ratio_of=ratio_of,
        norms=norms,
        line=tuple((float(face.at[end][0]), float(face.at[end][1])) for end in (length.first, length.second)),
    )
    if scale.mm_per_px is None:
        return replace(known, unavailable_reason=NO_SCALE)
    mm = px * scale.mm_per_px
    causes = _causes_mm(length, face, scale.causes, mm, scale.mm_per_px)
    same_person, total = causes.same_person_mm, causes.total_mm
    return replace(
        known,
        mm=mm,
        interval_mm=Interval(max(0.0, mm - total), mm + total),
        interval_same_person_mm=Interval(max(0.0, mm - same_person), mm + same_person),
        causes_mm=causes,
    )


def _whole(ratio_of: str, lengths: Mapping[str, float]) -> float | None:
    """The length a ratio divides by, if it was measured and is not nil."""
    if ratio_of == "palpebral_width":
        return (lengths["palpebral_width.left"] + lengths["palpebral_width.right"]) / 2
    return lengths.get(ratio_of) or None


def _causes_mm(
    length: Length, face: FacePoints, scale: IntervalCauses, mm: float, mm_per_px: float
) -> IntervalCausesMm:
    """What makes up the 95 % interval of a length of `mm`: the scale's part, end points, pose, perspective."""
    a, b = face.at[length.first], face.at[length.second]
    points = np.hypot(_point_sd_mm(length.first, face, mm_per_px), _point_sd_mm(length.second, face, mm_per_px))
    # A head turned by a small angle more moves a length by what lies in depth between its ends.
    between = abs(float((b - a) @ face.axes.back)) * mm_per_px
    turned = between * np.sin(np.radians(POSE_SD_DEG["yaw" if length.axis == LATERAL else "pitch"]))
    behind = abs(float((a[2] + b[2]) / 2 - face.eye_depth_px)) * mm_per_px
    perspective = mm * behind / _camera_mm(face)
    return IntervalCausesMm(
        population_mm=mm * scale.population_pct / 100,
        fit_mm=mm * scale.fit_pct / 100,
        pose_mm=float(np.sqrt((mm * scale.pose_pct / 100) ** 2 + (Z95 * turned) ** 2 + perspective**2)),
        segmentation_mm=float(Z95 * points),
    )


def _camera_mm(face: FacePoints) -> float:
    near = _px(face, _PUPILS) > NEAR_EYES_SHARE * _px(face, _FACE_WIDTH)
    return NEAR_CAMERA_MM if near else CAMERA_MM


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
    ("height_to_width", "face_height", 1.45, 0.06),
    ("jaw_to_width", "jaw_width", 0.79, 0.02),
    ("temple_to_width", "temple_width", 0.95, 0.016),
)
"""Proportions of the outline as measured here on portraits of adults: with other points or another mesh they differ."""

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
    """Class of the outline; None where a length it needs was not measured (a hidden hairline)."""
    width = measurements["face_width"].px
    lengths = [measurements[name].px for _, name, _, _ in OUTLINE]
    if not width or any(length is None for length in lengths):
        return None
    ratios = {ratio: (length or 0.0) / width for (ratio, *_), length in zip(OUTLINE, lengths, strict=True)}
    face = np.array([(ratios[ratio] - mean) / sd for ratio, _, mean, sd in OUTLINE])
    distances = {shape: float(np.linalg.norm(face - typical)) for shape, typical in SHAPES.items()}
    nearest, second = sorted(distances, key=distances.__getitem__)[:2]
    confidence = 1 - distances[nearest] / distances[second]
    return FaceShape(shape=nearest, confidence=confidence, ratios=ratios)
