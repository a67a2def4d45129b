"""Photo bytes in, upright 8-bit RGB out, or a refusal with a name."""

from __future__ import annotations

import io
import os
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageCms
from pillow_heif import register_heif_opener

from vision import decode as decode_module
from vision import raster as raster_module
from vision.decode import DecoderMissingError, decode
from vision.errors import CancelledCallError, PhotoError, Reason
from vision.raster import MAX_CHUNKS, Format, Limits, sniff
from vision.types import RgbImage

register_heif_opener()

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "HEIF")
RED, BLUE, WHITE = (255, 0, 0), (0, 0, 255), (255, 255, 255)
TOP_LEFT, TOP_RIGHT, BOTTOM_LEFT, BOTTOM_RIGHT = (20, 20), (20, -20), (-20, 20), (-20, -20)


def picture() -> Image.Image:
    """300 × 240: red at the top left, blue at the bottom right, white elsewhere."""
    image = Image.new("RGB", (300, 240), WHITE)
    image.paste(RED, (0, 0, 150, 120))
    image.paste(BLUE, (150, 120, 300, 240))
    return image


def noise(width: int = 300, height: int = 240) -> Image.Image:
    values = np.random.default_rng(1).integers(0, 256, (height, width, 3))
    return Image.fromarray(values.astype(np.uint8))


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def colour(rgb: RgbImage, at: tuple[int, int]) -> NDArray[np.int_]:
    return np.asarray(rgb[at], dtype=int)


def assert_colour(rgb: RgbImage, at: tuple[int, int], expected: tuple[int, int, int]) -> None:
    assert np.abs(colour(rgb, at) - expected).max() <= 6, (at, colour(rgb, at), expected)


def refusal(data: bytes, limits: Limits = Limits()) -> PhotoError:  # noqa: B008
    with pytest.raises(PhotoError) as refused:
        decode(data, limits)
    return refused.value


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_comes_out_alike(form: str) -> None:
    photo = decode(encoded(picture(), form))
    assert photo.format == form
    assert photo.rgb.dtype == np.uint8
    assert (photo.width_px, photo.height_px) == (300, 240)
    for at, expected in ((TOP_LEFT, RED), (TOP_RIGHT, WHITE), (BOTTOM_LEFT, WHITE), (BOTTOM_RIGHT, BLUE)):
        assert_colour(photo.rgb, at, expected)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied_once(form: str, orientation: int) -> None:
    """A picture turned away by what its EXIF block says comes out as it was."""
    away: dict[int, Image.Transpose] = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = picture() if orientation == 1 else picture().transpose(away[orientation])
    exif = Image.Exif()
    exif[0x0112] = orientation
    photo = decode(encoded(stored, form, exif=exif))
    assert photo.exif_orientation == orientation
    assert (photo.width_px, photo.height_px) == (300, 240)
    assert_colour(photo.rgb, TOP_LEFT, RED)
    assert_colour(photo.rgb, BOTTOM_RIGHT, BLUE)


