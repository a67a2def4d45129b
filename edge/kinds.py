"""The calls that run on workers: how each asks a worker, and how what comes back stands in the answer. One table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message
from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2, masks_pb2, measure_pb2

from edge.calls import Outcome
from edge.errors import ApiError
from edge.intake import Intake
from edge.messages import Lang
from edge.parameters import (
    GrowParameters,
    HairlinesParameters,
    MasksParameters,
    MeasureParameters,
    Parameters,
    SexName,
    StylesParameters,
)
from edge.photo import MEDIA_TYPES, Photo
from edge.translate import KeepPicture, to_json

P = TypeVar("P", bound=Parameters)

Data = dict[str, Any]
"""`data` of an answer."""
DRAWN_BESIDE = "image_url"
"""What a design inside a style's result has not: its picture is the result's own."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[P]):
    """One kind of call."""

    method: str
    """RPC of `AnalyzeService`."""
    parameters: type[P]
    ask: Callable[[Intake[P], common_pb2.CallOptions], Message]
    """The RPC's request. It has its own copies of the pictures."""
    answer: Callable[[Outcome, KeepPicture, Lang], Data]
    """With words in that language. Raises `ApiError` WORKER_FAILED for an outcome without a result."""
    grows: bool = False
    """Slow, streams its progress, and wants a worker that can grow hair."""


def _measure(given: Intake[MeasureParameters], options: common_pb2.CallOptions) -> Message:
    message = measure_pb2.MeasureRequest(
        pupillary_distance_mm=given.parameters.pupillary_distance_mm,
        annotate=given.parameters.annotate,
        options=options,
    )
    _put(message.photo, given.photo)
    return message


def _hairlines(given: Intake[HairlinesParameters], options: common_pb2.CallOptions) -> Message:
    wanted = given.parameters
    height = wanted.height or "unspecified"
    message = hairlines_pb2.DesignHairlinesRequest(
        styles=wanted.styles or (),
        sex=_sex(wanted.sex),
        height=hairlines_pb2.HairlineHeight.Value(f"HAIRLINE_HEIGHT_{height.upper()}"),
        density_per_cm2=wanted.density_per_cm2 or 0.0,
        options=options,
    )
    _put(message.photo, given.photo)
    return message


def _masks(given: Intake[MasksParameters], options: common_pb2.CallOptions) -> Message:
    parts = (masks_pb2.FacePart.Value(f"FACE_PART_{part.upper()}") for part in given.parameters.parts or ())
    message = masks_pb2.SegmentFaceRequest(parts=parts, options=options)
    _put(message.photo, given.photo)
    return message


def _styles(given: Intake[StylesParameters], options: common_pb2.CallOptions) -> Message:
    wanted = given.parameters
    message = growth_pb2.GrowStylesRequest(
        styles=wanted.styles or (), sex=_sex(wanted.sex), seed=wanted.seed, options=options
    )
    _put(message.photo, given.photo)
    return message


def _region(given: Intake[GrowParameters], options: common_pb2.CallOptions) -> Message:
    """Raises `ApiError` unless there is exactly one region."""
    region, mask = given.parameters.region, given.mask
    message = growth_pb2.GrowRegionRequest(seed=given.parameters.seed, options=options)
    if region is not None and mask is not None:
        raise ApiError("INVALID_PARAMETER", {"field": "region", "problem": "a region or a mask, not both"})
    if region is not None:
        message.region.points.extend(common_pb2.Point(x_px=x, y_px=y) for x, y in region)
    elif mask is not None:
        _put(message.mask, mask)
    else:
        raise ApiError("MISSING_PARAMETER", {"field": "region", "or": "mask"})
    _put(message.photo, given.photo)
    return message


def _sex(name: SexName | None) -> common_pb2.Sex.ValueType:
    return common_pb2.Sex.Value(f"SEX_{(name or 'unspecified').upper()}")


def _put(image: common_pb2.Image, photo: Photo) -> None:
    """Fill a request's picture in place: handing over a finished one would copy the photo once more."""
    image.data = photo.data
    image.media_type = MEDIA_TYPES[photo.format]
    image.width_px = photo.width_px
    image.height_px = photo.height_px


def _whole(outcome: Outcome, keep: KeepPicture, lang: Lang) -> Data:
    return to_json(outcome.response, keep, lang)


def _grown_styles(outcome: Outcome, keep: KeepPicture, lang: Lang) -> Data:
    """`results`, one for each style, beside what is common to them."""
    *results, summary = _growth(outcome, keep, lang)
    for result in results:
        if result["design"] is not None:
            del result["design"][DRAWN_BESIDE]
    return {"results": results, **summary}


def _grown_region(outcome: Outcome, keep: KeepPicture, lang: Lang) -> Data:
    """The one result and the summary as one object: their fields have different names."""
    result, *_, summary = _growth(outcome, keep, lang)
    return result | summary


def _growth(outcome: Outcome, keep: KeepPicture, lang: Lang) -> list[Data]:
    """What the messages of a stream carry: at least one result, then the summary."""
    carried = [getattr(message, message.WhichOneof("event") or "") for message in outcome.results]
    if len(carried) < 2:
        raise ApiError("WORKER_FAILED")
    return [to_json(each, keep, lang) for each in carried]


MEASURE = Kind("Measure", MeasureParameters, _measure, _whole)
HAIRLINES = Kind("DesignHairlines", HairlinesParameters, _hairlines, _whole)
MASKS = Kind("SegmentFace", MasksParameters, _masks, _whole)
STYLES = Kind("GrowStyles", StylesParameters, _styles, _grown_styles, grows=True)
REGION = Kind("GrowRegion", GrowParameters, _region, _grown_region, grows=True)
