"""What the edge can tell of a picture without decoding it: its format by the bytes, its size by the header, and whether
a JPEG is made to keep a decoder busy.

Whether it is whole, upright and shows a face is the worker's business.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field

import imagesize

from edge import heif
from edge.errors import ApiError
from edge.settings import Limits
from vision import jpeg
from vision.errors import PhotoError

MEDIA_TYPES: Mapping[str, str] = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "HEIF": "image/heif",
}
"""Formats that workers read. The last three can be switched off (`limits.rare_formats`)."""
COMMON_FORMATS = frozenset({"JPEG", "PNG", "WEBP"})

MIN_SIDE_PX = 200
"""Shortest side of a photo."""

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"BM", "BMP"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    # Named in the refusal, so that a client knows what was sent:
    (b"GIF8", "GIF"),
    (b"%PDF", "PDF"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\x00\x00\x00\x0cJXL ", "JPEG XL"),
    (b"\x00\x00\x00\x0cjP  ", "JPEG 2000"),
    (b"8BPS", "PSD"),
    (b"\x00\x00\x01\x00", "ICO"),
    (b"PK\x03\x04", "ZIP"),
    (b"<svg", "SVG"),
    (b"<?xml", "XML"),
    (b"<!DOCTYPE", "HTML"),
    (b"<html", "HTML"),
)
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_GENERIC_BRANDS = frozenset({b"mif1", b"msf1"})


@dataclass(frozen=True, slots=True)
class Photo:
    """A picture as uploaded, not decoded: a photo, or the mask of one."""

    data: bytes = field(repr=False)
    format: str
    """A key of `MEDIA_TYPES`."""
    width_px: int
    """As stored, before any orientation is applied; 0 where a HEIF file does not say, and the worker will see."""
    height_px: int


def format_of(data: bytes) -> str:
    """Name of the file format by its first bytes; `unknown` where none is recognized."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp":
        return _iso_format(data)
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return name
    return "unknown"


def _iso_format(data: bytes) -> str:
    """HEIF, AVIF or a video, by the brands in the `ftyp` box."""
    box = data[: min(int.from_bytes(data[:4], "big"), 256)]
    major = box[8:12]
    brands = {major, *(box[at : at + 4] for at in range(16, len(box) - 3, 4))}
    if major in _AVIF_BRANDS or (major in _GENERIC_BRANDS and brands & _AVIF_BRANDS):
        return "AVIF"
    if major in _HEIF_BRANDS or major in _GENERIC_BRANDS or brands & _HEIF_BRANDS:
        return "HEIF"
    return "video"


class _HeaderTooLongError(Exception):
    """A header that takes more reading than any real one."""


class _BoundedReader(io.BytesIO):
    """Reads a whole file for its header: endless chains of tiny boxes and giant tables end here, in 2 ms."""

    MAX_READS = 2000
    """A phone's photo takes some thirty."""
    MAX_BYTES_AT_ONCE = 65_536

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """At most `MAX_BYTES_AT_ONCE`, at most `MAX_READS` times; raises `_HeaderTooLongError`."""
        self._reads += 1
        if size is None or not 0 <= size <= self.MAX_BYTES_AT_ONCE or self._reads > self.MAX_READS:
            raise _HeaderTooLongError
        return super().read(size)


def _size_px(data: bytes, name: str) -> tuple[int, int]:
    """Width and height as stored; raises `ApiError` when the header of a format that must say them does not."""
    if name == "HEIF":  # imagesize cannot read those that are rotated
        return heif.size_px(data) or (0, 0)
    # imagesize answers -1, -1 for whatever goes wrong inside.
    width, height = imagesize.get(_BoundedReader(data), exif_rotation=False)
    if width <= 0 or height <= 0:
        raise ApiError("DAMAGED_IMAGE", {"format": name})
    return int(width), int(height)


def inspect(data: bytes, limits: Limits) -> Photo:
    """The photo in `data` if it is of a format and a size we take; raises `ApiError`."""
    photo = _recognized(data, limits)
    width, height = photo.width_px, photo.height_px
    if not width:
        return photo
    if min(width, height) < MIN_SIDE_PX:
        raise ApiError("IMAGE_TOO_SMALL", {"width": width, "height": height, "min": MIN_SIDE_PX})
    if width * height > limits.max_pixels:
        raise ApiError(
            "IMAGE_TOO_MANY_PIXELS",
            {"width": width, "height": height, "pixels": width * height, "max": limits.max_pixels},
        )
    return photo


def inspect_mask(data: bytes, photo: Photo, limits: Limits) -> Photo:
    """The mask in `data` if it can be one of `photo`; raises `ApiError`, every time for a parameter.

    Either may be stored turned by a right angle: that the upright ones are of one size, the worker will see.
    """
    try:
        mask = _recognized(data, limits)
    except ApiError as error:
        raise ApiError("MASK_UNREADABLE", {"field": "mask", **error.details}) from None
    sides, photo_sides = (sorted((each.width_px, each.height_px)) for each in (mask, photo))
    too_many = mask.width_px * mask.height_px > limits.max_pixels
    if too_many or (mask.width_px and photo.width_px and sides != photo_sides):
        details = {"width": mask.width_px, "height": mask.height_px}
        expected = {"photo_width": photo.width_px, "photo_height": photo.height_px} if photo.width_px else {}
        raise ApiError("MASK_SIZE_DIFFERS", {"field": "mask", **details, **expected})
    return mask


def _recognized(data: bytes, limits: Limits) -> Photo:
    """A picture of a format that is read, whatever its size; raises `ApiError`."""
    if not data:
        raise ApiError("DAMAGED_IMAGE", {"size_bytes": 0})
    name = format_of(data)
    if name not in COMMON_FORMATS and name not in limits.rare_formats:
        supported = ", ".join(sorted(COMMON_FORMATS | limits.rare_formats))
        raise ApiError("UNSUPPORTED_FORMAT", {"format": name, "supported": supported})
    width, height = _size_px(data, name)
    if name == "JPEG":
        try:
            jpeg.check(data)
        except PhotoError as error:
            raise ApiError(error.reason, error.details) from None
    return Photo(data=data, format=name, width_px=width, height_px=height)
