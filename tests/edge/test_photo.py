"""Formats by bytes, sizes by headers, and headers made to do harm."""

from __future__ import annotations

import contextlib
import io
import struct
import time
from collections.abc import Callable

import pillow_heif
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ExifTags, Image

from edge.errors import ApiError
from edge.heif import size_px as heif_size_px
from edge.photo import MEDIA_TYPES, Photo, format_of, inspect, inspect_mask
from edge.settings import Limits
from tests.edge.rest import picture
from tests.vision.jpegs import with_scans
from vision.jpeg import MAX_SCANS

LIMITS = Limits()


def heif(size: tuple[int, int], orientation: int = 1) -> bytes:
    """As phones write it: rotated and mirrored by boxes of its own."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    buffer = io.BytesIO()
    pillow_heif.from_pillow(Image.new("RGB", size)).save(buffer, exif=exif.tobytes())
    return buffer.getvalue()


WRITTEN = {
    "JPEG": picture("JPEG", (230, 310)),
    "PNG": picture("PNG", (230, 310)),
    "WEBP": picture("WEBP", (230, 310)),
    "BMP": picture("BMP", (230, 310)),
    "TIFF": picture("TIFF", (230, 310)),
    "HEIF": heif((230, 310)),
}


@pytest.mark.parametrize("name", sorted(MEDIA_TYPES))
def test_each_format_is_known_by_its_bytes_and_its_header_gives_the_size(name: str) -> None:
    assert inspect(WRITTEN[name], LIMITS) == Photo(WRITTEN[name], name, 230, 310)


@pytest.mark.parametrize("options", [{"lossless": True}, {"quality": 50}, {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0"}])
def test_each_kind_of_webp(options: dict[str, object]) -> None:
    data = picture("WEBP", (230, 310), **options)
    assert inspect(data, LIMITS).height_px == 310


def test_progressive_jpeg_with_a_megabyte_before_its_size() -> None:
    plain = picture("JPEG", (230, 310), progressive=True)
    segment = b"\xff\xe1" + struct.pack(">H", 65_000) + bytes(64_998)
    assert inspect(plain[:2] + segment * 16 + plain[2:], LIMITS).width_px == 230


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (picture("GIF"), "GIF"),
        (b"%PDF-1.4", "PDF"),
        (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf", "AVIF"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf", "AVIF"),
        (b"\0\0\0\x1cftypmp42\0\0\0\0isommp42\0\0\0\0", "video"),
        (b"\xff\x0a\x00", "JPEG XL"),
        (b"8BPS", "PSD"),
        (b"<svg xmlns", "SVG"),
        (b"PK\x03\x04", "ZIP"),
        (b"hello", "unknown"),
        (b"\xff\xd8", "unknown"),
    ],
)
def test_what_is_not_read_is_named(data: bytes, name: str) -> None:
    with pytest.raises(ApiError) as caught:
        inspect(data, LIMITS)
    assert caught.value.reason == "UNSUPPORTED_FORMAT"
    assert caught.value.details["format"] == name


@pytest.mark.parametrize("brand", [b"heic", b"heix", b"hevc", b"mif1"])
def test_heic_by_its_brand(brand: bytes) -> None:
    assert format_of(b"\0\0\0\x18ftyp" + brand + b"\0\0\0\0mif1heic") == "HEIF"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_heic_however_the_phone_was_held(orientation: int) -> None:
    data = heif((230, 310), orientation)
    assert (b"irot" in data) == (orientation in {3, 5, 6, 7, 8})
    photo = inspect(data, LIMITS)
    assert (photo.width_px, photo.height_px) == (230, 310)


def box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", 8 + len(content)) + kind + content


def long_box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4sQ", 1, kind, 16 + len(content)) + content


def last_box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", 0) + kind + content


FTYP = box(b"ftyp", b"heic\0\0\0\0mif1heic")


def sizes(*found: tuple[int, int]) -> list[bytes]:
    return [box(b"ispe", struct.pack(">III", 0, *size)) for size in found]


@pytest.mark.parametrize("wrap", [box, long_box, last_box])
def test_heic_of_tiles_is_as_large_as_the_whole(wrap: Callable[[bytes, bytes], bytes]) -> None:
    tile, whole, thumbnail = sizes((512, 512), (4032, 3024), (320, 240))
    properties = tile + box(b"irot", b"\3") + whole + thumbnail + box(b"pixi", bytes(8))
    data = FTYP + wrap(b"meta", bytes(4) + box(b"hdlr", bytes(20)) + wrap(b"iprp", wrap(b"ipco", properties)))
    assert heif_size_px(data) == (4032, 3024)


@pytest.mark.parametrize(
    ("size", "reason"), [((9000, 9000), "IMAGE_TOO_MANY_PIXELS"), ((199, 4000), "IMAGE_TOO_SMALL")]
)
def test_heic_of_a_size_that_is_not_taken(size: tuple[int, int], reason: str) -> None:
    data = FTYP + box(b"meta", bytes(4) + box(b"iprp", box(b"ipco", b"".join(sizes(size)))))
    with pytest.raises(ApiError) as caught:
        inspect(data, LIMITS)
    assert caught.value.reason == reason


@pytest.mark.parametrize("properties", [[], sizes((0, 0)), sizes((0, 500)), [box(b"ispe", b"\0\0\0\0\0\0\1")]])
def test_heic_that_does_not_say_its_size_is_left_to_the_worker(properties: list[bytes]) -> None:
    data = FTYP + box(b"meta", bytes(4) + box(b"iprp", box(b"ipco", b"".join(properties))))
    assert inspect(data, LIMITS) == Photo(data, "HEIF", 0, 0)


_KINDS = st.sampled_from([b"ftyp", b"meta", b"iprp", b"ipco", b"ispe", b"irot", b"free", b"\0\0\0\0"])
_BOXES = st.recursive(
    st.binary(max_size=24),
    lambda inner: st.builds(
        lambda wrap, kind, parts: wrap(kind, b"".join(parts)),
        st.sampled_from([box, long_box, last_box]),
        _KINDS,
        st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)


@given(data=st.binary(max_size=200) | _BOXES, cut=st.integers(0, 400))
def test_no_bytes_upset_the_reading_of_a_heic(data: bytes, cut: int) -> None:
    size = heif_size_px((FTYP + data)[:cut] if cut < 300 else FTYP + data)
    assert size is None or min(size) > 0


@pytest.mark.parametrize("size", [(199, 400), (400, 199)])
def test_the_short_side(size: tuple[int, int]) -> None:
    with pytest.raises(ApiError) as caught:
        inspect(picture("PNG", size), LIMITS)
    assert caught.value.details == {"width": size[0], "height": size[1], "min": 200}


@pytest.mark.parametrize("size", [(13_000, 13_000), (200, 200_001)])
def test_a_small_file_that_would_fill_the_memory(size: tuple[int, int]) -> None:
    header = struct.pack(">II", *size)
    bomb = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + header + b"\x01\0\0\0\0" + bytes(64)
    with pytest.raises(ApiError) as caught:
        inspect(bomb, LIMITS)
    assert caught.value.reason == "IMAGE_TOO_MANY_PIXELS"


@pytest.mark.parametrize("name", sorted(MEDIA_TYPES))
@given(cut=st.integers(8, 400), noise=st.binary(max_size=60))
def test_damaged_headers_are_refused_or_read_but_never_raise(name: str, cut: int, noise: bytes) -> None:
    whole = WRITTEN[name]
    data = whole[: min(cut, len(whole))] + noise
    with contextlib.suppress(ApiError):  # anything else would fail the test
        inspect(data, LIMITS)


SCANS = with_scans(picture("JPEG", (230, 310), progressive=True), 100)
ARITHMETIC = picture("JPEG", (230, 310)).replace(b"\xff\xc0", b"\xff\xc9", 1)


@pytest.mark.parametrize(
    ("data", "reason", "details"),
    [
        (SCANS, "DAMAGED_IMAGE", {"format": "JPEG", "scans": MAX_SCANS + 1, "max": MAX_SCANS}),
        (ARITHMETIC, "UNSUPPORTED_FORMAT", {"format": "JPEG with arithmetic coding"}),
    ],
)
def test_a_jpeg_made_to_keep_decoders_busy_reaches_no_worker(
    data: bytes, reason: str, details: dict[str, object]
) -> None:
    with pytest.raises(ApiError) as caught:
        inspect(data, LIMITS)
    assert (caught.value.reason, caught.value.details) == (reason, details)
    with pytest.raises(ApiError) as caught:
        inspect_mask(data, inspect(WRITTEN["JPEG"], LIMITS), LIMITS)
    assert (caught.value.reason, caught.value.details) == ("MASK_UNREADABLE", {"field": "mask", **details})


HOSTILE = {
    "a million empty JPEG segments": b"\xff\xd8" + b"\xff\xe0\x00\x02" * 500_000,
    "two megabytes between JPEG segments": b"\xff\xd8\xff\xe0\x00\x02" + bytes(2_000_000),
    "a TIFF directory without an end": b"II*\0\x08\0\0\0\xff\xff" + bytes(2_000_000),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_headers_made_to_keep_the_edge_busy_end_soon(name: str) -> None:
    begun_s = time.process_time()
    with pytest.raises(ApiError) as caught:
        inspect(HOSTILE[name], LIMITS)
    assert caught.value.reason == "DAMAGED_IMAGE"
    assert time.process_time() - begun_s < 0.5  # without the bound: seconds


HOSTILE_HEICS = {
    "a chain of tiny boxes": FTYP + box(b"meta", bytes(4) + box(b"iprp", box(b"ipco", box(b"free", b"") * 250_000))),
    "a giant table of properties": FTYP
    + box(b"meta", bytes(4) + box(b"iprp", box(b"ipma", bytes(4) + b"\xff" * 4 + bytes(2_000_000)))),
    "boxes of no size at all": FTYP + box(b"meta", bytes(4) + b"\0\0\0\0free" * 250_000),
    "many properties": FTYP + box(b"meta", bytes(4) + box(b"iprp", box(b"ipco", b"".join(sizes((1, 1))) * 100_000))),
}


@pytest.mark.parametrize("name", sorted(HOSTILE_HEICS))
def test_a_heic_made_to_keep_the_edge_busy_is_looked_at_for_a_moment(name: str) -> None:
    begun_s = time.process_time()
    with contextlib.suppress(ApiError):
        inspect(HOSTILE_HEICS[name], LIMITS)
    assert time.process_time() - begun_s < 0.5
