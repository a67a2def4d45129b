"""Pictures nobody should have to decode: broken, lying, giant, two things at once. Seeded; for `bench/hostile.py`."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
import pillow_heif
from PIL import Image, ImageFilter, PngImagePlugin

from bench.mark_crop import resolve

PERSON = "openpeople/P001"
FACE_SIDE_PX = 320
"""Small, so that many of them are decoded and measured in little time."""
PLAIN_SIDE_PX = 224

Make = Callable[[random.Random, bytes], bytes]
"""A picture, with these bytes somewhere inside that are to be seen nowhere else."""


class Originals:
    """Good pictures of every format that is read, to be spoilt: of a face, and of nothing."""

    def __init__(self) -> None:
        face = Image.open(resolve(PERSON)).convert("RGB").resize((FACE_SIDE_PX, FACE_SIDE_PX), Image.Resampling.LANCZOS)
        noise = np.random.default_rng(7).integers(0, 255, (PLAIN_SIDE_PX, PLAIN_SIDE_PX, 3), np.uint8)
        plain = Image.fromarray(noise).filter(ImageFilter.GaussianBlur(6))
        self._of_nothing = tuple(_encodings(plain))
        self._of_a_face = tuple(_encodings(face))

    def pick(self, luck: random.Random, *, face_share: float) -> bytes:
        """One, whole."""
        return luck.choice(self._of_a_face if luck.random() < face_share else self._of_nothing)


def _encodings(picture: Image.Image) -> Iterator[bytes]:
    """The picture in every format, in the forms that decoders treat differently."""
    exif = Image.Exif()
    exif[0x0112] = 6
    forms: Sequence[tuple[Image.Image, str, dict[str, object]]] = (
        (picture, "JPEG", {"quality": 85}),
        (picture, "JPEG", {"quality": 70, "progressive": True, "exif": exif}),
        (picture.convert("L"), "JPEG", {"restart_marker_blocks": 4}),
        (picture.convert("CMYK"), "JPEG", {"quality": 60}),
        (picture, "PNG", {}),
        (picture.convert("P"), "PNG", {"transparency": 3}),
        (picture.convert("RGBA"), "PNG", {}),
        (picture.convert("L").convert("I;16"), "PNG", {}),
        (picture, "WEBP", {"quality": 60}),
        (picture.convert("RGBA"), "WEBP", {"lossless": True}),
        (picture, "BMP", {}),
        (picture.convert("P"), "BMP", {}),
        (picture, "TIFF", {"compression": "tiff_lzw"}),
        (picture, "TIFF", {"compression": "jpeg"}),
        (picture.convert("1"), "TIFF", {"compression": "group4"}),
        (picture, "TIFF", {"save_all": True, "append_images": [picture]}),
    )
    for form, kind, options in forms:
        buffer = io.BytesIO()
        form.save(buffer, kind, **options)
        yield buffer.getvalue()
    buffer = io.BytesIO()
    pillow_heif.from_pillow(picture).save(buffer, quality=50)
    yield buffer.getvalue()


def mutated(original: bytes, luck: random.Random, mark: bytes) -> bytes:
    """A good picture with some of it changed, in a way picked by chance."""
    data = bytearray(original)
    how = luck.randrange(8)
    if how == 0:  # a few bits anywhere
        for _ in range(luck.choice((1, 3, 20, 200))):
            data[luck.randrange(len(data))] ^= 1 << luck.randrange(8)
    elif how == 1:  # a few bits where the header is
        for _ in range(luck.choice((1, 3, 20))):
            data[luck.randrange(min(len(data), 400))] ^= 1 << luck.randrange(8)
    elif how == 2:
        del data[luck.randrange(len(data)) :]
    elif how == 3:  # a piece is gone
        begin = luck.randrange(len(data))
        del data[begin : begin + luck.choice((1, 7, 512, 4096))]
    elif how == 4:  # a piece is there twice
        begin = luck.randrange(len(data))
        data[begin:begin] = data[begin : begin + luck.choice((1, 16, 4096))]
    elif how == 5:  # a number is as large as can be
        begin = luck.randrange(min(len(data), 400))
        data[begin : begin + 4] = luck.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\0\0\1\0"))
    elif how == 6:  # rubbish in the middle
        begin = luck.randrange(len(data))
        data[begin:begin] = luck.randbytes(luck.choice((1, 100, 5000)))
    return bytes(data) + mark  # the rest is whole, and has a tail


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@cache
def _zeros(count: int) -> bytes:
    """So many bytes that are 0, compressed."""
    return zlib.compress(bytes(count), 9)


def _png(width: int, height: int, *, zeros: int = 0, more: bytes = b"") -> bytes:
    """A black and white PNG of any size by its header, and with so many bytes of black pixels."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = _png_chunk(b"IDAT", _zeros(zeros))
    return b"\x89PNG\r\n\x1a\n" + _png_chunk(b"IHDR", header) + more + body + _png_chunk(b"IEND", b"")


