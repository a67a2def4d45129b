"""What answers have in common: the facts of a photo as messages. One function per message, no decisions.

Enums have the same member names on both sides, and the tests hold them to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hair.analysis.v1 import common_pb2, measure_pb2

from vision.types import (
    EncodedImage,
    FaceLandmarks,
    FaceShape,
    Hairline,
    HairlinePoint,
    HairlineState,
    Interval,
    IntervalCausesMm,
    Measurement,
    Photo,
    PhotoWarning,
    Scale,
    ScaleSource,
)


def to_image(image: EncodedImage) -> common_pb2.Image:
    """The file and what it is."""
    return common_pb2.Image(
        data=image.data, media_type=image.media_type, width_px=image.width_px, height_px=image.height_px
    )


def to_photo(photo: Photo) -> common_pb2.PhotoInfo:
    """The upright photo, without its pixels."""
    return common_pb2.PhotoInfo(
        width_px=photo.width_px,
        height_px=photo.height_px,
        format=photo.format,
        exif_orientation=photo.exif_orientation,
    )


def to_face(face: FaceLandmarks) -> common_pb2.FaceInfo:
    """The face that counts."""
    box = face.box
    return common_pb2.FaceInfo(
        box=common_pb2.Box(x_px=box.x_px, y_px=box.y_px, width_px=box.width_px, height_px=box.height_px),
        yaw_deg=face.pose.yaw_deg,
        pitch_deg=face.pose.pitch_deg,
        roll_deg=face.pose.roll_deg,
        faces_found=face.faces_found,
    )


def to_scale(scale: Scale) -> measure_pb2.Scale:
    """Millimetres per pixel with the interval of all causes together."""
    mm_per_px = scale.mm_per_px
    half = 0.0 if mm_per_px is None else mm_per_px * scale.causes.total_pct / 100.0
    return measure_pb2.Scale(
        mm_per_px=mm_per_px,
        interval=None if mm_per_px is None else to_interval(Interval(mm_per_px - half, mm_per_px + half)),
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


def to_hairline(hairline: Hairline) -> measure_pb2.Hairline:
    """The present hairline."""
    return measure_pb2.Hairline(
        status=_hairline_state(hairline.status),
        trichion=_hairline_point(hairline.trichion) if hairline.trichion else None,
        points=[_hairline_point(point) for point in hairline.points],
    )


def _hairline_state(state: HairlineState) -> measure_pb2.HairlineState.ValueType:
    return measure_pb2.HairlineState.Value(f"HAIRLINE_STATE_{state.name}")


def _hairline_point(point: HairlinePoint) -> measure_pb2.HairlinePoint:
    return measure_pb2.HairlinePoint(
        point=to_point((point.x_px, point.y_px)),
        state=_hairline_state(point.state),
        confidence=point.confidence,
    )


def to_measurements(measurements: Mapping[str, Measurement]) -> measure_pb2.Measurements:
    """Dotted names are the paths of the fields: `thirds.upper`, `palpebral_width.left`."""
    message = measure_pb2.Measurements()
    for name, quantity in measurements.items():
        *groups, leaf = name.split(".")
        target = message
        for group in groups:
            target = getattr(target, group)
        getattr(target, leaf).CopyFrom(to_measurement(quantity))
    return message


def to_measurement(quantity: Measurement) -> measure_pb2.Measurement:
    """One quantity, or the reason why it has no value."""
    return measure_pb2.Measurement(
        px=quantity.px,
        mm=quantity.mm,
        interval_mm=to_interval(quantity.interval_mm),
        interval_same_person_mm=to_interval(quantity.interval_same_person_mm),
        causes_mm=_causes_mm(quantity.causes_mm),
        ratio=quantity.ratio,
        ratio_perspective_corrected=quantity.ratio_perspective_corrected,
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


def to_interval(interval: Interval | None) -> common_pb2.Interval | None:
    """None stays None: the field is absent."""
    return common_pb2.Interval(low=interval.low, high=interval.high) if interval else None


def to_face_shape(shape: FaceShape) -> measure_pb2.FaceShape:
    """The class and what it was decided by."""
    return measure_pb2.FaceShape(
        shape=measure_pb2.FaceShapeClass.Value(f"FACE_SHAPE_CLASS_{shape.shape.name}"),
        confidence=shape.confidence,
        ratios=dict(shape.ratios),
    )


def to_point(point: tuple[float, float]) -> common_pb2.Point:
    """x and y of the upright photo."""
    return common_pb2.Point(x_px=point[0], y_px=point[1])


def to_warnings(warnings: Iterable[PhotoWarning]) -> list[common_pb2.Warning]:
    """What the reader should know."""
    return [
        common_pb2.Warning(reason=warning.reason, value=warning.value, limit=warning.limit, unit=warning.unit)
        for warning in warnings
    ]
