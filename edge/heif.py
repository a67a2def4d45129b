"""The size of a HEIF picture from its boxes (ISO/IEC 14496-12, 23008-12), without decoding it.

A picture from a phone is a grid of tiles, beside a thumbnail and perhaps a depth map; each has its own `ispe`, and the
largest is the whole picture's. Rotations and mirrors stand beside them and are of no interest here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAX_BOXES = 4096
"""Boxes looked at in one file; files from phones have a few dozen."""

_PATH = (b"meta", b"iprp", b"ipco", b"ispe")
"""Where sizes stand, from the outside in."""
_FULL_BOXES = frozenset({b"meta"})
"""Those of `_PATH` whose content begins with 4 bytes of version and flags."""
_ISPE = struct.Struct(">4xII")
"""Version and flags, width, height."""


def size_px(data: bytes) -> tuple[int, int] | None:
    """Width and height as stored, of the largest picture in the file; None where none is said.

    Any bytes are fine: what lies is not believed beyond the end of the file, and reading ends after `MAX_BOXES`.
    """
    walk = _Walk(data)
    return max(walk.sizes(0, len(data), _PATH), key=lambda size: size[0] * size[1], default=None)


class _Walk:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._boxes_left = MAX_BOXES

    def sizes(self, start: int, end: int, path: tuple[bytes, ...]) -> Iterator[tuple[int, int]]:
        """Sizes, none of them zero, in the boxes along `path` between two offsets."""
        for kind, begin, stop in self._boxes(start, end):
            if kind != path[0]:
                continue
            if len(path) > 1:
                yield from self.sizes(begin + (4 if kind in _FULL_BOXES else 0), stop, path[1:])
            elif stop - begin >= _ISPE.size:
                width, height = _ISPE.unpack_from(self._data, begin)
                if width and height:
                    yield width, height

    def _boxes(self, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
        """Kind, begin and end of the content of each box between two offsets."""
        while start + 8 <= end and self._boxes_left:
            self._boxes_left -= 1
            size, kind = struct.unpack_from(">I4s", self._data, start)
            begin = start + 8
            if size == 1 and begin + 8 <= end:  # the size follows in 64 bits
                (size,) = struct.unpack_from(">Q", self._data, begin)
                begin += 8
            stop = min(start + size, end) if size else end  # 0: to the end
            if stop < begin:
                return
            yield kind, begin, stop
            start = stop
