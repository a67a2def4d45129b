"""How many scans and segments a JPEG may have, and that what cameras and editors write has fewer."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.vision.jpegs import with_scans
from vision import jpeg
from vision.decode import decode
from vision.errors import PhotoError, Reason


def photo(side: int = 240, mode: str = "RGB", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.radial_gradient("L").resize((side, side)).convert(mode).save(out, "JPEG", **options)
    return out.getvalue()


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, 2 + len(content)) + content


def behind_the_start(data: bytes, *parts: bytes) -> bytes:
    return data[:2] + b"".join(parts) + data[2:]


def before_the_pixels(data: bytes, part: bytes) -> bytes:
    at = data.index(b"\xff\xc4")  # the size comes before the first table
    return data[:at] + part + data[at:]


def refusal(data: bytes) -> PhotoError:
    with pytest.raises(PhotoError) as refused:
        decode(data)
    return refused.value


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 1, "progressive": True}])
def test_what_is_written_in_good_faith_passes(mode: str, options: dict[str, Any]) -> None:
    jpeg.check(photo(mode=mode, **options))


def test_as_many_scans_as_are_allowed_and_one_more() -> None:
    jpeg.check(with_scans(photo(progressive=True), jpeg.MAX_SCANS))
    refused = refusal(with_scans(photo(progressive=True), jpeg.MAX_SCANS + 1))
    assert refused.reason is Reason.DAMAGED_IMAGE
    assert refused.details == {"format": "JPEG", "scans": jpeg.MAX_SCANS + 1, "max": jpeg.MAX_SCANS}


def test_scans_count_whatever_lies_around_them() -> None:
    """Fillings before a marker, notes and stray restarts between the scans."""
    data = with_scans(photo(progressive=True), jpeg.MAX_SCANS + 1)
    for disguised in (
        data.replace(b"\xff\xda", b"\xff\xff\xff\xda"),
        data.replace(b"\xff\xda", segment(0xFE, b"note") + b"\xff\xd0\xff\xda"),
    ):
        assert refusal(disguised).details["scans"] == jpeg.MAX_SCANS + 1


def test_sequential_scans_of_single_colours_count_too() -> None:
    """One for each colour is allowed by the format, and decoders go on for as long as there are more."""
    data = photo()
    at = data.index(b"\xff\xda")
    single = segment(0xDA, b"\1\1\0\0\x3f\0") + b"\x55"
    assert refusal(data[:at] + single * 100 + b"\xff\xd9").details["scans"] == jpeg.MAX_SCANS + 1


def test_scans_of_other_pictures_in_the_file_do_not_count() -> None:
    small = photo(100, progressive=True)
    scans = b"\xff\xda" * 100
    data = photo(progressive=True)
    inside = segment(0xE1, b"Exif\0\0" + small + scans)
    between = data.replace(b"\xff\xda", segment(0xE2, scans) + b"\xff\xda")
    for whole in (behind_the_start(data, inside, inside), between, data + small + scans):
        jpeg.check(whole)
        assert decode(whole).width_px == 240


def test_segments_without_end_before_the_pixels() -> None:
    exif = segment(0xE1, b"Exif\0\0" + b"x" * 10)
    for note in (exif, segment(0xFE, b""), segment(0xED, b"Photoshop 3.0\0")):
        assert refusal(before_the_pixels(photo(), note * 10_000)).details["max"] == jpeg.MAX_SEGMENTS
    jpeg.check(before_the_pixels(photo(), exif * 1000))


@pytest.mark.parametrize(("frame", "arithmetic"), [(b"\xff\xc0", b"\xff\xc9"), (b"\xff\xc2", b"\xff\xca")])
def test_arithmetic_coding_is_not_read(frame: bytes, arithmetic: bytes) -> None:
    """A few hundred bytes of it can be ten seconds of work."""
    data = photo(progressive=frame == b"\xff\xc2")
    assert data.count(frame) == 1
    refused = refusal(data.replace(frame, arithmetic))
    assert refused.reason is Reason.UNSUPPORTED_FORMAT
    assert refused.details == {"format": "JPEG with arithmetic coding"}


@given(st.binary(max_size=300), st.integers(0, 400))
def test_no_bytes_upset_the_looking(rubbish: bytes, keep: int) -> None:
    for data in (b"\xff\xd8" + rubbish, photo(60, progressive=True)[:keep] + rubbish):
        with suppress(PhotoError):  # such as of arithmetic coding
            jpeg.check(data)
