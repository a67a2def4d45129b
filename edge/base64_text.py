"""Base64 as clients write it, decoded piece by piece: a photo of 2 MB in one go would take 4 ms, and 45 where each of
its lines holds a character. No thread would help: whoever decodes holds the interpreter.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from edge.errors import ApiError

PIECE_CHARACTERS = 131_072
"""Decoded in less than a millisecond, whatever it holds."""

_DATA_PREFIX = re.compile(r"\s*data:[^,\s]{0,200};base64,", re.IGNORECASE)
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_BLANKS = b" \t\n\r\v\f"


def decoded(text: str) -> Iterator[bytes]:
    """Bytes of a base64 text in pieces: plain or URL-safe, padded or not, in one line or many, with or without `data:`.

    Raises `ApiError` BAD_BASE64, maybe after some pieces, for anything that a damaged text may have turned into: blanks
    inside, both alphabets mixed, lines of different width, a length that no bytes have, bits left over at the end.
    """
    if prefix := _DATA_PREFIX.match(text):
        text = text[prefix.end() :]
    text = text.lstrip().rstrip("\r\n")
    url_safe = "-" in text or "_" in text
    if url_safe and ("+" in text or "/" in text):
        raise _bad("two alphabets")
    rest = ""
    for piece in _unwrapped(text):
        rest += piece.replace("-", "+").replace("_", "/") if url_safe else piece
        whole = max(0, len(rest) - 1) // 4 * 4  # without the last group: it alone may be short
        data = _bytes_of(rest[:whole])
        if len(data) * 4 != whole * 3:  # padding inside
            raise _bad(_what_is_wrong(rest))
        yield data
        rest = rest[whole:]
    if not rest.endswith("="):
        rest += "=" * (-len(rest) % 4)
    data = _bytes_of(rest)
    # The bits beyond the last byte must be zero: anything else has lost its tail.
    if binascii.b2a_base64(data, newline=False) != rest.encode():
        raise _bad("cut off")
    yield data


def _unwrapped(text: str) -> Iterator[str]:
    """Text without its line breaks, in pieces; raises `ApiError` unless all lines but the last are of one width."""
    break_at = text.find("\n")
    if break_at < 0:
        for start in range(0, len(text), PIECE_CHARACTERS):
            yield text[start : start + PIECE_CHARACTERS]
        return
    end = "\r\n" if text[break_at - 1] == "\r" else "\n"
    stride = break_at + 1
    step = max(1, PIECE_CHARACTERS // stride) * stride
    for start in range(0, len(text), step):
        lines = text[start : start + step]
        bare = lines.replace(end, "")
        breaks = (len(lines) - len(bare)) // len(end)
        in_place = lines[break_at::stride] == "\n" * breaks and "\n" not in bare
        if not in_place or len(lines) % stride > stride - len(end):
            raise _bad("lines of different width")
        yield bare


def _bytes_of(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # binascii.Error, or a character beyond ASCII
        raise _bad(_what_is_wrong(text)) from None


def _what_is_wrong(text: str) -> str:
    """Why a text cannot be base64, as far as that is clear."""
    foreign = text.encode("ascii", "replace").translate(None, _ALPHABET)
    if not foreign:
        return "cut off, or = in the wrong place"
    return "blanks inside" if len(foreign.translate(None, _BLANKS)) < len(foreign) else "characters that are not base64"


def _bad(problem: str) -> ApiError:
    return ApiError("BAD_BASE64", {"problem": problem})
