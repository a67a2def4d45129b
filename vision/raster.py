"""Photo bytes to 8-bit sRGB. Knows nothing of processes and does not turn the picture; see `vision.decode`."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from enum import StrEnum
from zlib import crc32

import numpy as np
import simplejpeg
from PIL import Image, ImageCms

from vision.errors import PhotoError, Reason
from vision.types import RgbImage

# The pixel limit is checked from the header, below, and answered with the measured value.
Image.MAX_IMAGE_PIXELS = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What is decoded at all."""

    max_pixels: int = 40_000_000
    min_side_px: int = 200


class Format(StrEnum):
    """Formats that are read."""

    JPEG = "JPEG"
    PNG = "PNG"
    WEBP = "WEBP"
    BMP = "BMP"
    TIFF = "TIFF"
    HEIF = "HEIF"


_MAGIC: tuple[tuple[int, bytes, Format | str], ...] = (
    # offset, bytes, name
    (0, b"\xff\xd8\xff", Format.JPEG),
    (0, b"\x89PNG\r\n\x1a\n", Format.PNG),
    (8, b"WEBP", Format.WEBP),
    (0, b"BM", Format.BMP),
    (0, b"II*\0", Format.TIFF),
    (0, b"MM\0*", Format.TIFF),
    (0, b"II+\0", Format.TIFF),
    (0, b"MM\0+", Format.TIFF),
    (0, b"GIF8", "GIF"),
    (0, b"%PDF", "PDF"),
    (0, b"8BPS", "PSD"),
    (0, b"\0\0\0\x0cjP  ", "JPEG 2000"),
    (0, b"\0\0\0\x0cJXL ", "JPEG XL"),
    (0, b"\xff\x0a", "JPEG XL"),
    (0, b"\0\0\1\0", "ICO"),
    (0, b"<svg", "SVG"),
    (0, b"<?xml", "SVG"),
)
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})

_ORIENTATION_TAG = 0x0112
_ORIENTATIONS = range(1, 9)
_WITH_ALPHA = frozenset({"RGBA", "LA", "PA", "RGBa", "La"})
_NO_STATED_RANGE = {"F": "floating-point values", "I": "32-bit values"}
"""Pillow's modes whose black and white are nowhere stated."""


def sniff(data: bytes) -> Format | str:
    """The format by its first bytes: a `Format` if it is one that is read, else its name, `unknown` if none fits."""
    if data[4:8] == b"ftyp":
        brands = {data[8:12]} | {data[at : at + 4] for at in range(16, min(int.from_bytes(data[:4]), 64), 4)}
        if brands & _AVIF_BRANDS:
            return "AVIF"
        return Format.HEIF if brands & _HEIF_BRANDS else "MP4 or another ISO media file"
    for offset, magic, name in _MAGIC:
        if data.startswith(magic, offset):
            return name
    return "unknown"


@dataclass(frozen=True, slots=True)
class Raster:
    """8-bit sRGB as stored."""

    rgb: RgbImage
    orientation: int
    """What the photo says of its EXIF orientation, 1 to 8."""
    turn: int
    """The EXIF orientation still to be applied: 1 where the decoder has done it (TIFF)."""


