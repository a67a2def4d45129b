"""Photos: the forms in which callers give them, and how they are sent: anew for every try, without a file's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

Photo = bytes | bytearray | memoryview | str | os.PathLike[str] | BinaryIO
"""The bytes of a picture, the path of its file, or a file that is open for reading in binary mode: an open file is sent
from its beginning, and stays open."""

UPLOAD_NAME = "photo"
"""The file name that is sent for every photo: the real one may be a patient's name."""
HEAD_BYTES = 32
UNKNOWN_TYPE = "application/octet-stream"

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftyphev", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
    (4, b"ftypmsf1", "image/heif"),
)
"""Offset in the file, bytes at that offset, media type: the formats of the contract."""


def media_type(head: bytes) -> str:
    """The media type of a photo by its first `HEAD_BYTES` bytes. The service does not rely on it."""
    return next((name for at, magic, name in _MAGIC if head[at:].startswith(magic)), UNKNOWN_TYPE)


Part = tuple[str, BinaryIO, str]
"""A file in a form, as httpx takes it: name, content, media type."""


class Upload:
    """One photo, ready to be sent once for every try."""

    def __init__(self, photo: Photo) -> None:
        """Raises `TypeError` where `photo` is none of the kinds of `Photo`.

        A file that cannot be wound back, such as a pipe, is read here: there may be several tries.
        """
        self._source: bytes | Path | BinaryIO
        match photo:
            case bytes() | bytearray() | memoryview():
                self._source = bytes(photo)
            case str() | os.PathLike():
                self._source = Path(photo)
            case _ if hasattr(photo, "read"):
                self._source = photo if photo.seekable() else photo.read()
            case _:
                raise TypeError("a photo is bytes, a path, or a file open for reading in binary mode")

    @contextmanager
    def opened(self, check: Callable[[], None]) -> Iterator[Part]:
        """The photo for one try; `check` is called before each piece of it is sent, and may end it by raising.

        Raises `OSError` for a file that cannot be read, `TypeError` for one in text mode.
        """
        if isinstance(self._source, bytes):
            yield _part(BytesIO(self._source), check)
        elif isinstance(self._source, Path):
            with self._source.open("rb") as file:
                yield _part(file, check)
        else:
            self._source.seek(0)
            yield _part(self._source, check)


class _Checked:
    """A file that asks before each piece is read."""

    def __init__(self, file: BinaryIO, check: Callable[[], None]) -> None:
        self._file = file
        self._check = check

    def read(self, size: int = -1) -> bytes:
        self._check()
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _part(file: BinaryIO, check: Callable[[], None]) -> Part:
    """The photo as part of a form; httpx winds files back before it sends them."""
    head = file.read(HEAD_BYTES)
    if not isinstance(head, bytes):
        raise TypeError("the photo's file is open in text mode")
    return UPLOAD_NAME, cast("BinaryIO", _Checked(file, check)), media_type(head)
