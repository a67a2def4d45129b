"""Messages into JSON by their descriptors."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2, masks_pb2, measure_pb2
from hypothesis import given
from hypothesis import strategies as st

from edge.translate import to_json
from edge.words import WORDS


def keep(picture: bytes) -> str:
    return f"url:{picture.decode()}"


def test_a_picture_becomes_its_url() -> None:
    response = measure_pb2.MeasureResponse(annotated_image=common_pb2.Image(data=b"one", media_type="image/png"))
    data = to_json(response, keep)
    assert data["annotated_image_url"] == "url:one"
    assert "annotated_image" not in data


@pytest.mark.parametrize("image", [None, common_pb2.Image(), common_pb2.Image(media_type="image/png")])
def test_a_picture_that_is_not_there_is_null(image: common_pb2.Image | None) -> None:
    assert to_json(measure_pb2.MeasureResponse(annotated_image=image), keep)["annotated_image_url"] is None


def test_pictures_inside_repeated_messages() -> None:
    masks = [masks_pb2.FaceMask(part=masks_pb2.FACE_PART_HAIR, image=common_pb2.Image(data=b"a")), masks_pb2.FaceMask()]
    data = to_json(masks_pb2.SegmentFaceResponse(masks=masks), keep)
    assert [(mask["part"], mask["image_url"]) for mask in data["masks"]] == [("hair", "url:a"), (None, None)]


def test_pictures_inside_oneofs() -> None:
    result = growth_pb2.StyleResult(style="round", grown_image=common_pb2.Image(data=b"g"))
    data = to_json(growth_pb2.GrowStylesResponse(result=result), keep)
    assert data["result"]["grown_image_url"] == "url:g"
    assert data["result"]["image_url"] is None
    assert data["progress"] is None


def future_message() -> type[Message]:
    """A message type of a later release: pictures repeated, in a map, and a type that contains itself."""
    file = descriptor_pb2.FileDescriptorProto(name="future.proto", package="future", syntax="proto3")
    file.dependency.append("hair/analysis/v1/common.proto")
    message = file.message_type.add(name="Tree")
    image = ".hair.analysis.v1.Image"
    optional, repeated = (
        descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
        descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
    )
    kind = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
    message.field.add(name="frames", number=1, label=repeated, type=kind, type_name=image)
    message.field.add(name="by_name", number=2, label=repeated, type=kind, type_name=".future.Tree.ByNameEntry")
    message.field.add(name="below", number=3, label=repeated, type=kind, type_name=".future.Tree")
    message.field.add(name="up", number=4, label=optional, type=kind, type_name=".future.Tree")
    entry = message.nested_type.add(name="ByNameEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=optional, type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING)
    entry.field.add(name="value", number=2, label=optional, type=kind, type_name=image)
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("future.Tree"))


def test_messages_of_a_later_release() -> None:
    tree = future_message()()
    assert to_json(tree, keep) == {"frames_urls": [], "by_name_urls": {}, "below": [], "up": None}
    tree.frames.add(data=b"1")  # type: ignore[attr-defined]
    tree.frames.add(data=b"2")  # type: ignore[attr-defined]
    tree.by_name["n"].data = b"3"  # type: ignore[attr-defined]
    tree.below.add().frames.add(data=b"4")  # type: ignore[attr-defined]
    data = to_json(tree, keep)
    assert data["frames_urls"] == ["url:1", "url:2"]
    assert data["by_name_urls"] == {"n": "url:3"}
    assert data["below"][0]["frames_urls"] == ["url:4"]


def test_enums_are_short_and_unsaid_ones_null() -> None:
    hairline = measure_pb2.Hairline(status=measure_pb2.HAIRLINE_STATE_OCCLUDED)
    assert to_json(hairline, keep)["status"] == "occluded"
    assert to_json(measure_pb2.Hairline(), keep)["status"] is None
    newer = measure_pb2.Hairline()
    newer.MergeFromString(b"\x08\x63")  # status = 99
    assert to_json(newer, keep)["status"] is None


def test_optional_numbers_tell_zero_from_absent() -> None:
    assert to_json(measure_pb2.Measurement(mm=0.0), keep)["mm"] == 0.0
    assert to_json(measure_pb2.Measurement(), keep)["mm"] is None
    assert to_json(measure_pb2.FaceShape(), keep)["confidence"] == 0.0


def strings(descriptor: Descriptor) -> set[FieldDescriptor]:
    """Single text fields of a message and of all messages in it."""
    found: set[FieldDescriptor] = set()
    seen: set[Descriptor] = set()
    waiting = [descriptor]
    while waiting:
        message = waiting.pop()
        seen.add(message)
        found |= {f for f in message.fields if f.type == f.TYPE_STRING and not f.is_repeated}
        waiting += [f.message_type for f in message.fields if f.message_type and f.message_type not in seen]
    return found


@pytest.mark.parametrize("text", ["", "x"])
def test_a_text_that_says_nothing_is_null_everywhere(text: str) -> None:
    fields = strings(measure_pb2.MeasureResponse.DESCRIPTOR)
    assert {"unavailable_reason", "ratio_of"} <= {field.name for field in fields}
    for field in fields:
        owner = field.containing_type
        if owner is None or owner.GetOptions().map_entry:
            continue
        message = message_factory.GetMessageClass(owner)()
        setattr(message, field.name, text)
        assert to_json(message, keep)[field.name] == (text or None)


def test_numbers_keep_the_digits_their_unit_deserves() -> None:
    response = measure_pb2.MeasureResponse(
        scale=measure_pb2.Scale(mm_per_px=0.123456789, interval=common_pb2.Interval(low=0.1111111111, high=0.2)),
        face_shape=measure_pb2.FaceShape(confidence=0.123456, ratios={"a": 1.23456789}),
    )
    response.measurements.face_height.px = 925.12345
    response.measurements.face_height.ratio = 0.333333
    response.measurements.face_height.interval_mm.low = 12.3456
    response.hairline.trichion.point.x_px = 12.345678
    response.face.yaw_deg = -1.23456
    data = to_json(response, keep)
    assert data["scale"]["mm_per_px"] == 0.123457
    assert data["scale"]["interval"]["low"] == 0.111111
    assert data["face_shape"]["confidence"] == 0.1235
    assert data["face_shape"]["ratios"] == {"a": 1.2346}
    assert data["measurements"]["face_height"]["px"] == 925.12
    assert data["measurements"]["face_height"]["ratio"] == 0.3333
    assert data["measurements"]["face_height"]["interval_mm"]["low"] == 12.35
    assert data["hairline"]["trichion"]["point"]["x_px"] == 12.35
    assert data["face"]["yaw_deg"] == -1.23


@given(st.floats(-1e9, 1e9))
def test_rounding_is_close_and_short(value: float) -> None:
    rounded = to_json(measure_pb2.Measurement(mm=value), keep)["mm"]
    assert math.isclose(rounded, value, abs_tol=0.00501)
    assert len(repr(rounded).partition(".")[2]) <= 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_is_null_in_json(value: float) -> None:
    assert orjson.loads(orjson.dumps(to_json(measure_pb2.Measurement(mm=value), keep)))["mm"] is None


def test_absent_parts_are_never_shared_between_answers() -> None:
    first = to_json(measure_pb2.MeasureResponse(), keep)
    second = to_json(measure_pb2.MeasureResponse(model_versions={"a": "1"}), keep)
    assert first["model_versions"] == {}
    assert second["model_versions"] == {"a": "1"}


@pytest.mark.parametrize(
    "kind",
    [
        measure_pb2.MeasureResponse,
        hairlines_pb2.DesignHairlinesResponse,
        masks_pb2.SegmentFaceResponse,
        growth_pb2.StyleResult,
        growth_pb2.RegionResult,
    ],
)
def test_every_field_of_every_answer_can_be_said(kind: type[Message]) -> None:
    message = kind()
    fill(message)
    pictures: list[bytes] = []

    def collect(picture: bytes) -> str:
        pictures.append(picture)
        return "url"

    text = orjson.dumps(to_json(message, collect))
    assert b"null" not in text
    assert pictures


def fill(message: Message) -> None:
    """Set every field once."""
    descriptor: Any = message.DESCRIPTOR
    for field in descriptor.fields:
        if field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        if field.message_type is not None:
            inner = getattr(message, field.name)
            fill(inner.add() if field.is_repeated else inner)
        else:
            value: object = {field.TYPE_STRING: "x", field.TYPE_BYTES: b"x"}.get(field.type, 1)
            if field in WORDS:
                value = next(iter(WORDS[field].by_name))
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)


def test_designs_are_covered_too() -> None:
    design = hairlines_pb2.HairlineDesign(style="round", grafts=0, image=common_pb2.Image(data=b"d"))
    data = to_json(hairlines_pb2.DesignHairlinesResponse(hairline_images=[design]), keep)
    assert data["hairline_images"][0]["image_url"] == "url:d"
    assert data["hairline_images"][0]["grafts"] == 0
    assert data["hairline_images"][0]["area_cm2"] is None
