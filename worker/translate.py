"""Between the vision floor's types and the protos of `hair.analysis.v1`: one function per message, no decisions.

Enums have the same member names on both sides, and the tests hold them to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from hair.analysis.v1 import common_pb2, measure_pb2

from hairmesh.wire import MAX_OUTPUT_SIDE_PX
from vision.errors import DetailValue, Reason
from vision.types import (
    EncodedImage,
    FaceLandmarks,
    FaceShape,
    Hairline,
    HairlinePoint,
    HairlineState,
    Interval,
    IntervalCausesMm,
    Lang,
    Measurement,
    MeasureOptions,
    MeasureResult,
    Photo,
    PhotoWarning,
    Scale,
    ScaleSource,
)
from worker.refusals import Refusal

PUPILLARY_DISTANCE_MM = (40.0, 80.0)
OUTPUT_SIDE_PX = (200, MAX_OUTPUT_SIDE_PX)
DEFAULT_OUTPUT_SIDE_PX = 2048

_LANGS: Mapping[int, Lang] = MappingProxyType(
    {
        common_pb2.LANGUAGE_UNSPECIFIED: Lang.ZH,
        common_pb2.LANGUAGE_ZH: Lang.ZH,
        common_pb2.LANGUAGE_EN: Lang.EN,
    }
)


def invalid(field: str, details: Mapping[str, DetailValue] | None = None) -> Refusal:
    """The parameter at proto path `field` is missing or outside what `details` allow."""
    return Refusal(Reason.INVALID_PARAMETER, field=field, details={"field": field, **(details or {})})


def measure_options(request: measure_pb2.MeasureRequest) -> MeasureOptions:
    """Parameters of a measure call; raises `Refusal` naming the field at fault."""
    if not request.photo.data:
        raise invalid("photo")
    return MeasureOptions(
        pupillary_distance_mm=_pupillary_distance_mm(request),
        annotate=request.annotate if request.HasField("annotate") else True,
        lang=_lang(request.options),
        max_output_side_px=_max_output_side_px(request.options),
    )


def measure_response(result: MeasureResult, versions: Mapping[str, str]) -> measure_pb2.MeasureResponse:
    """All facts of a measured photo, and its picture when there is one."""
    facts = result.facts
    return measure_pb2.MeasureResponse(
        annotated_image=_image(result.annotated) if result.annotated else None,
        photo=_photo(facts.photo),
        face=_face(facts.landmarks),
        scale=_scale(facts.scale),
        hairline=_hairline(facts.hairline),
        measurements=_measurements(facts.measurements),
        face_shape=_face_shape(facts.face_shape) if facts.face_shape else None,
        warnings=[_warning(warning) for warning in facts.warnings],
        model_versions=dict(versions),
    )


def _pupillary_distance_mm(request: measure_pb2.MeasureRequest) -> float | None:
    if not request.HasField("pupillary_distance_mm"):
        return None
    low, high = PUPILLARY_DISTANCE_MM
    value = request.pupillary_distance_mm
    if not math.isfinite(value) or not low <= value <= high:
        raise invalid("pupillary_distance_mm", {"min": low, "max": high, "unit": "mm"})
    return value


def _lang(options: common_pb2.CallOptions) -> Lang:
    if options.lang not in _LANGS:
        raise invalid("options.lang")
    return _LANGS[options.lang]


def _max_output_side_px(options: common_pb2.CallOptions) -> int:
    low, high = OUTPUT_SIDE_PX
    side_px = options.max_output_side_px or DEFAULT_OUTPUT_SIDE_PX
    if not low <= side_px <= high:
        raise invalid("options.max_output_side_px", {"min": low, "max": high, "unit": "px"})
    return side_px


def _image(image: EncodedImage) -> common_pb2.Image:
    return common_pb2.Image(
        data=image.data, media_type=image.media_type, width_px=image.width_px, height_px=image.height_px
    )


def _photo(photo: Photo) -> common_pb2.PhotoInfo:
    return common_pb2.PhotoInfo(
        width_px=photo.width_px,
        height_px=photo.height_px,
        format=photo.format,
        exif_orientation=photo.exif_orientation,
    )


def _face(face: FaceLandmarks) -> common_pb2.FaceInfo:
    box = face.box
    return common_pb2.FaceInfo(
        box=common_pb2.Box(x_px=box.x_px, y_px=box.y_px, width_px=box.width_px, height_px=box.height_px),
        yaw_deg=face.pose.yaw_deg,
        pitch_deg=face.pose.pitch_deg,
        roll_deg=face.pose.roll_deg,
        faces_found=face.faces_found,
    )


def _scale(scale: Scale) -> measure_pb2.Scale:
    mm_per_px = scale.mm_per_px
    half = 0.0 if mm_per_px is None else mm_per_px * scale.causes.total_pct / 100.0
    return measure_pb2.Scale(
        mm_per_px=mm_per_px,
        interval=None if mm_per_px is None else _interval(Interval(mm_per_px - half, mm_per_px + half)),
        source=_scale_source(scale.source),
        causes=measure_pb2.IntervalCauses(
            population_pct=scale.causes.population_pct,
            fit_pct=scale.causes.fit_pct,
            pose_pct=scale.causes.pose_pct,
        ),
        left_iris_px=scale.left_iris.diameter_px if scale.left_iris else None,
        right_iris_px=scale.right_iris.diameter_px if scale.right_iris else None,
    )


def _scale_source(source: ScaleSource | None) -> measure_pb2.ScaleSource.ValueType:
    return measure_pb2.ScaleSource.Value(f"SCALE_SOURCE_{source.name if source else 'UNSPECIFIED'}")


def _hairline(hairline: Hairline) -> measure_pb2.Hairline:
    return measure_pb2.Hairline(
        status=_hairline_state(hairline.status),
        trichion=_hairline_point(hairline.trichion) if hairline.trichion else None,
        points=[_hairline_point(point) for point in hairline.points],
    )


def _hairline_state(state: HairlineState) -> measure_pb2.HairlineState.ValueType:
    return measure_pb2.HairlineState.Value(f"HAIRLINE_STATE_{state.name}")


def _hairline_point(point: HairlinePoint) -> measure_pb2.HairlinePoint:
    return measure_pb2.HairlinePoint(
        point=common_pb2.Point(x_px=point.x_px, y_px=point.y_px),
        state=_hairline_state(point.state),
        confidence=point.confidence,
    )


def _measurements(measurements: Mapping[str, Measurement]) -> measure_pb2.Measurements:
    """Dotted names are the paths of the fields: `thirds.upper`, `palpebral_width.left`."""
    message = measure_pb2.Measurements()
    for name, quantity in measurements.items():
        *groups, leaf = name.split(".")
        target = message
        for group in groups:
            target = getattr(target, group)
        getattr(target, leaf).CopyFrom(_measurement(quantity))
    return message


def _measurement(quantity: Measurement) -> measure_pb2.Measurement:
    return measure_pb2.Measurement(
        px=quantity.px,
        mm=quantity.mm,
        interval_mm=_interval(quantity.interval_mm),
        interval_same_person_mm=_interval(quantity.interval_same_person_mm),
        causes_mm=_causes_mm(quantity.causes_mm),
        ratio=quantity.ratio,
        ratio_of=quantity.ratio_of,
        angle_deg=quantity.angle_deg,
        norms=[
            measure_pb2.Norm(
                low=norm.low, high=norm.high, unit=norm.unit, population=norm.population, source=norm.source
            )
            for norm in quantity.norms
        ],
        unavailable_reason=quantity.unavailable_reason,
    )


def _causes_mm(causes: IntervalCausesMm | None) -> measure_pb2.IntervalCausesMm | None:
    if causes is None:
        return None
    return measure_pb2.IntervalCausesMm(
        population_mm=causes.population_mm,
        fit_mm=causes.fit_mm,
        pose_mm=causes.pose_mm,
        segmentation_mm=causes.segmentation_mm,
    )


def _interval(interval: Interval | None) -> common_pb2.Interval | None:
    return common_pb2.Interval(low=interval.low, high=interval.high) if interval else None


def _face_shape(shape: FaceShape) -> measure_pb2.FaceShape:
    return measure_pb2.FaceShape(
        shape=measure_pb2.FaceShapeClass.Value(f"FACE_SHAPE_CLASS_{shape.shape.name}"),
        confidence=shape.confidence,
        ratios=dict(shape.ratios),
    )


def _warning(warning: PhotoWarning) -> common_pb2.Warning:
    return common_pb2.Warning(reason=warning.reason, value=warning.value, limit=warning.limit, unit=warning.unit)
