"""Photo bytes to an upright 8-bit RGB photo.

JPEG, PNG and WebP are decoded here. The rare formats, whose decoders see less scrutiny, are decoded in a child process
with limits on memory and time: whatever happens to it, this process goes on.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from vision.errors import PhotoError, Reason, VisionError
from vision.raster import Format, Limits, read, sniff
from vision.types import Photo, RgbImage

IN_CHILD = frozenset({Format.BMP, Format.TIFF, Format.HEIF})
CHILD_TIMEOUT_S = 8.0
"""Below what the stage may be still (10 s), so that a hanging decoder is the photo's fault and not the worker's."""

_UPRIGHT: Mapping[int, tuple[bool, int | None]] = {
    # EXIF orientation: mirror left and right first? then turn by
    1: (False, None),
    2: (True, None),
    3: (False, cv2.ROTATE_180),
    4: (True, cv2.ROTATE_180),
    5: (True, cv2.ROTATE_90_COUNTERCLOCKWISE),
    6: (False, cv2.ROTATE_90_CLOCKWISE),
    7: (True, cv2.ROTATE_90_CLOCKWISE),
    8: (False, cv2.ROTATE_90_COUNTERCLOCKWISE),
}

STARTED = b"started\n"
"""The child's first line: from then on its end is the photo's doing."""


class DecoderMissingError(VisionError):
    """The child process could not be started: the worker's fault, not the photo's."""


def decode(data: bytes, limits: Limits = Limits(), ground: str = "white") -> Photo:  # noqa: B008  (frozen)
    """The photo in `data`, its format told by the bytes alone; what is transparent shows the colour `ground`.

    Raises `PhotoError`: UNSUPPORTED_FORMAT (names the format found), IMAGE_TOO_SMALL and IMAGE_TOO_MANY_PIXELS (from
    the header, before anything is decoded), DAMAGED_IMAGE.
    """
    form = sniff(data)
    if not isinstance(form, Format):
        raise PhotoError(Reason.UNSUPPORTED_FORMAT, {"format": form})
    if form in IN_CHILD:
        return _decode_in_child(data, form, limits, ground)
    raster = read(data, form, limits, ground)
    return Photo(_turned(raster.rgb, raster.turn), form, raster.orientation)


def _turned(rgb: RgbImage, orientation: int) -> RgbImage:
    """Upright pixels of a picture whose EXIF orientation is `orientation`."""
    mirrored, turn = _UPRIGHT[orientation]
    if mirrored:
        rgb = np.asarray(cv2.flip(rgb, 1), dtype=np.uint8)
    return rgb if turn is None else np.asarray(cv2.rotate(rgb, turn), dtype=np.uint8)


def _decode_in_child(data: bytes, form: Format, limits: Limits, ground: str) -> Photo:
    # The pixels come back in memory that both processes can see: through a pipe they would be copied three times, and
    # each time no other thread of this process could run, while health has to answer.
    pixels = os.memfd_create("photo")
    try:
        head = _run_child(data, form, limits, ground, pixels)
        shape = (head["height"], head["width"], 3)
        mapped = mmap.mmap(pixels, math.prod(shape))  # stays as long as the picture
    except ValueError as error:  # shorter than it said
        raise PhotoError(Reason.DAMAGED_IMAGE, {"format": form, "decoder": "died"}) from error
    finally:
        os.close(pixels)
    rgb: RgbImage = np.frombuffer(mapped, dtype=np.uint8).reshape(shape)
    return Photo(_turned(rgb, head["turn"]), form, head["orientation"])


def _run_child(data: bytes, form: Format, limits: Limits, ground: str, pixels: int) -> dict[str, Any]:
    """What the child says of the picture whose pixels it has written to the descriptor `pixels`."""
    arguments = (form, limits.max_pixels, limits.min_side_px, ground, pixels)
    command = [sys.executable, "-P", "-m", "vision.decode_child", *map(str, arguments)]
    try:
        child = subprocess.run(  # noqa: S603  (our own interpreter and module; the photo goes in as data)
            command, input=data, capture_output=True, timeout=CHILD_TIMEOUT_S, check=False, pass_fds=(pixels,)
        )
    except subprocess.TimeoutExpired as error:
        raise PhotoError(Reason.DAMAGED_IMAGE, {"format": form, "decoder": "took too long"}) from error
    if not child.stdout.startswith(STARTED):
        raise DecoderMissingError(child.stderr.decode(errors="replace")[-500:] or f"exit code {child.returncode}")
    head = child.stdout[len(STARTED) :]
    if child.returncode != 0 or not head:
        raise PhotoError(Reason.DAMAGED_IMAGE, {"format": form, "decoder": "died"})
    answer: dict[str, Any] = json.loads(head)
    if "reason" in answer:
        raise PhotoError(Reason(answer["reason"]), answer["details"])
    return answer
