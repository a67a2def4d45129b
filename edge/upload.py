"""Bytes in, checked: the request body, read under its limit, taken apart into its files and its parameters.

The whole body stays in memory; no upload touches a disk. File names and the content types of parts are ignored: the
format is decided by the bytes. Nothing of a refused body is repeated in the refusal.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import orjson
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.datastructures import Headers
from starlette.types import Receive

from edge import base64_text
from edge.errors import ApiError, invalid

PHOTO = "image"
"""Name of the file that every call has."""
MAX_PARTS = 32
"""Parts of a form, keys of a JSON object: more than any call has parameters."""
MAX_VALUES = 10_000
"""Commas and opening brackets of a JSON body, strings included, by which it is refused before it is parsed: the longest
polygon has a third of that. A million values take the parser 150 ms in one go, and memory for each."""
SLICE_BYTES = 262_144
"""A form is parsed in slices of this, and others get their turn in between. JSON is parsed in one go, and takes the
turns of its slices."""
SMALL_PIECE_BYTES = 4096
MAX_PADDING = 64
"""Blanks behind a boundary: allowed, and sent by nobody."""
MAX_SEMICOLONS = 100
"""In the type of a body or the disposition of a part, values included: a file's name may be made of HTML entities.
Their parser takes 5 ms for what a header may hold of them."""
MAX_LENGTH_DIGITS = 19
MAX_FIELD_BYTES = 65_536
"""One parameter as a form field: the longest polygon fits."""
BODY_GRACE_S = 20.0
"""For a body to begin to arrive, and to fall behind later."""
BODY_MIN_BYTES_PER_S = 16_384.0
"""What a body must arrive with on average, that grace aside: 130 kbit/s, so 2 MiB may take two minutes and a half."""

# The parser warns about every malformed body; the refusal says all there is to say.
logging.getLogger("python_multipart").setLevel(logging.ERROR)


class ClientGoneError(Exception):
    """The client closed its connection: nobody is left to answer."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a call's body may hold beside parameters of one value."""

    files: frozenset[str] = frozenset({PHOTO})
    """Names of files in a form; in JSON each is `<name>_base64`."""
    lists: frozenset[str] = frozenset()
    """Parameters that a form may repeat."""


@dataclass(frozen=True, slots=True)
class Upload:
    """What a body held, before anything of it is judged."""

    files: Mapping[str, bytes] = field(repr=False)
    """By name; those that were not sent are not there."""
    parameters: Mapping[str, object] = field(repr=False)
    """Text from a form, a list of texts where a field was repeated; JSON values from JSON."""


def in_json(name: str) -> str:
    """What a file is called in JSON."""
    return f"{name}_base64"


class Shares(Protocol):
    """What a body shares with all others."""

    def take(self, count: int) -> None:
        """So many bytes more have arrived; raises `ApiError` where there is no room for them."""

    async def turn(self, pieces: int = 1) -> None:
        """Wait until so many pieces more of the body may be read or parsed."""


def declared_bytes(headers: Headers) -> int:
    """What Content-Length says the body has; 0 where it says nothing.

    Of its digits as many as any length has: Python refuses to read thousands of them, the parser of HTTP does not.
    """
    return int(headers.get("content-length", "").lstrip("0")[:MAX_LENGTH_DIGITS] or "0")


