"""How a JPEG is laid out, by its markers and undecoded: what takes a decoder far longer than its size and pixels say.

The standard library and nothing else: the edge asks here before it asks a worker, and workers before they decode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vision.errors import PhotoError, Reason

MAX_SCANS = 32
"""Each goes through all pixels again, be it 83 bytes long. Cameras write 1 or 10, mozjpeg up to 16."""
MAX_SEGMENTS = 2000
"""Before the pixels. Decoders gather what some of them hold, and copy it with each. A photo has some ten."""

_MARKER = re.compile(rb"\xff[\x02-\xcf\xd9-\xfe]")
"""None of those that stand alone, such as the start (D8) and restarts within a scan (D0 to D7); neither a 255 among the
pixels (0 follows), nor filling (255 follows)."""
_END, _SCAN = 0xD9, 0xDA
_SEQUENTIAL = frozenset({0xC0, 0xC1})
_ARITHMETIC = frozenset(range(0xC9, 0xD0)) - {0xCC}


def check(data: bytes) -> None:
    """Raise `PhotoError` for a JPEG that no camera writes, and that can take a decoder minutes.

    DAMAGED_IMAGE: more than `MAX_SCANS`, more than `MAX_SEGMENTS`. UNSUPPORTED_FORMAT: arithmetic coding, where a few
    bytes stand for any amount of work; hardly a viewer shows it. Whatever else is wrong the decoder will see.
    """
    scans = colours = 0
    for segments, (kind, at) in enumerate(_segments(data), start=1):
        if kind in _ARITHMETIC:
            raise PhotoError(Reason.UNSUPPORTED_FORMAT, {"format": "JPEG with arithmetic coding"})
        if kind in _SEQUENTIAL:
            colours = int.from_bytes(data[at + 7 : at + 8])
        if kind == _SCAN:
            scans += 1
            whole = colours > 0 and int.from_bytes(data[at + 2 : at + 3]) == colours
            if scans == 1 and (whole or data.count(b"\xff\xda", at) < MAX_SCANS):
                return  # all in one scan, and no decoder goes on; or so few at most: need not be told from what is none
            if scans > MAX_SCANS:
                raise PhotoError(Reason.DAMAGED_IMAGE, {"format": "JPEG", "scans": scans, "max": MAX_SCANS})
        if segments - scans > MAX_SEGMENTS:
            raise PhotoError(Reason.DAMAGED_IMAGE, {"format": "JPEG", "segments": segments, "max": MAX_SEGMENTS})


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Marker, and where its length stands, of each segment, as far as the end of the picture.

    What lies behind that may be another picture or a film. What lies inside a segment may be a small picture.
    """
    at = 0
    while (found := _MARKER.search(data, at)) is not None and (kind := data[found.end() - 1]) != _END:
        yield kind, found.end()
        at = found.end() + int.from_bytes(data[found.end() : found.end() + 2])
