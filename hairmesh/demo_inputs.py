"""One bad input of each kind, made from a synthetic portrait, with the answer the contract promises for it."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpeople
from PIL import Image

from hairmesh.client import MEASURE_ROUTE

PERSON_ID = "P003"
"""One of openpeople's ten synthetic people (MIT): nobody's real face."""

_BACKDROP = (128, 128, 128)
_TURNED = "P005"
"""Another of them, seen half from the side in the "left view" of his character sheet …"""
_TURNED_BOX = (675, 150, 1125, 600)
"""… which lies there: left, top, right, bottom, in pixels of the sheet."""


def studio_portrait() -> bytes:
    """The demonstration's photo: a JPEG of 2048 × 2048 px."""
    return Path(openpeople.curated.get(PERSON_ID).asset_path("studio_portrait")).read_bytes()


@dataclass(frozen=True, slots=True)
class BadInput:
    """A request that must be refused, and how."""

    what: str
    http_status: int
    code: int
    reason: str
    request: dict[str, Any] = field(repr=False)
    """Keyword arguments of `Client.send`."""
    method: str = "POST"
    route: str = MEASURE_ROUTE


def bad_inputs(portrait: bytes) -> list[BadInput]:
    """All of them, photo problems first."""
    face = Image.open(io.BytesIO(portrait)).convert("RGB")
    return [*_photos(face), *_bodies(portrait), *_requests(portrait)]


def _photos(face: Image.Image) -> list[BadInput]:
    side = face.width
    scene = Image.linear_gradient("L").resize((800, 600)).convert("RGB")
    couple = Image.new("RGB", (2 * side, side))
    couple.paste(face, (0, 0))
    couple.paste(face, (side, 0))
    sheet = Image.open(openpeople.curated.get(_TURNED).asset_path("character_sheet")).convert("RGB")
    turned = sheet.crop(_TURNED_BOX).resize((960, 960), Image.Resampling.LANCZOS)
    tilted = face.rotate(40, resample=Image.Resampling.BICUBIC, fillcolor=_BACKDROP)
    poster = Image.new("L", (8000, 6000))
    photos: list[tuple[str, bytes, int, str]] = [
        ("no face in it", _encode(scene), 1001, "NO_FACE"),
        ("180 px wide", _encode(face.resize((180, 180))), 1002, "IMAGE_TOO_SMALL"),
        ("48 megapixels", _encode(poster, "PNG"), 1002, "IMAGE_TOO_MANY_PIXELS"),
        ("220 px wide", _encode(face.resize((220, 220))), 1002, "FACE_TOO_SMALL"),
        ("face cut off", _encode(face.crop((2 * side // 5, 0, side, side))), 1002, "FACE_CUT_OFF"),
        ("turned to the side", _encode(turned), 1003, "YAW"),
        ("head tilted by 40°", _encode(tilted), 1003, "ROLL"),
        ("upside down", _encode(face.rotate(180)), 1003, "UPSIDE_DOWN"),
        ("two people", _encode(couple.resize((side, side // 2))), 1006, "MULTIPLE_FACES"),
    ]
    return [BadInput(what, 400, code, reason, _upload(photo)) for what, photo, code, reason in photos]


def _bodies(portrait: bytes) -> list[BadInput]:
    """Bytes that are no picture the service reads."""
    too_large = portrait + bytes(3 * 1024 * 1024 - len(portrait))
    gif = _encode(Image.new("RGB", (400, 400), _BACKDROP), "GIF")
    damaged_base64 = base64.b64encode(portrait).decode()[:-100] + "!!!!"
    return [
        BadInput("3 MiB", 413, 1004, "BODY_TOO_LARGE", _upload(too_large)),
        BadInput("a GIF", 400, 1005, "UNSUPPORTED_FORMAT", _upload(gif)),
        BadInput("a JPEG cut in half", 400, 1005, "DAMAGED_IMAGE", _upload(portrait[: len(portrait) // 2])),
        BadInput("damaged base64", 400, 1005, "BAD_BASE64", {"json": {"image_base64": damaged_base64}}),
    ]


def _requests(portrait: bytes) -> list[BadInput]:
    """Requests that are wrong around the photo."""
    wrong_distance = {**_upload(portrait), "data": {"pupillary_distance_mm": "500"}}
    text = {"content": b"hello", "headers": {"content-type": "text/plain"}}
    return [
        BadInput("no photo", 400, 1008, "MISSING_PARAMETER", {"json": {"annotate": True}}),
        BadInput("eyes 500 mm apart", 400, 1008, "INVALID_PARAMETER", wrong_distance),
        BadInput("plain text", 415, 1008, "UNSUPPORTED_MEDIA_TYPE", text),
        BadInput("GET", 405, 1008, "METHOD_NOT_ALLOWED", {}, method="GET"),
        BadInput("no such route", 404, 1008, "NOT_FOUND", {}, route="/api/v1/face/nothing"),
    ]


def _upload(photo: bytes) -> dict[str, Any]:
    return {"files": {"image": ("photo", photo)}}


def _encode(picture: Image.Image, kind: str = "JPEG") -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind)
    return buffer.getvalue()