@pytest.mark.parametrize("exif", [b"Exif\0\0garbage", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff"], ids=["garbage", "cut off"])
def test_a_damaged_exif_block_is_ignored(exif: bytes) -> None:
    assert decode(encoded(picture(), "JPEG", exif=exif)).exif_orientation == 1


def test_the_bytes_decide_and_not_the_name() -> None:
    assert sniff(encoded(picture(), "HEIF")) is Format.HEIF
    assert sniff(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom") == "MP4 or another ISO media file"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (encoded(picture(), "GIF"), "GIF"),
        (encoded(picture(), "AVIF"), "AVIF"),
        (encoded(picture(), "PDF"), "PDF"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b"just text", "unknown"),
        (b"", "unknown"),
    ],
)
def test_other_formats_are_refused_by_name(data: bytes, name: str) -> None:
    refused = refusal(data)
    assert refused.reason is Reason.UNSUPPORTED_FORMAT
    assert refused.details == {"format": name}


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_and_not_clipped(form: str) -> None:
    ramp = np.tile(np.linspace(0, 65535, 256).astype(np.uint16), (200, 1))
    rgb = decode(encoded(Image.fromarray(ramp), form)).rgb
    assert np.unique(rgb).size == 256
    assert np.array_equal(rgb[0, :, 0], np.arange(256))


def test_sixteen_bit_colour_png() -> None:
    assert_colour(decode(png_of_sixteen_bits()).rgb, TOP_LEFT, (255, 128, 0))


def png_of_sixteen_bits() -> bytes:
    """A plain 200 × 200 PNG of 16 bits per channel, which Pillow reads but does not write."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    row = b"\0" + struct.pack(">HHH", 65535, 32896, 0) * 200
    header = struct.pack(">IIBBBBB", 200, 200, 16, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * 200)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    "image", [Image.new("F", (220, 220), 0.5), Image.new("I", (220, 220), 5)], ids=["floating point", "32 bits"]
)
def test_values_without_a_stated_range_are_refused(image: Image.Image) -> None:
    refused = refusal(encoded(image, "TIFF"))
    assert refused.reason is Reason.UNSUPPORTED_FORMAT
    assert "values" in str(refused.details["format"])


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
def test_hidden_pixels_never_appear(form: str) -> None:
    hidden = picture().convert("RGBA")
    hidden.putalpha(0)
    rgb = decode(encoded(hidden, form, **({"lossless": True, "exact": True} if form == "WEBP" else {}))).rgb
    assert (rgb == 255).all()


def test_alpha_is_composited_on_white() -> None:
    half = picture().convert("RGBA")
    half.putalpha(128)
    assert_colour(decode(encoded(half, "PNG")).rgb, TOP_LEFT, (255, 127, 127))


def test_a_palette_with_a_transparent_colour() -> None:
    image = picture().quantize(8)
    red = image.getpixel((10, 10))
    rgb = decode(encoded(image, "PNG", transparency=red)).rgb
    assert_colour(rgb, TOP_LEFT, WHITE)
    assert_colour(rgb, BOTTOM_RIGHT, BLUE)


def test_grey_and_bilevel_come_out_as_rgb() -> None:
    for image in (picture().convert("L"), picture().convert("1"), picture().convert("LA")):
        rgb = decode(encoded(image, "PNG")).rgb
        assert rgb.shape == (240, 300, 3)
        assert (rgb[..., 0] == rgb[..., 2]).all()
    assert decode(encoded(picture().convert("L"), "JPEG")).rgb.shape == (240, 300, 3)


def test_red_ink_stays_red_with_and_without_the_adobe_marker() -> None:
    with_marker = encoded(picture().convert("CMYK"), "JPEG")
    at = with_marker.index(b"\xff\xee")
    length = int.from_bytes(with_marker[at + 2 : at + 4])
    for data in (with_marker, with_marker[:at] + with_marker[at + 2 + length :]):
        assert_colour(decode(data).rgb, TOP_LEFT, RED)


def test_red_ink_stays_red_where_inks_are_stored_as_ycck() -> None:
    """What Photoshop writes: brightness and colour of the three inks, black beside them, and 2 in Adobe's marker."""
    inks = np.asarray(picture().convert("CMYK"))
    ycc = np.asarray(Image.fromarray(inks[..., :3]).convert("YCbCr"))
    stored = np.dstack([ycc, 255 - inks[..., 3:]])  # Adobe's black is 0
    data = bytearray(encoded(Image.fromarray(255 - stored, "CMYK"), "JPEG", quality=95))
    marker = data.index(b"\xff\xee\x00\x0eAdobe")
    data[marker + 15] = 2
    for at, expected in ((TOP_LEFT, RED), (TOP_RIGHT, WHITE), (BOTTOM_RIGHT, BLUE)):
        assert_colour(decode(bytes(data)).rgb, at, expected)


def test_inks_the_wrong_way_round_are_a_negative_and_no_error() -> None:
    """Nothing in the file says so: it is shown as every viewer shows it."""
    inks = np.asarray(picture().convert("CMYK"))
    rgb = decode(encoded(Image.fromarray(255 - inks, "CMYK"), "JPEG")).rgb
    assert rgb.shape == (240, 300, 3)
    assert_colour(rgb, TOP_LEFT, (0, 0, 0))


def test_an_embedded_profile_is_converted_to_srgb() -> None:
    """Red and green change places in this profile."""
    swapped = swapped_profile()
    for form in ("JPEG", "PNG"):
        rgb = decode(encoded(picture(), form, icc_profile=swapped)).rgb
        red, green, _ = colour(rgb, TOP_LEFT)
        assert green > 200 > 100 > red, form
        assert_colour(rgb, TOP_RIGHT, WHITE)


def swapped_profile() -> bytes:
    """Pillow's sRGB profile with the tags of the red and green primaries exchanged."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    profile = profile.replace(b"rXYZ", b"tmp1").replace(b"gXYZ", b"rXYZ").replace(b"tmp1", b"gXYZ")
    return profile.replace("sRGB".encode("utf-16-be"), "test".encode("utf-16-be"))


def test_a_damaged_profile_is_ignored() -> None:
    assert_colour(decode(encoded(picture(), "PNG", icc_profile=b"no profile")).rgb, TOP_LEFT, RED)


@pytest.mark.parametrize("form", ["MPO", "WEBP", "PNG", "TIFF"])
def test_the_primary_frame_counts(form: str) -> None:
    others = [Image.new("RGB", (300, 240), (0, 200, 0))] * 3
    photo = decode(encoded(picture(), form, save_all=True, append_images=others))
    assert photo.format == ("JPEG" if form == "MPO" else form)
    assert_colour(photo.rgb, TOP_LEFT, RED)


def cut(data: bytes, share: float) -> bytes:
    return data[: int(len(data) * share)]


@pytest.mark.parametrize(
    "data",
    [
        *(pytest.param(cut(encoded(noise(), form), 0.5), id=f"half a {form}") for form in FORMATS),
        pytest.param(cut(encoded(noise(), "JPEG", progressive=True), 0.3), id="third of a progressive JPEG"),
        pytest.param(encoded(noise(), "JPEG")[:-2], id="JPEG without its end"),
        pytest.param(cut(encoded(noise(), "JPEG"), 0.5) + b"\xff\xd9", id="half a JPEG with an end"),
        pytest.param(cut(encoded(noise(), "JPEG"), 0.5) + bytes(9_000), id="half a JPEG, then zeros"),
        pytest.param(b"\xff\xd8\xff", id="JPEG magic alone"),
        pytest.param(b"\0\0\0\x18ftypheic" + bytes(1000), id="HEIC magic and zeros"),
    ],
)
def test_truncated_photos_are_damaged_and_never_half_grey(data: bytes) -> None:
    assert refusal(data).reason is Reason.DAMAGED_IMAGE


PNGS = {
    f"{mode}, {options}": encoded(noise(200, 200).convert(mode), "PNG", **options)
    for mode in ("RGB", "L", "P", "1")
    for options in ({"compress_level": 0}, {"compress_level": 9})
}


@given(st.sampled_from(sorted(PNGS)), st.floats(0, 1), st.integers(1, 400), st.integers(0, 255))
@example("RGB, {'compress_level': 9}", 0.6, 200, 0)
@example("P, {'compress_level': 9}", 1.0, 1, 7)
def test_a_png_with_damage_among_its_pixels_is_never_measured(name: str, place: float, length: int, value: int) -> None:
    """Zeroed (0) or flipped (else) anywhere between the first chunk of pixels and the end."""
    data = PNGS[name]
    first, end = data.index(b"IDAT"), data.index(b"IEND") - 4
    at = first + round(place * (end - 1 - first))
    stop = min(at + length, end)
    part = bytes(byte ^ value for byte in data[at:stop]) if value else bytes(stop - at)
    damaged = data[:at] + part + data[stop:]
    if damaged != data:
        assert refusal(damaged).reason is Reason.DAMAGED_IMAGE


def test_every_critical_chunk_of_a_png_is_checked() -> None:
    data = encoded(picture().quantize(8), "PNG")
    for kind in (b"IHDR", b"PLTE", b"IDAT", b"IEND"):
        at = data.index(kind)
        checksum = at + 4 + int.from_bytes(data[at - 4 : at])
        damaged = data[:checksum] + bytes([data[checksum] ^ 1]) + data[checksum + 1 :]
        assert refusal(damaged).reason is Reason.DAMAGED_IMAGE, kind
    assert_colour(decode(data + b"after the end").rgb, TOP_LEFT, RED)


def png_with(*chunks: tuple[bytes, bytes]) -> bytes:
    """A good PNG with these chunks in front of its pixels."""
    data = encoded(picture(), "PNG")
    more = b"".join(struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks)
    return data[:33] + more + data[33:]


def test_a_png_unpacks_one_profile_and_no_second() -> None:
    """A KB of each is a MB when it is unpacked, and Pillow unpacks all of them."""
    profile = (b"iCCP", b"name\0\0" + zlib.compress(swapped_profile()))
    green = decode(png_with(profile)).rgb[TOP_LEFT]
    assert green[1] > 200 > 100 > green[0]
    refused = refusal(png_with(profile, profile))
    assert refused.reason is Reason.DAMAGED_IMAGE
    assert refused.details == {"format": "PNG", "profiles": 2, "max": 1}


def test_a_png_of_ever_more_chunks_is_not_read() -> None:
    refused = refusal(png_with(*[(b"tEXt", b"")] * MAX_CHUNKS))
    assert refused.reason is Reason.DAMAGED_IMAGE
    assert refused.details == {"format": "PNG", "chunks": MAX_CHUNKS + 1, "max": MAX_CHUNKS}
    assert_colour(decode(png_with(*[(b"tEXt", b"")] * 1000)).rgb, TOP_LEFT, RED)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB", "1"])
@pytest.mark.parametrize("band", [100, 10_000, 1_000_000], ids=["a row is more", "bands", "all at once"])
def test_transparent_pictures_are_composed_a_band_at_a_time(
    mode: str, band: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other thread runs while Pillow composes one, and health has to answer."""
    monkeypatch.setattr(raster_module, "BAND_PIXELS", band)
    size = (700, 401)
    image = Image.radial_gradient("L").resize(size).convert(mode)
    if mode in {"RGBA", "LA"}:
        image.putalpha(Image.linear_gradient("L").resize(size))
    clear = {} if mode in {"RGBA", "LA"} else {"transparency": (9, 9, 9) if mode == "RGB" else 1 if mode == "P" else 0}
    data = encoded(image, "PNG", compress_level=1, **clear)
    whole = Image.new("RGBA", size, "white")
    whole.alpha_composite(Image.open(io.BytesIO(data)).convert("RGBA"))

    composed: list[int] = []
    compose = Image.Image.alpha_composite

    def noted(self: Image.Image, over: Image.Image) -> None:
        composed.append(over.width * over.height)
        compose(self, over)

    monkeypatch.setattr(Image.Image, "alpha_composite", noted)
    rgb = decode(data).rgb
    assert max(composed) <= max(band, size[0])
    assert sum(composed) == size[0] * size[1]
    assert np.array_equal(rgb, np.asarray(whole.convert("RGB")))


@pytest.mark.parametrize("options", [{"restart_marker_blocks": 4}, {"progressive": True}], ids=["restarts", "scans"])
@pytest.mark.parametrize("share", [0.2, 0.3, 0.4, 0.5])
def test_zeros_inside_a_jpeg_are_damage_where_its_parts_tell(options: dict[str, Any], share: float) -> None:
    data = encoded(noise(), "JPEG", **options)
    at = int(share * len(data))
    assert refusal(data[:at] + bytes(200) + data[at + 200 :]).reason is Reason.DAMAGED_IMAGE


def test_a_webp_shorter_than_it_says_is_damaged() -> None:
    data = encoded(picture(), "WEBP")
    for missing in (2, 10, 100):
        assert refusal(data[:-missing]).reason is Reason.DAMAGED_IMAGE
    assert_colour(decode(data + b"after the end").rgb, TOP_LEFT, RED)


def test_superfluous_bytes_after_a_jpeg_are_harmless() -> None:
    assert_colour(decode(encoded(picture(), "JPEG") + b"trailer of a phone" * 20).rgb, TOP_LEFT, RED)


@pytest.mark.parametrize("size", [(199, 300), (300, 199), (1, 60_000)])
def test_too_small_says_the_size_and_the_limit(size: tuple[int, int]) -> None:
    refused = refusal(encoded(Image.new("L", size), "PNG"))
    assert refused.reason is Reason.IMAGE_TOO_SMALL
    assert refused.details == {"width": size[0], "height": size[1], "min": 200}


@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF"])
def test_the_pixel_limit_is_checked_in_the_header(form: str) -> None:
    options = {"compression": "group4"} if form == "TIFF" else {}
    bomb = encoded(Image.new("1", (13_000, 13_000)), form, **options)
    refused = refusal(bomb)
    assert refused.reason is Reason.IMAGE_TOO_MANY_PIXELS
    assert refused.details == {"width": 13_000, "height": 13_000, "pixels": 169_000_000, "max": 40_000_000}


def test_the_limits_can_be_set() -> None:
    assert refusal(encoded(picture(), "PNG"), Limits(max_pixels=1000)).details["max"] == 1000
    assert refusal(encoded(picture(), "BMP"), Limits(max_pixels=1000)).details["max"] == 1000


def test_forty_megapixels_are_read() -> None:
    assert decode(encoded(Image.new("L", (8000, 5000)), "JPEG")).rgb.shape == (5000, 8000, 3)


def child_that(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the child process run `script` in the place of the decoder."""
    real = subprocess.Popen

    def run(_command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return real([sys.executable, "-c", script], **options)

    monkeypatch.setattr(subprocess, "Popen", run)


STARTED = "import os, sys, time; sys.stdout.write('started\\n'); sys.stdout.flush(); "


@pytest.mark.parametrize(
    "script",
    [
        STARTED + f"os.kill(os.getpid(), {int(signal.SIGSEGV)})",
        STARTED + f"os.kill(os.getpid(), {int(signal.SIGKILL)})",
        STARTED + "raise MemoryError",
    ],
    ids=["crash", "killed", "out of memory"],
)
def test_the_death_of_the_decoder_is_the_photos_fault(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    child_that(script, monkeypatch)
    assert refusal(encoded(picture(), "BMP")).reason is Reason.DAMAGED_IMAGE


@pytest.mark.parametrize("turned", [1, 6])
def test_a_large_webp_is_decoded_apart_and_comes_out_alike(turned: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its decoder lets no other thread run while it copies what it has."""
    half = noise().convert("RGBA")
    half.putalpha(Image.linear_gradient("L").resize(half.size))
    exif = Image.Exif()
    exif[0x0112] = turned
    data = encoded(half, "WEBP", lossless=True, exif=exif)
    here = decode(data)
    with monkeypatch.context() as patch:
        patch.setattr(decode_module, "WEBP_HERE_PIXELS", 300 * 240 - 1)
        apart = decode(data)
        assert refusal(data[:-10]).reason is Reason.DAMAGED_IMAGE
        assert refusal(data[:30]).reason is Reason.DAMAGED_IMAGE
        child_that(STARTED + "raise SystemExit(1)", patch)
        assert refusal(data).details == {"format": "WEBP", "decoder": "died"}
    assert np.array_equal(apart.rgb, here.rgb)
    assert (apart.format, apart.exif_orientation) == (here.format, here.exif_orientation) == ("WEBP", turned)


def test_a_decoder_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    child_that(STARTED + "time.sleep(60)", monkeypatch)
    monkeypatch.setattr(decode_module, "CHILD_TIMEOUT_S", 0.5)
    assert refusal(encoded(picture(), "BMP")).reason is Reason.DAMAGED_IMAGE


def test_a_decoder_is_ended_when_nobody_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever `look` raises, and at once: the child would go on for a minute."""
    note = tmp_path / "pid"
    child_that(STARTED + f"open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)", monkeypatch)

    def look() -> None:
        if note.exists() and note.read_text():
            raise CancelledCallError

    with pytest.raises(CancelledCallError):
        decode(encoded(picture(), "BMP"), look=look)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_decoder_that_never_starts_is_not_the_photos_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    child_that("raise SystemExit('no such library')", monkeypatch)
    with pytest.raises(DecoderMissingError, match="no such library"):
        decode(encoded(picture(), "BMP"))
