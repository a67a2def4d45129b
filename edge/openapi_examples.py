"""A plausible answer for the documentation, built from the protos like a real one."""

from __future__ import annotations

from typing import Any

from hair.analysis.v1 import common_pb2, measure_pb2

from edge import translate

REQUEST_ID = "3f8a1c0e9b7d4e5fa6b2c1d0e9f8a7b6"
_PICTURE_URL = f"https://face.example/static/annotations/{'0123456789abcdef' * 2}.png"

_MM_PER_PX = 0.2134
_POPULATION, _SAME_PERSON = 0.072, 0.031
"""Half-widths of the intervals, as shares of the value."""

_LENGTHS_PX = {
    "thirds.upper": 268.1,
    "thirds.middle": 305.4,
    "thirds.lower": 331.0,
    "face_height": 904.5,
    "face_width": 655.2,
    "jaw_width": 531.8,
    "temple_width": 612.3,
    "intercanthal_width": 159.7,
    "palpebral_width.left": 139.6,
    "palpebral_width.right": 140.2,
    "pupillary_distance": 297.9,
    "nose_width": 171.5,
    "mouth_width": 238.4,
    "mid_frontal_height": 268.1,
}


def _interval(mm: float, share: float) -> common_pb2.Interval:
    return common_pb2.Interval(low=mm * (1 - share), high=mm * (1 + share))


def _length(px: float) -> measure_pb2.Measurement:
    mm = px * _MM_PER_PX
    return measure_pb2.Measurement(
        px=px,
        mm=mm,
        interval_mm=_interval(mm, _POPULATION),
        interval_same_person_mm=_interval(mm, _SAME_PERSON),
        ratio=px / _LENGTHS_PX["face_height"],
        ratio_of="face_height",
    )


def _measurements() -> measure_pb2.Measurements:
    measurements = measure_pb2.Measurements(
        golden_triangle_angle=measure_pb2.Measurement(angle_deg=68.4),
        temple_recession=measure_pb2.SidedMeasurement(
            left=measure_pb2.Measurement(unavailable_reason="HAIRLINE_OCCLUDED"),
            right=measure_pb2.Measurement(unavailable_reason="HAIRLINE_OCCLUDED"),
        ),
    )
    for name, px in _LENGTHS_PX.items():
        *groups, last = name.split(".")
        parent: Any = measurements
        for group in groups:
            parent = getattr(parent, group)
        getattr(parent, last).CopyFrom(_length(px))
    return measurements


def measure_answer() -> dict[str, Any]:
    """The envelope of a good measure call."""
    trichion = measure_pb2.HairlinePoint(
        point=common_pb2.Point(x_px=512, y_px=241.5), state=measure_pb2.HAIRLINE_STATE_OBSERVED, confidence=0.93
    )
    response = measure_pb2.MeasureResponse(
        annotated_image=common_pb2.Image(data=b"PNG"),
        photo=common_pb2.PhotoInfo(width_px=1024, height_px=1365, format="JPEG", exif_orientation=1),
        face=common_pb2.FaceInfo(
            box=common_pb2.Box(x_px=182, y_px=301.5, width_px=660, height_px=845),
            yaw_deg=1.2,
            pitch_deg=-2.8,
            roll_deg=0.4,
            faces_found=1,
        ),
        scale=measure_pb2.Scale(
            mm_per_px=_MM_PER_PX,
            interval=_interval(_MM_PER_PX, _POPULATION),
            source=measure_pb2.SCALE_SOURCE_IRIS,
            causes=measure_pb2.IntervalCauses(population_pct=6.4, fit_pct=1.1, pose_pct=0.6),
            left_iris_px=54.6,
            right_iris_px=55.1,
        ),
        hairline=measure_pb2.Hairline(status=measure_pb2.HAIRLINE_STATE_OBSERVED, trichion=trichion, points=[trichion]),
        measurements=_measurements(),
        face_shape=measure_pb2.FaceShape(
            shape=measure_pb2.FACE_SHAPE_CLASS_OVAL, confidence=0.62, ratios={"height_to_width": 1.38}
        ),
        model_versions={"face_landmarker": "64184e22", "bisenet": "468e13ca"},
    )
    data = translate.to_json(response, lambda _picture: _PICTURE_URL)
    return {"code": 0, "message": "ok", "request_id": REQUEST_ID, "data": data}