def _giant_header(luck: random.Random, mark: bytes) -> bytes:
    side = luck.choice((30_000, 65_535, 2**20, 2**31 - 1))
    return _png(side, luck.choice((1, 200, side)), more=_png_chunk(b"tEXt", b"Comment\0" + mark))


def _bomb(luck: random.Random, mark: bytes) -> bytes:
    """20 KB that are 169 MP when they are decoded."""
    side = 13_000
    return _png(side, side, zeros=(side // 8 + 1) * side, more=_png_chunk(b"tEXt", b"Comment\0" + mark))


def _bomb_within_the_limit(luck: random.Random, mark: bytes) -> bytes:
    """A few KB that are just not too many pixels."""
    width = luck.choice((6_300, 200_000, 40_000))
    height = 39_000_000 // width
    return _png(width, max(200, height), zeros=(width // 8 + 1) * height) + mark


def _text_bomb(luck: random.Random, mark: bytes) -> bytes:
    """A small picture with 64 MB of compressed text beside it."""
    text = b"Comment\0\0" + _zeros(64 << 20)
    return _png(256, 256, zeros=33 * 256, more=_png_chunk(b"zTXt", text)) + mark


def _profile_bomb(luck: random.Random, mark: bytes) -> bytes:
    """A MB of profile after profile, each of them a thousandth of what it is when it is unpacked."""
    profile = _png_chunk(b"iCCP", b"x\0\0" + _zeros(1 << 20))
    return _png(256, 256, zeros=33 * 256, more=profile * luck.choice((2, 1_500))) + mark


def _chunks(luck: random.Random, mark: bytes) -> bytes:
    kind = luck.choice((b"tEXt", b"IDAT", b"abCd"))
    return _png(256, 256, zeros=33 * 256, more=_png_chunk(kind, b"") * luck.choice((9_000, 120_000))) + mark


@cache
def _clear(form: str) -> bytes:
    """6,300 × 6,300 pixels through which the ground is seen: 38 bytes as WebP."""
    buffer = io.BytesIO()
    Image.new("RGBA", (6_300, 6_300), (10, 20, 30, 40)).save(
        buffer, form, **({"lossless": True, "method": 0} if form == "WEBP" else {})
    )
    return buffer.getvalue()


def _transparency(luck: random.Random, mark: bytes) -> bytes:
    return _clear(luck.choice(("PNG", "WEBP"))) + mark


def _jpeg_of_frames(luck: random.Random, mark: bytes) -> bytes:
    """A JPEG header that says anything about its size, and no more."""
    height, width = luck.choice(((0, 300), (300, 0), (65_535, 65_535), (300, 300), (1, 65_535)))
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return (
        b"\xff\xd8\xff\xfe" + struct.pack(">H", 2 + len(mark)) + mark + frame + luck.randbytes(luck.choice((0, 3000)))
    )


@cache
def _plain_jpeg(**options: bool) -> bytes:
    """6,300 × 6,300 pixels of one grey."""
    buffer = io.BytesIO()
    Image.new("L", (6_300, 6_300), 128).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def _note(mark: bytes) -> bytes:
    return b"\xff\xfe" + struct.pack(">H", 2 + len(mark)) + mark


def _jpeg_of_scans(luck: random.Random, mark: bytes) -> bytes:
    """Up to 1.5 MB of scans of 83 bytes, each of which goes through 39 million pixels again: minutes of work."""
    whole = _plain_jpeg(progressive=True)
    scan = whole[whole.rindex(b"\xff\xda") : -2]
    return whole[:2] + _note(mark) + whole[2:-2] + scan * luck.choice((40, 1_000, 16_000)) + b"\xff\xd9"


def _jpeg_of_arithmetic(luck: random.Random, mark: bytes) -> bytes:
    """Coded so that hardly a byte is needed for any number of pixels."""
    whole = _plain_jpeg().replace(b"\xff\xc0", b"\xff\xc9", 1)
    at = whole.index(b"\xff\xda") + 10
    return whole[:2] + _note(mark) + whole[2:at] + luck.randbytes(luck.choice((0, 500, 300_000))) + b"\xff\xd9"


def _jpeg_of_notes(luck: random.Random, mark: bytes) -> bytes:
    """Segments that decoders put together, one byte after the other."""
    whole = _plain_jpeg()
    at = whole.index(b"\xff\xc4")
    return whole[:at] + (b"\xff\xe1\0\x12Exif\0\0" + bytes(10)) * 70_000 + _note(mark) + whole[at:]


def _tiff_of_loops(luck: random.Random, mark: bytes) -> bytes:
    """A TIFF whose directories point at themselves, or far away."""
    entries = b"".join(
        struct.pack("<HHII", luck.choice((256, 257, 258, 259, 273, 279, 322, 330)), 4, luck.choice((1, 2**31)), value)
        for value in (luck.choice((8, 300, 2**32 - 1)) for _ in range(12))
    )
    return b"II*\0" + struct.pack("<IH", 8, 12) + entries + struct.pack("<I", luck.choice((8, 2**31))) + mark * 40


def _heif_of_boxes(luck: random.Random, mark: bytes) -> bytes:
    """A HEIF whose boxes are empty, endless or inside each other."""
    kinds = (b"meta", b"iprp", b"ipco", b"ispe", b"iinf", b"iloc", b"pitm", b"mdat", b"irot")
    boxes = b"".join(
        struct.pack(">I", luck.choice((0, 1, 7, 8, 16, 2**31, 2**32 - 1))) + luck.choice(kinds) + luck.randbytes(12)
        for _ in range(luck.choice((1, 30, 2000)))
    )
    return b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + boxes + mark


def _webp_of_chunks(luck: random.Random, mark: bytes) -> bytes:
    extended = b"VP8X" + struct.pack("<I", 10) + bytes([luck.randrange(256)]) + b"\0\0\0" + luck.randbytes(6)
    frames = b"".join(b"ANMF" + struct.pack("<I", luck.choice((0, 16, 2**32 - 1))) + bytes(16) for _ in range(50))
    return b"RIFF" + struct.pack("<I", luck.choice((4, 2**32 - 1))) + b"WEBP" + extended + frames + mark


def _polyglot(luck: random.Random, mark: bytes) -> bytes:
    """The beginning of one thing and all of another."""
    heads = (b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"%PDF-1.7\n", b"PK\3\4", b"BM", b"RIFF\0\0\0\0WEBP")
    bodies = (b"<script>alert(1)</script>", b"<svg onload=x>", b"#!/bin/sh\n", b"PK\5\6", b"%!PS\n", b"<?php ")
    return luck.choice(heads) + luck.choice(bodies) + mark + luck.randbytes(luck.choice((0, 200, 5000)))


def _no_picture(luck: random.Random, mark: bytes) -> bytes:
    kinds = (b"", b"\0" * 300, b"SQLite format 3\0", b"\x7fELF", b"\x1f\x8b\x08", b"<!DOCTYPE x [<!ENTITY a 'b'>]>")
    head = luck.choice(kinds)
    return head and head + mark + luck.randbytes(luck.choice((0, 10, 50_000)))


def _text_inside(luck: random.Random, mark: bytes) -> bytes:
    """A whole picture that says a lot about itself."""
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", mark.decode() * luck.choice((1, 50)))
    info.add_itxt("XML:com.adobe.xmp", f"<x:xmpmeta>{mark.decode()}</x:xmpmeta>")
    buffer = io.BytesIO()
    Image.new("RGB", (256, 256), (200, 150, 120)).save(buffer, "PNG", pnginfo=info)
    return buffer.getvalue()


CHEAP: tuple[Make, ...] = (
    _giant_header,
    _bomb,
    _jpeg_of_frames,
    _jpeg_of_scans,
    _jpeg_of_arithmetic,
    _jpeg_of_notes,
    _tiff_of_loops,
    _heif_of_boxes,
    _webp_of_chunks,
    _polyglot,
    _no_picture,
    _text_inside,
)
"""Nearly all of them end at the edge."""
COSTLY: tuple[Make, ...] = (_bomb_within_the_limit, _text_bomb, _profile_bomb, _chunks, _transparency)
"""These a worker has to decode."""
