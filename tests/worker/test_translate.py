"""Between the vision floor and the protos: nothing is lost, nothing is invented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from google.protobuf.message import Message
from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2, masks_pb2, measure_pb2

from tests.worker.scripted import PROOF, design, facts, measurement_names
from vision.calls import (
    DesignOptions,
    DesignResult,
    DrawnDesign,
    FaceMask,
    FacePart,
    GrowStylesOptions,
    GrowthSummary,
    HairlineHeight,
    MaskOptions,
    MaskResult,
    RegionGrowth,
    Sex,
    Style,
    StyleGrowth,
)
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
    Stage,
)
from worker.feed import Moved
from worker.progress import Position
from worker.refusals import Refusal
from worker.translate import growth, hairlines, masks, measure

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


POINT = HairlinePoint(5.0, 6.0, HairlineState.OBSERVED, 0.9)
IRIS = IrisFit((1.0, 2.0), 55.0, 0.2, 1.0)
QUANTITY = Measurement(
    px=10.0,
    mm=2.0,
    interval_mm=Interval(1.8, 2.2),
    interval_same_person_mm=Interval(1.9, 2.1),
    causes_mm=IntervalCausesMm(0.17, 0.05, 0.05, 0.07),
    ratio=0.5,
    ratio_perspective_corrected=0.3,
    ratio_of="face_height",
    angle_deg=30.0,
    norms=(Norm(1.0, 3.0, "mm", "adults", "somebody 2020"),),
    unavailable_reason="NOT_REALLY",
)
FULL = facts(
    hairline=Hairline((POINT,), HairlineState.OBSERVED, POINT, 1.0),
    scale=Scale(0.2, ScaleSource.IRIS, IntervalCauses(6.0, 2.0, 1.0), IRIS, IRIS),
    measurements=dict.fromkeys(measurement_names(), QUANTITY),
    face_shape=FaceShape(FaceShapeClass.OVAL, 0.5, {"height_over_width": 1.4}, FaceShapeClass.OBLONG),
    warnings=(PhotoWarning("PERSPECTIVE", 1.0, 0.5, "ratio"),),
)
PICTURE = EncodedImage(b"png", 8, 9)
DESIGN = replace(design(Style.M), height=QUANTITY, curve=np.array([(1.0, 2.0), (3.0, 4.0)]))
DRAWN = DrawnDesign(DESIGN, PICTURE)
GROWN = StyleGrowth(DRAWN, PICTURE, "", replace(PROOF, outside_changed_pixels=3))
SUMMARY = GrowthSummary(FULL, 7, "local", FULL.warnings)
AT = Moved(Position(Stage.GROWING, 2, 5), 1)


@pytest.mark.parametrize(
    ("answer", "absent"),
    [
        (measure.response(MeasureResult(FULL, PICTURE), {"parser": "x"}), set()),
        (hairlines.response(DesignResult(FULL, (DRAWN,))), set()),
        (masks.response(MaskResult(FULL, (FaceMask(FacePart.EARS, PICTURE, 4.0, 1.0, Interval(0.8, 1.2)),))), set()),
        (growth.styles_event(AT, 4).progress, set()),
        # Either there is a grown picture or a reason; the design's own picture stands beside it.
        (growth.styles_event(GROWN, 4).result, {"grown_reason", "design.image"}),
        (growth.region_event(RegionGrowth(PICTURE, PICTURE, "", 9.0, 1.0, GROWN.proof)).result, {"grown_reason"}),
        (growth.styles_end(SUMMARY).summary, set()),
        (growth.region_end(SUMMARY).summary, set()),
    ],
    ids=lambda case: type(case).__name__,
)
def test_every_field_of_a_full_answer_is_filled(answer: Message, absent: set[str]) -> None:
    assert set(empty_fields(answer)) == absent


def test_what_there_is_not_is_absent() -> None:
    bare = replace(DESIGN, area_cm2=None, area_interval_cm2=None, grafts=None)
    (without_area,) = hairlines.response(DesignResult(FULL, (DrawnDesign(bare, PICTURE),))).hairline_images
    assert not any(without_area.HasField(name) for name in ("area_cm2", "area_interval_cm2", "grafts"))
    (mask,) = masks.response(MaskResult(FULL, (FaceMask(FacePart.HAIR, PICTURE, 0.0, None),))).masks
    assert (mask.part, mask.area_px2, mask.HasField("area_mm2")) == (masks_pb2.FACE_PART_HAIR, 0.0, False)
    result = growth.styles_event(StyleGrowth(DRAWN, None, "NOTHING_TO_GROW", None), 4).result
    assert (result.HasField("grown_image"), result.HasField("proof")) == (False, False)


def test_a_picture_that_does_not_convince_keeps_its_numbers() -> None:
    result = growth.styles_event(StyleGrowth(DRAWN, None, "NOT_CONVINCING", PROOF), 4).result
    assert (result.HasField("grown_image"), result.proof.hair_share) == (False, 0.95)


def test_absent_parameters_of_the_other_calls_have_the_documented_defaults() -> None:
    assert hairlines.options(hairlines_pb2.DesignHairlinesRequest(photo=PHOTO)) == DesignOptions()
    assert masks.options(masks_pb2.SegmentFaceRequest(photo=PHOTO)) == MaskOptions()
    assert growth.styles_options(growth_pb2.GrowStylesRequest(photo=PHOTO), None) == GrowStylesOptions()


def test_all_parameters_of_the_other_calls_arrive() -> None:
    options = common_pb2.CallOptions(lang=common_pb2.LANGUAGE_EN, max_output_side_px=512)
    assert hairlines.options(
        hairlines_pb2.DesignHairlinesRequest(
            photo=PHOTO,
            styles=["bell", "m"],
            sex=common_pb2.SEX_MALE,
            height=hairlines_pb2.HAIRLINE_HEIGHT_LOW,
            density_per_cm2=55.0,
            options=options,
        )
    ) == DesignOptions((Style.BELL, Style.M), Sex.MALE, HairlineHeight.LOW, 55.0, Lang.EN, 512)
    assert masks.options(
        masks_pb2.SegmentFaceRequest(
            photo=PHOTO, parts=[masks_pb2.FACE_PART_NECK, masks_pb2.FACE_PART_HAIR], options=options
        )
    ) == MaskOptions((FacePart.NECK, FacePart.HAIR), 512)
    assert growth.styles_options(
        growth_pb2.GrowStylesRequest(photo=PHOTO, styles=["round"], sex=common_pb2.SEX_FEMALE, seed=0, options=options),
        9.5,
    ) == GrowStylesOptions((Style.ROUND,), Sex.FEMALE, 0, Lang.EN, 512, 9.5)
    corners = [common_pb2.Point(x_px=x, y_px=y) for x, y in ((0, 1), (2, 3), (4, 5))]
    drawn = growth.region_options(
        growth_pb2.GrowRegionRequest(photo=PHOTO, region=growth_pb2.Polygon(points=corners), seed=2**63 - 1), None
    )
    assert drawn.polygon is not None
    assert (drawn.polygon.tolist(), drawn.mask, drawn.seed) == ([[0, 1], [2, 3], [4, 5]], None, 2**63 - 1)
    painted = growth.region_options(growth_pb2.GrowRegionRequest(photo=PHOTO, mask=common_pb2.Image(data=b"png")), 3.0)
    assert (painted.polygon, painted.mask, painted.timeout_s) == (None, b"png", 3.0)


HAIRLINES = hairlines_pb2.DesignHairlinesRequest
NOT_FINITE = (float("nan"), float("inf"), -float("inf"))


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda: hairlines.options(HAIRLINES(styles=["m"])), "photo"),
        (lambda: hairlines.options(HAIRLINES(photo=PHOTO, styles=["m", ""])), "styles"),
        (lambda: hairlines.options(HAIRLINES(photo=PHOTO, height=7)), "height"),  # type: ignore[arg-type]
        (lambda: hairlines.options(HAIRLINES(photo=PHOTO, density_per_cm2=9.9)), "density_per_cm2"),
        (lambda: hairlines.options(HAIRLINES(photo=PHOTO, density_per_cm2=80.1)), "density_per_cm2"),
        *(
            (lambda value=value: hairlines.options(HAIRLINES(photo=PHOTO, density_per_cm2=value)), "density_per_cm2")
            for value in NOT_FINITE
        ),
        (lambda: masks.options(masks_pb2.SegmentFaceRequest()), "photo"),
        (lambda: masks.options(masks_pb2.SegmentFaceRequest(photo=PHOTO, parts=[0])), "parts"),  # type: ignore[list-item]
        (lambda: masks.options(masks_pb2.SegmentFaceRequest(photo=PHOTO, parts=[1, 1])), "parts"),  # type: ignore[list-item]
    ],
)
def test_parameters_out_of_range_are_refused_by_name(ask: Callable[[], object], field: str) -> None:
    with pytest.raises(Refusal) as caught:
        ask()
    assert (caught.value.reason, caught.value.field, caught.value.details["field"]) == (
        "INVALID_PARAMETER",
        field,
        field,
    )


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
    answer = response(face_shape=FaceShape(shape, 0.5, {}, FaceShapeClass.OVAL))
    assert measure_pb2.FaceShapeClass.Name(answer.face_shape.shape) == f"FACE_SHAPE_CLASS_{shape.name}"


def test_quantity_without_a_value_keeps_its_reason() -> None:
    answer = response(measurements={"thirds.upper": Measurement(unavailable_reason="HAIRLINE_OCCLUDED")})
    upper = answer.measurements.thirds.upper
    assert (upper.HasField("px"), upper.HasField("mm"), upper.unavailable_reason) == (False, False, "HAIRLINE_OCCLUDED")


def test_quantity_the_proto_does_not_know_is_a_fault_not_a_silence() -> None:
    with pytest.raises(AttributeError):
        response(measurements={"thirds.uppermost": Measurement(px=1.0)})
