"""Photo bytes to 8-bit sRGB. Knows nothing of processes and does not turn the picture; see `vision.decode`."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from zlib import crc32

import numpy as np
import simplejpeg
from PIL import Image, ImageCms

from vision import jpeg
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

MAX_CHUNKS = 10_000
"""Of a PNG. A photo has one of pixels for each 8 KB or more, and some ten others."""
BAND_PIXELS = 200_000
"""Some 5 ms of Pillow's work."""

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


def pixels_of_webp(data: bytes) -> int:
    """How many it says it has; 0 where it is damaged."""
    try:
        with Image.open(io.BytesIO(data), formats=[Format.WEBP]) as image:
            return image.width * image.height
    except Exception:  # noqa: BLE001  (whatever it is, whoever decodes it will meet it again)
        return 0


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
    if form is Format.JPEG:
        jpeg.check(data)  # before Pillow has gathered what stands in front of the pixels
    elif form is Format.PNG:
        _check_chunks(data)  # before Pillow has unpacked what some of them hold
    image: Image.Image = Image.open(io.BytesIO(data), formats=[form])
    _check_size(image.size, limits)  # before anything is decoded
    if form is Format.PNG:
        _check_sums(data)
    if form is Format.WEBP and len(data) < 8 + int.from_bytes(data[4:8], "little"):
        raise PhotoError(Reason.DAMAGED_IMAGE, {"format": form})
    profile = image.info.get("icc_profile")
    if form is Format.JPEG and image.mode in {"RGB", "L"} and (rgb := _strict_jpeg(data)) is not None:
        orientation = _orientation(image)
        if image.mode == "RGB" and (convert := _to_srgb(profile, "RGB")) is not None:
            for rows in _bands(rgb.shape[1], rgb.shape[0]):
                rgb[rows] = np.asarray(ImageCms.applyTransform(Image.fromarray(rgb[rows]), convert))
        return Raster(rgb, orientation, turn=orientation)
    # A TIFF is turned by being decoded. A PNG is decoded by being asked for its EXIF block, damage forgiven.
    stated = _orientation(image) if form is Format.TIFF else None
    image.load()
    turn = _orientation(image)
    return Raster(_rgb(image, profile, ground), stated or turn, turn)


def _chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Kind of each chunk of a PNG through to the last, and where the kind stands and the checksum; to be trusted in
    nothing."""
    at, kind = 8, b""
    while kind != b"IEND" and at < len(data):
        length, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        yield kind, at + 4, at + 8 + length
        at += 12 + length


def _check_chunks(data: bytes) -> None:
    """Raise `PhotoError` for a PNG whose chunks are more work than its pixels: very many, or profile after profile."""
    profiles = 0
    for count, (kind, _, _) in enumerate(_chunks(data), start=1):
        profiles += kind == b"iCCP"
        if count > MAX_CHUNKS:
            raise PhotoError(Reason.DAMAGED_IMAGE, {"format": Format.PNG, "chunks": count, "max": MAX_CHUNKS})
        if profiles > 1:
            raise PhotoError(Reason.DAMAGED_IMAGE, {"format": Format.PNG, "profiles": profiles, "max": 1})


def _check_sums(data: bytes) -> None:
    """Raise `PhotoError` unless every critical chunk of a PNG is whole, by its checksum, through to the last.

    Pillow looks at the checksums of the pixels' chunks only in part, and not at all behind the last row.
    """
    kind = b""
    for kind, at, end in _chunks(data):
        critical = len(kind) == 4 and not kind[0] & 0x20  # an upper case letter first
        if end + 4 > len(data) or (critical and crc32(data[at:end]) != int.from_bytes(data[end : end + 4])):
            raise PhotoError(Reason.DAMAGED_IMAGE, {"format": Format.PNG})
    if kind != b"IEND":
        raise PhotoError(Reason.DAMAGED_IMAGE, {"format": Format.PNG})


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


def _rgb(image: Image.Image, profile: bytes | None, ground: str) -> RgbImage:
    """What a viewer shows, as 8-bit sRGB: alpha on its ground, 16 bits scaled, ink and palettes resolved.

    In bands: Pillow lets no other thread of the process run while it composes or converts some kinds of pictures, and
    health has to answer. Nor is the whole picture there three times over.
    """
    if image.mode in _NO_STATED_RANGE:
        raise PhotoError(Reason.UNSUPPORTED_FORMAT, {"format": f"{image.format} with {_NO_STATED_RANGE[image.mode]}"})
    convert = _to_srgb(profile, "CMYK" if image.mode == "CMYK" else "RGB")
    rgb = np.empty((image.height, image.width, 3), np.uint8)
    for rows in _bands(image.width, image.height):
        band = _opaque(image.crop((0, rows.start, image.width, rows.stop)), ground)
        if convert is not None and band.mode in {"RGB", "CMYK"}:
            rgb[rows] = np.asarray(ImageCms.applyTransform(band, convert))
        else:
            rgb[rows] = np.asarray(band.convert("RGB"))
    return rgb


def _bands(width: int, height: int) -> Iterator[slice]:
    """The rows of a picture, `BAND_PIXELS` at a time."""
    step = max(1, BAND_PIXELS // width)
    return (slice(top, min(top + step, height)) for top in range(0, height, step))


def _opaque(image: Image.Image, ground: str) -> Image.Image:
    """RGB or CMYK of any mode whose black and white are stated; grey of 16 bits, for which profiles do not count."""
    if image.mode.startswith("I;16"):
        # convert("L") would clip at 255 and show a white picture.
        return image.point(lambda value: value * (1 / 257), "L")
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        opaque = Image.new("RGBA", image.size, ground)
        opaque.alpha_composite(image.convert("RGBA"))
        return opaque.convert("RGB")
    return image if image.mode in {"RGB", "CMYK"} else image.convert("RGB")


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
