"""Photo bytes to an upright 8-bit RGB photo.

JPEG, PNG and WebP are decoded here. The rare formats, whose decoders see less scrutiny, and large WebPs, whose decoder
stops all other threads for as long as it copies the pixels, are decoded in a child process with limits on memory and
time: whatever happens to it, this process goes on.
"""

from __future__ import annotations

import io
import json
import math
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np

from vision.errors import PhotoError, Reason, VisionError
from vision.raster import Format, Limits, pixels_of_webp, read, sniff
from vision.types import Photo, RgbImage

IN_CHILD = frozenset({Format.BMP, Format.TIFF, Format.HEIF})
WEBP_HERE_PIXELS = 8_000_000
"""As large as a WebP may be to be decoded here, where no thread runs for 2 ms of each million."""
LOOK_EVERY_S = 0.1
"""How soon a child is ended that nobody waits for."""
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


def decode(
    data: bytes,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    ground: str = "white",
    look: Callable[[], None] = lambda: None,
) -> Photo:
    """The photo in `data`, its format told by the bytes alone; what is transparent shows the colour `ground`.

    `look` is called while a child process decodes; what it raises ends both.

    Raises `PhotoError`: UNSUPPORTED_FORMAT (names the format found), IMAGE_TOO_SMALL and IMAGE_TOO_MANY_PIXELS (from
    the header, before anything is decoded), DAMAGED_IMAGE.
    """
    form = sniff(data)
    if not isinstance(form, Format):
        raise PhotoError(Reason.UNSUPPORTED_FORMAT, {"format": form})
    if form in IN_CHILD or (form is Format.WEBP and pixels_of_webp(data) > WEBP_HERE_PIXELS):
        return _decode_in_child(data, form, limits, ground, look)
    raster = read(data, form, limits, ground)
    return Photo(_turned(raster.rgb, raster.turn), form, raster.orientation)


def _turned(rgb: RgbImage, orientation: int) -> RgbImage:
    """Upright pixels of a picture whose EXIF orientation is `orientation`."""
    mirrored, turn = _UPRIGHT[orientation]
    if mirrored:
        rgb = np.asarray(cv2.flip(rgb, 1), dtype=np.uint8)
    return rgb if turn is None else np.asarray(cv2.rotate(rgb, turn), dtype=np.uint8)


def _decode_in_child(data: bytes, form: Format, limits: Limits, ground: str, look: Callable[[], None]) -> Photo:
    # The pixels come back in memory that both processes can see: through a pipe they would be copied three times, and
    # each time no other thread of this process could run, while health has to answer.
    pixels = os.memfd_create("photo")
    try:
        arguments = (form, limits.max_pixels, limits.min_side_px, ground, pixels)
        head = _run_child(data, form, arguments, pixels, look)
        shape = (head["height"], head["width"], 3)
        mapped = mmap.mmap(pixels, math.prod(shape))  # stays as long as the picture
    except ValueError as error:  # shorter than it said
        raise PhotoError(Reason.DAMAGED_IMAGE, {"format": form, "decoder": "died"}) from error
    finally:
        os.close(pixels)
    rgb: RgbImage = np.frombuffer(mapped, dtype=np.uint8).reshape(shape)
    return Photo(_turned(rgb, head["turn"]), form, head["orientation"])


def _run_child(
    data: bytes, form: Format, arguments: tuple[object, ...], pixels: int, look: Callable[[], None]
) -> dict[str, Any]:
    """What the child says of the picture whose pixels it has written to the descriptor `pixels`."""
    command = [sys.executable, "-P", "-m", "vision.decode_child", *map(str, arguments)]
    with (
        _in_memory(data) as given,
        subprocess.Popen(  # noqa: S603  (our own interpreter and module; the photo goes in as data)
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(pixels,)
        ) as child,
    ):
        try:
            stdout, stderr = _told_by(child, look)
        except subprocess.TimeoutExpired as error:
            raise PhotoError(Reason.DAMAGED_IMAGE, {"format": form, "decoder": "took too long"}) from error
        finally:
            child.kill()  # has ended by itself where all went well
    if not stdout.startswith(STARTED):
        raise DecoderMissingError(stderr.decode(errors="replace")[-500:] or f"exit code {child.returncode}")
    head = stdout[len(STARTED) :]
    if child.returncode != 0 or not head:
        raise PhotoError(Reason.DAMAGED_IMAGE, {"format": form, "decoder": "died"})
    answer: dict[str, Any] = json.loads(head)
    if "reason" in answer:
        raise PhotoError(Reason(answer["reason"]), answer["details"])
    return answer


def _in_memory(data: bytes) -> io.BufferedRandom:
    """A file with `data` in it that is on no disk, for a child to read. Unlike a pipe it needs nobody to feed it."""
    file = os.fdopen(os.memfd_create("input"), "w+b")
    file.write(data)
    file.seek(0)
    return file


def _told_by(child: subprocess.Popen[bytes], look: Callable[[], None]) -> tuple[bytes, bytes]:
    """Standard output and error of the child; raises `TimeoutExpired`, and what `look` raises."""
    last_s = time.monotonic() + CHILD_TIMEOUT_S
    while True:
        look()
        left_s = last_s - time.monotonic()
        try:
            return child.communicate(timeout=max(0.0, min(LOOK_EVERY_S, left_s)))
        except subprocess.TimeoutExpired:
            if left_s <= LOOK_EVERY_S:
                raise
