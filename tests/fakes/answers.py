"""What a fake worker can be told to do, and the messages it does it with."""

from __future__ import annotations

import asyncio
import random
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2, masks_pb2, measure_pb2

from hairmesh import wire

Context = grpc.aio.ServicerContext[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Answer:
    """Computes for `after_s`, then answers with `response`, or with a picture of `png_bytes`."""

    after_s: float = 0.0
    png_bytes: int = 2_000
    response: Message | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Computes for `after_s`, then fails. Without `reason` the status carries no details, as gRPC's own do."""

    code: grpc.StatusCode
    reason: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    field: str = ""
    retry_after_s: float | None = None
    after_s: float = 0.0


@dataclass(slots=True)
class Hold:
    """Computes until it is released, then does what `then` says. Its client may have left long before."""

    then: Answer | Refuse = field(default_factory=Answer)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Grow:
    """A slow call: `steps` progress messages, one every `step_s`, then `results` pictures and the summary.

    After so many progress messages as `midway_at` says it does `midway`: fails like that, or computes until released.
    With `grown_reason` there is no grown picture.
    """

    steps: int = 3
    step_s: float = 0.0
    results: int = 1
    png_bytes: int = 2_000
    midway_at: int = 1
    midway: Refuse | Hold | None = None
    grown_reason: str = ""


Behaviour = Answer | Refuse | Hold | Grow

DRAINING = Refuse(grpc.StatusCode.UNAVAILABLE, wire.WorkerReason.DRAINING)
BUSY = Refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, wire.WorkerReason.BUSY, retry_after_s=0.05)


@lru_cache(maxsize=8)
def png(size_bytes: int) -> bytes:
    """A valid grey PNG of noise, of exactly this size (at least 200 bytes)."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    def picture(side: int, padding: int) -> bytes:
        noise = random.Random(side)
        rows = b"".join(b"\0" + noise.randbytes(side) for _ in range(side))
        header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
        parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows, 0))]
        parts += [chunk(b"paDd", bytes(padding)), chunk(b"IEND", b"")]
        return b"\x89PNG\r\n\x1a\n" + b"".join(parts)

    side = max(1, int((size_bytes * 0.98 - 150) ** 0.5))
    bare = len(picture(side, 0))
    return picture(side, size_bytes - bare)


def _put(image: common_pb2.Image, data: bytes) -> None:
    image.data, image.media_type = data, "image/png"
    image.width_px, image.height_px = struct.unpack(">II", data[16:24])


@lru_cache(maxsize=8)
def measure_response(png_bytes: int) -> bytes:
    """A serialized `MeasureResponse` with a picture of this size and a few numbers."""
    response = measure_pb2.MeasureResponse()
    _put(response.annotated_image, png(png_bytes))
    response.photo.width_px, response.photo.height_px, response.photo.format = 1_200, 1_600, "JPEG"
    response.photo.exif_orientation = 1
    response.face.faces_found = 1
    response.scale.mm_per_px = 0.2
    response.scale.source = measure_pb2.SCALE_SOURCE_IRIS
    response.measurements.face_height.px, response.measurements.face_height.mm = 925.0, 185.0
    return response.SerializeToString()


@lru_cache(maxsize=8)
def hairlines_response(png_bytes: int) -> bytes:
    """A serialized `DesignHairlinesResponse` with one design."""
    response = hairlines_pb2.DesignHairlinesResponse()
    design = response.hairline_images.add(style="round", area_cm2=12.5, grafts=500, density_per_cm2=40)
    _put(design.image, png(png_bytes))
    return response.SerializeToString()


@lru_cache(maxsize=8)
def masks_response(png_bytes: int) -> bytes:
    """A serialized `SegmentFaceResponse` with one mask."""
    response = masks_pb2.SegmentFaceResponse()
    mask = response.masks.add(part=masks_pb2.FACE_PART_HAIR, area_px2=1000.0)
    _put(mask.image, png(png_bytes))
    return response.SerializeToString()


_BY_METHOD = {"Measure": measure_response, "DesignHairlines": hairlines_response, "SegmentFace": masks_response}


def response(method: str, answer: Answer) -> bytes:
    """The one message of a fast call."""
    if answer.response is not None:
        return answer.response.SerializeToString()
    return _BY_METHOD[method](answer.png_bytes)


def progress(method: str, step: int, behaviour: Grow) -> bytes:
    """A progress message of a slow call, before its first result."""
    message = _growth_message(method)
    message.progress.stage, message.progress.step, message.progress.total = "growing", step, behaviour.steps
    message.progress.attempt, message.progress.results_total = 1, behaviour.results
    return message.SerializeToString()


def growth(method: str, behaviour: Grow) -> Iterator[bytes]:
    """The messages that end a slow call: results, then the summary."""
    for number in range(behaviour.results):
        message = _growth_message(method)
        if isinstance(message, growth_pb2.GrowStylesResponse):
            message.result.style = f"style-{number}"
            _put(message.result.image, png(behaviour.png_bytes))
        else:
            _put(message.result.marked_image, png(behaviour.png_bytes))
        message.result.grown_reason = behaviour.grown_reason
        if not behaviour.grown_reason:
            _put(message.result.grown_image, png(behaviour.png_bytes))
            message.result.proof.hair_share = 0.95
        yield message.SerializeToString()
    message = _growth_message(method)
    message.summary.seed, message.summary.backend = 7, "local"
    yield message.SerializeToString()


def _growth_message(method: str) -> growth_pb2.GrowStylesResponse | growth_pb2.GrowRegionResponse:
    return growth_pb2.GrowStylesResponse() if method == "GrowStyles" else growth_pb2.GrowRegionResponse()


async def abort(context: Context, refusal: Refuse) -> NoReturn:
    """Fail as a worker does: `google.rpc.Status` with ErrorInfo, BadRequest and RetryInfo as far as they are given."""
    if not refusal.reason:
        await context.abort(refusal.code, "scripted")
    status = status_pb2.Status(code=refusal.code.value[0], message="scripted")
    info = error_details_pb2.ErrorInfo(reason=refusal.reason, domain=wire.ERROR_DOMAIN, metadata=dict(refusal.details))
    status.details.add().Pack(info)
    if refusal.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=refusal.field)
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    if refusal.retry_after_s is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromNanoseconds(int(refusal.retry_after_s * 1e9))
        status.details.add().Pack(retry)
    trailing = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(refusal.code, "scripted", trailing_metadata=trailing)
