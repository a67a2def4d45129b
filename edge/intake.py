"""What a request brings: its files, looked at, and its parameters, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from edge import upload
from edge.errors import ApiError
from edge.exchange import Exchange
from edge.parameters import Parameters, validate
from edge.photo import Photo, inspect, inspect_mask
from edge.settings import Limits

P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True, slots=True)
class Intake(Generic[P]):
    """Of one call."""

    photo: Photo
    mask: Photo | None
    """Of calls whose body may hold one."""
    parameters: P


async def take_in(exchange: Exchange, kind: type[P], limits: Limits) -> Intake[P]:
    """Read the body of a call with these parameters; raises `ApiError` for the first thing that is wrong."""
    content_type = exchange.headers.get("content-type", "")
    if not upload.is_supported(content_type):
        raise ApiError("UNSUPPORTED_MEDIA_TYPE")
    exchange.timeout_s()  # a wrong header is refused before the body is read
    with exchange.room.body() as room:
        body = await upload.read_body(exchange.receive, exchange.headers, limits.max_body_bytes, room)
        given = await upload.parse(content_type, body, kind.shape, room)
        parameters = validate(kind, given.parameters)
        if "image" not in given.files:
            raise ApiError("MISSING_PARAMETER", {"field": "image", "in_json": upload.in_json("image")})
        await room.turn()
        photo = inspect(given.files["image"], limits)
        mask = inspect_mask(given.files["mask"], photo, limits) if "mask" in given.files else None
        return Intake(photo, mask, parameters)
