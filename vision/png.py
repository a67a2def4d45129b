"""PNG files without metadata, written fast.

The picture of a measure call is the size of the photo, and OpenCV, like Pillow, spends more time on its PNG than
everything but the parser takes. Intel's ISA-L deflates four times as fast to the same size: 28 ms for a portrait of
2048 × 2048 (4.1 MB), against 127 ms (4.3 MB).
"""

from __future__ import annotations

import struct

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from vision.types import EncodedImage

LEVEL = 2
"""ISA-L's default; level 1 takes as long, level 3 half as long again, without smaller files."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR_TYPES = {1: 0, 3: 2}
"""Grey and RGB, by the number of channels."""
_EIGHT_BIT, _ONLY_METHODS = 8, (0, 0, 0)
"""Bit depth; deflate, adaptive filters, not interlaced."""
_UP = 2
"""The filter that keeps of each row its difference to the one above."""


def encode_png(image: NDArray[np.uint8]) -> EncodedImage:
    """The file of a picture, RGB (H, W, 3) or grey (H, W): pixels and nothing else."""
    height, width = image.shape[:2]
    channels = image[0, 0].size
    pixels = image.reshape(height, width * channels)
    rows = np.empty((height, 1 + width * channels), dtype=np.uint8)
    rows[:, 0] = _UP
    rows[0, 1:] = pixels[0]
    np.subtract(pixels[1:], pixels[:-1], out=rows[1:, 1:])
    data = b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", struct.pack(">II5B", width, height, _EIGHT_BIT, _COLOUR_TYPES[channels], *_ONLY_METHODS)),
            _chunk(b"IDAT", isal_zlib.compress(rows, LEVEL)),
            _chunk(b"IEND", b""),
        )
    )
    return EncodedImage(data=data, width_px=width, height_px=height)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = isal_zlib.crc32(content, isal_zlib.crc32(kind))
    return b"".join((struct.pack(">I", len(content)), kind, content, struct.pack(">I", checksum)))
