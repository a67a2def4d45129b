"""Between the vision floor and the protos: nothing is lost, nothing is invented."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from hair.analysis.v1 import common_pb2, measure_pb2

from tests.worker.scripted import facts, measurement_names
from vision.types import (
    EncodedImage,
    FaceShape,
    FaceShapeClass,
    Hairline,
    HairlinePoint,
    HairlineState,
    Interval,
    IntervalCauses,
    IntervalCausesMm,
    IrisFit,
    Lang,
    Measurement,
    MeasureOptions,
    MeasureResult,
    Norm,
    PhotoWarning,
    Scale,
    ScaleSource,
)
from worker.refusals import Refusal
from worker.translate import measure

PHOTO = common_pb2.Image(data=b"jpeg")


def response(**changes: object) -> measure_pb2.MeasureResponse:
    return measure.response(MeasureResult(facts(**changes), None), {"parser": "x"})


def test_absent_parameters_have_the_documented_defaults() -> None:
    assert measure.options(measure_pb2.MeasureRequest(photo=PHOTO)) == MeasureOptions(
        pupillary_distance_mm=None, annotate=True, lang=Lang.ZH, max_output_side_px=2048
    )


def test_all_parameters_arrive() -> None:
    request = measure_pb2.MeasureRequest(
        photo=PHOTO,
        pupillary_distance_mm=63.5,
        annotate=False,
        options=common_pb2.CallOptions(lang=common_pb2.LANGUAGE_EN, max_output_side_px=1024),
    )
    assert measure.options(request) == MeasureOptions(63.5, annotate=False, lang=Lang.EN, max_output_side_px=1024)


def test_unknown_language_is_refused_by_name() -> None:
    options = common_pb2.CallOptions.FromString(b"\x08\x63")  # lang = 99
    with pytest.raises(Refusal) as caught:
        measure.options(measure_pb2.MeasureRequest(photo=PHOTO, options=options))
    assert (caught.value.reason, caught.value.field) == ("INVALID_PARAMETER", "options.lang")


def test_every_field_of_a_full_answer_is_filled() -> None:
    point = HairlinePoint(5.0, 6.0, HairlineState.OBSERVED, 0.9)
    iris = IrisFit((1.0, 2.0), 55.0, 0.2, 1.0)
    quantity = Measurement(
        px=10.0,
        mm=2.0,
        interval_mm=Interval(1.8, 2.2),
        interval_same_person_mm=Interval(1.9, 2.1),
        causes_mm=IntervalCausesMm(0.17, 0.05, 0.05, 0.07),
        ratio=0.5,
        ratio_of="face_height",
        angle_deg=30.0,
        norms=(Norm(1.0, 3.0, "mm", "adults", "somebody 2020"),),
        unavailable_reason="NOT_REALLY",
    )
    full = facts(
        hairline=Hairline((point,), HairlineState.OBSERVED, point, 1.0),
        scale=Scale(0.2, ScaleSource.IRIS, IntervalCauses(6.0, 2.0, 1.0), iris, iris),
        measurements=dict.fromkeys(measurement_names(), quantity),
        face_shape=FaceShape(FaceShapeClass.OVAL, 0.5, {"height_over_width": 1.4}),
        warnings=(PhotoWarning("PERSPECTIVE", 1.0, 0.5, "ratio"),),
    )
    answer = measure.response(MeasureResult(full, EncodedImage(b"png", 8, 9)), {"parser": "x"})
    assert empty_fields(answer) == []


def empty_fields(message: Message, path: str = "") -> list[str]:
    """Names of all fields that hold nothing, however deep."""
    empty = []
    present = {field.name: value for field, value in message.ListFields()}
    for field in message.DESCRIPTOR.fields:
        name = f"{path}{field.name}"
        if field.name not in present:
            empty.append(name)
        elif (kind := field.message_type) and not kind.GetOptions().map_entry:
            value = present[field.name]
            for inner in value if field.is_repeated else [value]:
                empty += empty_fields(inner, f"{name}.")
    return empty


def test_scale_interval_has_all_causes_and_nothing_without_a_scale() -> None:
    scale = response(scale=Scale(0.2, ScaleSource.PUPILLARY_DISTANCE, IntervalCauses(0.0, 3.0, 4.0), None, None)).scale
    assert [scale.interval.low, scale.interval.high] == pytest.approx([0.19, 0.21])
    assert scale.source == measure_pb2.SCALE_SOURCE_PUPILLARY_DISTANCE
    none = response(scale=Scale(None, None, IntervalCauses(0.0, 0.0, 0.0), None, None)).scale
    assert not any(none.HasField(name) for name in ("mm_per_px", "interval", "left_iris_px"))
    assert none.source == measure_pb2.SCALE_SOURCE_UNSPECIFIED


@pytest.mark.parametrize("state", list(HairlineState))
def test_hairline_states(state: HairlineState) -> None:
    answer = response(hairline=Hairline((), state, None, 0.0))
    assert measure_pb2.HairlineState.Name(answer.hairline.status) == f"HAIRLINE_STATE_{state.name}"
    assert not answer.hairline.HasField("trichion")


@pytest.mark.parametrize("shape", list(FaceShapeClass))
def test_face_shapes(shape: FaceShapeClass) -> None:
    answer = response(face_shape=FaceShape(shape, 0.5, {}))
    assert measure_pb2.FaceShapeClass.Name(answer.face_shape.shape) == f"FACE_SHAPE_CLASS_{shape.name}"


def test_quantity_without_a_value_keeps_its_reason() -> None:
    answer = response(measurements={"thirds.upper": Measurement(unavailable_reason="HAIRLINE_OCCLUDED")})
    upper = answer.measurements.thirds.upper
    assert (upper.HasField("px"), upper.HasField("mm"), upper.unavailable_reason) == (False, False, "HAIRLINE_OCCLUDED")


def test_quantity_the_proto_does_not_know_is_a_fault_not_a_silence() -> None:
    with pytest.raises(AttributeError):
        response(measurements={"thirds.uppermost": Measurement(px=1.0)})
