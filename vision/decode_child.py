"""The child process that decodes one photo of a rare format: bytes in on standard input, a head and pixels out.

    python -m vision.decode_child FORMAT MAX_PIXELS MIN_SIDE_PX GROUND PIXELS

Out come the line `started` and one line of JSON (width, height, orientation, turn; or reason and details of a refusal).
The RGB pixels are written to the descriptor PIXELS before that second line.
"""

from __future__ import annotations

import json
import resource
import sys

import numpy as np
from pillow_heif import register_heif_opener

from vision.errors import PhotoError
from vision.raster import Format, Limits, read

MEMORY_BYTES = 3 * 1024**3 // 2
"""Address space: a HEIC of 40 million pixels takes 0.4 GB, a WebP 0.9."""
CPU_S = 16
"""Processor time; libheif uses several threads."""


def main(form: str, max_pixels: str, min_side_px: str, ground: str, pixels: str) -> None:
    """Decode standard input to the descriptor `pixels`."""
    register_heif_opener()
    out = sys.stdout.buffer
    out.write(b"started\n")
    out.flush()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    try:
        raster = read(sys.stdin.buffer.read(), Format(form), Limits(int(max_pixels), int(min_side_px)), ground)
    except PhotoError as error:
        out.write(json.dumps({"reason": error.reason, "details": error.details}).encode() + b"\n")
        return
    height, width, _ = raster.rgb.shape
    with open(int(pixels), "wb", buffering=0, closefd=False) as picture:
        rest = np.ascontiguousarray(raster.rgb).reshape(-1).data
        while rest:
            rest = rest[picture.write(rest) :]
    head = {"width": width, "height": height, "orientation": raster.orientation, "turn": raster.turn}
    out.write(json.dumps(head).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
