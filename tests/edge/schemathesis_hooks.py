"""What schemathesis cannot make up itself: pictures, and a region where one is text. It loads this file."""

from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis import Case, HookContext, SerializationContext

from edge.openapi_examples import BLANK_PHOTO
from edge.photo import MEDIA_TYPES

_WIDTH_AND_HEIGHT = "\0\1\0\0" * 2  # 256 px, little-endian
ASCII_PHOTO = "BM\x7f" + "\0" * 11 + "\x28\0\0\0" + _WIDTH_AND_HEIGHT + "\1\0\1" + "\0" * 40
"""Beginning of a BMP, of which the edge reads no more. As text it fits its schema, which bytes do not, and a request
stays what it was meant to be: good or bad."""
_TEXTS = {
    "application/json": {"image_base64": BLANK_PHOTO, "mask_base64": BLANK_PHOTO},
    "multipart/form-data": {"image": ASCII_PHOTO, "mask": ASCII_PHOTO, "region": "[[60, 20], [140, 20], [100, 60]]"},
}


@schemathesis.serializer(*MEDIA_TYPES.values())
def part(_context: SerializationContext, value: Any) -> bytes:
    """What stands in the place of a picture, as it is."""
    return str(value).encode()


@schemathesis.hook
def before_call(_context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
    """Put what is meant in the place of what only has the right type, so that the rest decides about the request."""
    if isinstance(case.body, dict):
        for name, text in _TEXTS.get(case.media_type or "", {}).items():
            if isinstance(case.body.get(name), str):
                case.body[name] = text
    case.headers.pop("x-schemathesis-unknown-property", None)  # to be refused for it is no virtue: HTTP ignores those