def read(data: bytes, form: Format, limits: Limits, ground: str = "white") -> Raster:
    """Decode the primary frame; raises `PhotoError` (too small, too many pixels, damaged, unsupported depth).

    `ground` is the colour, by name, that shows through where the picture is transparent.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged metadata; the pixels are judged by themselves
            return _read(data, form, limits, ground)
    except (PhotoError, MemoryError):
        raise
    except Exception as error:
        # Decoders answer damaged bytes with whatever comes to hand: OSError, SyntaxError, ValueError, struct.error …
        raise PhotoError(Reason.DAMAGED_IMAGE, {"format": form}) from error


def _read(data: bytes, form: Format, limits: Limits, ground: str) -> Raster:
    image: Image.Image = Image.open(io.BytesIO(data), formats=[form])
    _check_size(image.size, limits)  # before anything is decoded
    if form is Format.PNG:
        _check_sums(data)
    if form is Format.WEBP and len(data) < 8 + int.from_bytes(data[4:8], "little"):
        raise PhotoError(Reason.DAMAGED_IMAGE, {"format": form})
    profile = image.info.get("icc_profile")
    if form is Format.JPEG and image.mode in {"RGB", "L"} and (rgb := _strict_jpeg(data)) is not None:
        orientation = _orientation(image)
        convert = _to_srgb(profile, "RGB")
        if convert is not None and image.mode == "RGB":
            rgb = np.asarray(ImageCms.applyTransform(Image.fromarray(rgb), convert))
        return Raster(rgb, orientation, turn=orientation)
    # A TIFF is turned by being decoded. A PNG is decoded by being asked for its EXIF block, damage forgiven.
    stated = _orientation(image) if form is Format.TIFF else None
    image.load()
    turn = _orientation(image)
    return Raster(np.asarray(_rgb(image, profile, ground)), stated or turn, turn)


def _check_sums(data: bytes) -> None:
    """Raise `PhotoError` unless every critical chunk of a PNG is whole, by its checksum, through to the last.

    Pillow looks at the checksums of the pixels' chunks only in part, and not at all behind the last row.
    """
    at, kind = 8, b""
    while kind != b"IEND":
        length, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        end = at + 8 + length
        critical = len(kind) == 4 and not kind[0] & 0x20  # an upper case letter first
        if end + 4 > len(data) or (critical and crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4])):
            raise PhotoError(Reason.DAMAGED_IMAGE, {"format": Format.PNG})
        at = end + 4


_DAMAGED_SCAN = re.compile(r"remature end|bad Huffman code|instead of RST|before marker 0xd[0-7]")
"""libjpeg's warnings that say that pixels are lost, made up or out of place."""


def _strict_jpeg(data: bytes) -> RgbImage | None:
    """Pixels of a whole JPEG; None when Pillow should judge it.

    libjpeg fills what is missing at the end with grey and only warns, and Pillow does not look at the warning.
    """
    try:
        rgb: RgbImage = simplejpeg.decode_jpeg(data, colorspace="RGB", strict=True)
    except ValueError as error:
        if _DAMAGED_SCAN.search(str(error)):
            raise
        return None  # other warnings, such as superfluous bytes between segments, are common and harmless
    return rgb


def _orientation(image: Image.Image) -> int:
    """1 to 8; 1 when the photo does not say, or says it in a damaged EXIF block (viewers ignore such a block)."""
    try:
        found = image.getexif().get(_ORIENTATION_TAG, 1)
    except Exception:  # noqa: BLE001  (any of Pillow's errors on damaged metadata; the pixels are judged by themselves)
        return 1
    return found if found in _ORIENTATIONS else 1


def _check_size(size: tuple[int, int], limits: Limits) -> None:
    width, height = size
    if width * height > limits.max_pixels:
        details = {"width": width, "height": height, "pixels": width * height, "max": limits.max_pixels}
        raise PhotoError(Reason.IMAGE_TOO_MANY_PIXELS, details)
    if min(width, height) < limits.min_side_px:
        raise PhotoError(Reason.IMAGE_TOO_SMALL, {"width": width, "height": height, "min": limits.min_side_px})


def _rgb(image: Image.Image, profile: bytes | None, ground: str) -> Image.Image:
    """What a viewer shows, as 8-bit sRGB: alpha on its ground, 16 bits scaled, ink and palettes resolved."""
    if image.mode in _NO_STATED_RANGE:
        raise PhotoError(Reason.UNSUPPORTED_FORMAT, {"format": f"{image.format} with {_NO_STATED_RANGE[image.mode]}"})
    if image.mode.startswith("I;16"):
        # convert("L") would clip at 255 and show a white picture.
        return image.point(lambda value: value * (1 / 257), "L").convert("RGB")
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        opaque = Image.new("RGBA", image.size, ground)
        opaque.alpha_composite(image.convert("RGBA"))
        image = opaque.convert("RGB")
    elif image.mode not in {"RGB", "CMYK"}:
        image = image.convert("RGB")
    convert = _to_srgb(profile, image.mode)
    if convert is not None and (converted := ImageCms.applyTransform(image, convert)) is not None:
        return converted
    return image.convert("RGB")


def _to_srgb(profile: bytes | None, mode: str) -> ImageCms.ImageCmsTransform | None:
    """From the colours of an embedded profile; None where there is nothing to convert, or no usable profile.

    Without one RGB is taken for sRGB, and ink is mixed, as viewers do.
    """
    if not profile:
        return None
    try:
        embedded = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if embedded.profile.xcolor_space.strip() != mode or "sRGB" in ImageCms.getProfileDescription(embedded):
            return None
        return ImageCms.buildTransform(embedded, ImageCms.createProfile("sRGB"), mode, "RGB")
    except (OSError, ImageCms.PyCMSError):
        return None