async def read_body(receive: Receive, headers: Headers, max_bytes: int, shares: Shares) -> bytes:
    """The whole body; raises `ApiError` once it is too large or too slow, `ClientGoneError` when it breaks off."""
    if (declared := declared_bytes(headers)) > max_bytes:
        raise ApiError("BODY_TOO_LARGE", {"size_bytes": declared, "max_bytes": max_bytes})
    pieces: list[bytes | bytearray] = []
    size = 0
    now_s = asyncio.get_running_loop().time
    began_s = now_s()
    try:
        async with asyncio.timeout(BODY_GRACE_S) as patience:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                piece: bytes = message.get("body", b"")
                size += len(piece)
                if size > max_bytes:
                    raise ApiError("BODY_TOO_LARGE", {"size_bytes": size, "max_bytes": max_bytes})
                shares.take(len(piece))
                _append(pieces, piece)
                if not message.get("more_body", False):
                    await shares.turn(1 + size // SLICE_BYTES)
                    return b"".join(pieces)
                await shares.turn()
                patience.reschedule(began_s + BODY_GRACE_S + size / BODY_MIN_BYTES_PER_S)
    except TimeoutError:
        waited_s = round(now_s() - began_s, 1)
        details = {"received_bytes": size, "waited_s": waited_s, "min_bytes_per_s": BODY_MIN_BYTES_PER_S}
        raise ApiError("BODY_INCOMPLETE", details) from None


def _append(pieces: list[bytes | bytearray], piece: bytes) -> None:
    """Small pieces in common ones: where a client sends single bytes, one object for each takes 40 times as much."""
    if len(piece) >= SMALL_PIECE_BYTES or not pieces:
        pieces.append(piece)
    elif isinstance(last := pieces[-1], bytearray) and len(last) < SLICE_BYTES:
        last += piece
    else:
        pieces.append(bytearray(piece))


def is_supported(content_type: str) -> bool:
    """Whether `parse` takes bodies of this type: known before a byte of the body is read."""
    kind, _, _ = content_type.partition(";")
    known = kind.strip().lower() in {"multipart/form-data", "application/json"}
    return known and content_type.count(";") <= MAX_SEMICOLONS


async def parse(content_type: str, body: bytes, shape: Shape, shares: Shares) -> Upload:
    """Files and parameters of a body of a supported type; raises `ApiError`."""
    kind, options = parse_options_header(content_type)
    if kind == b"application/json":
        return await _parse_json(body, shape, shares)
    return await _parse_form(options.get(b"boundary", b""), body, shape, shares)


async def _parse_json(body: bytes, shape: Shape, shares: Shares) -> Upload:
    await shares.turn(1 + len(body) // SLICE_BYTES)
    if _holds_many_values(body):
        raise ApiError("BAD_JSON", {"max_values": MAX_VALUES})
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:  # its words are fixed ones: nothing of the text is in them
        raise ApiError("BAD_JSON", {"problem": error.msg, "line": error.lineno, "column": error.colno}) from None
    if not isinstance(content, dict):
        raise ApiError("BAD_JSON", {"expected": "an object"})
    if len(content) > MAX_PARTS:
        raise ApiError("BAD_JSON", {"max_keys": MAX_PARTS})
    texts = {name: content.pop(in_json(name), None) for name in sorted(shape.files)}
    files = {name: await _from_json(name, text, shares) for name, text in texts.items() if text is not None}
    return Upload(files=files, parameters=content)


def _holds_many_values(body: bytes) -> bool:
    """Whether there are more than `MAX_VALUES`, without parsing: 0.1 ms for a photo of 2 MB, 1 ms at worst."""
    seen = 0
    for mark in (b",", b"[", b"{"):
        at = body.find(mark)
        while at >= 0:
            seen += 1
            if seen > MAX_VALUES:
                return True
            at = body.find(mark, at + 1)
    return False


async def _from_json(name: str, text: object, shares: Shares) -> bytes:
    """The file of that name; any but the photo is a parameter, and so is what is wrong with it."""
    key = in_json(name)
    if not isinstance(text, str):
        raise invalid(key, expected="text")
    pieces: list[bytes] = []
    await shares.turn()
    try:
        for piece in base64_text.decoded(text):
            pieces.append(piece)
            await shares.turn()
    except ApiError as error:
        reason = error.reason if name == PHOTO else "MASK_UNREADABLE"
        raise ApiError(reason, {"field": key, **error.details}) from None
    return b"".join(pieces)


class _Form:
    """Collects the parts of one form from the parser's callbacks. Slices of the body are copied once."""

    def __init__(self, lists: frozenset[str]) -> None:
        self.files: dict[str, bytes] = {}
        self.fields: dict[str, list[bytes]] = {}
        self.complete = False
        self._disposition = b""
        self._header = b""
        self._value = b""
        self._data: list[bytes] = []
        self._parts = 0
        self._lists = lists

    def part_begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise ApiError("BAD_MULTIPART", {"max_parts": MAX_PARTS})
        self._disposition = b""
        self._data = []

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def part_data(self, data: bytes, start: int, end: int) -> None:
        self._data.append(data[start:end])

    def part_end(self) -> None:
        if self._disposition.count(b";") > MAX_SEMICOLONS:
            raise ApiError("BAD_MULTIPART", {"max_semicolons": MAX_SEMICOLONS})
        kind, options = parse_options_header(self._disposition)
        try:
            name = options[b"name"].decode()
        except (KeyError, UnicodeDecodeError):
            raise ApiError("BAD_MULTIPART", {"missing": "name of a part, in UTF-8"}) from None
        if kind != b"form-data":
            raise ApiError("BAD_MULTIPART", {"expected": "parts with Content-Disposition: form-data"})
        # `filename*` is not allowed in forms, but clients send it; it still says that this is a file.
        is_file = b"filename" in options or b"filename*" in self._disposition.lower()
        if name in self.files or (name in self.fields and (is_file or name not in self._lists)):
            raise invalid(public_name(name), problem="sent twice")
        value = b"".join(self._data)
        if is_file:
            if value or options.get(b"filename"):  # else a browser's form, in which no file was chosen
                self.files[name] = value
        else:
            self.fields.setdefault(name, []).append(value)

    def end(self) -> None:
        self.complete = True


async def _parse_form(boundary: bytes, body: bytes, shape: Shape, shares: Shares) -> Upload:
    form = _Form(shape.lists)
    if not boundary:
        raise ApiError("BAD_MULTIPART", {"missing": "boundary"})
    await shares.turn(1 + len(body) // SLICE_BYTES)
    _refuse_what_keeps_the_parser_busy(body, b"\r\n--" + boundary)
    try:
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": form.part_begin,
                "on_part_data": form.part_data,
                "on_part_end": form.part_end,
                "on_header_field": form.header_field,
                "on_header_value": form.header_value,
                "on_header_end": form.header_end,
                "on_end": form.end,
            },
        )
        for start in range(0, len(body), SLICE_BYTES):
            await shares.turn()
            parser.write(body[start : start + SLICE_BYTES])
    except FormParserError:  # MultipartParseError is one of them
        raise ApiError("BAD_MULTIPART", {"problem": "is not in parts divided by the boundary"}) from None
    if not form.complete:
        raise ApiError("BAD_MULTIPART", {"missing": "closing boundary"})
    for name in sorted(shape.files):
        base64_name = in_json(name)
        if base64_name in form.fields or base64_name in form.files:
            raise invalid(base64_name, expected=f"a file named {name}; base64 is for JSON bodies")
        if name in form.fields:
            raise invalid(name, expected="a file")
    for name in form.files:
        if name not in shape.files:
            raise invalid(public_name(name), problem="is not a file of this call")
    return Upload(files=form.files, parameters={name: _texts(name, values) for name, values in form.fields.items()})


def _refuse_what_keeps_the_parser_busy(body: bytes, delimiter: bytes) -> None:
    """Raise `ApiError` for what it would read byte by byte, 20 ms for a slice: delimiters that divide nothing, of which
    a body may hold any number, and blanks behind one. Takes 0.2 ms for a photo of 2 MB.
    """
    seen = 0
    at = -2 if body.startswith(delimiter[2:]) else body.find(delimiter)  # nothing stands before the first one
    while at != -1:
        behind = at + len(delimiter)
        seen += 1
        if seen > MAX_PARTS + 1:
            raise ApiError("BAD_MULTIPART", {"max_parts": MAX_PARTS})
        padding = body[behind : behind + MAX_PADDING + 1]
        if len(padding) > MAX_PADDING and not padding.strip(b" \t"):
            raise ApiError("BAD_MULTIPART", {"max_padding": MAX_PADDING})
        at = body.find(delimiter, behind)


def _texts(name: str, values: list[bytes]) -> str | list[str]:
    """A field's text, or its texts where it was repeated."""
    if sum(map(len, values)) > MAX_FIELD_BYTES:
        raise invalid(public_name(name), max_bytes=MAX_FIELD_BYTES)
    try:
        texts = [value.decode() for value in values]
    except UnicodeDecodeError:
        raise invalid(public_name(name), expected="UTF-8 text") from None
    return texts[0] if len(texts) == 1 else texts


def public_name(name: str) -> str:
    """A field's name as it may stand in an answer: what cannot be one of ours is not repeated."""
    return name if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) else "?"
