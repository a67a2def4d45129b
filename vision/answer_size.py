"""Answers that fit into a message, whatever the photo: pictures that do not compress are made smaller.

A picture of noise is as large as its pixels, and grain of a film is noise: seven designs of 2048 × 2048 are 28 MB on
most photos and 88 MB on such a one. All pictures of one message share `PICTURES_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import TypeVar

import cv2
import numpy as np

from vision.png import encode_png
from vision.types import EncodedImage, RgbImage

T = TypeVar("T")

PICTURES_BYTES = 60 * 2**20
"""Of 64 MiB that go into a message between worker and edge: the rest is for all that is no picture."""
SPARE = 0.97
"""Smaller pictures compress a little worse; without it the next try would often miss by a hair."""


def fitting(
    make: Callable[[int], T], pictures: Callable[[T], Sequence[EncodedImage]], side_px: int, most_bytes: int
) -> T:
    """What `make` makes of the largest side (px, long side of every picture) with which its `pictures` fit together.

    That is `side_px` nearly always. Ends: a picture is never larger than its pixels.
    """
    while True:
        made = make(side_px)
        sizes = [len(picture.data) for picture in pictures(made)]
        if sum(sizes) <= most_bytes:
            return made
        drawn_px = max(max(picture.width_px, picture.height_px) for picture in pictures(made))
        side_px = int(min(side_px, drawn_px) * sqrt(most_bytes / sum(sizes)) * SPARE)


def encode_fitting(rgb: RgbImage, most_bytes: int) -> EncodedImage:
    """The file of a picture (H, W, 3) with at most so many bytes: reduced by averaging where it has to be."""

    def encoded(side_px: int) -> EncodedImage:
        height, width = rgb.shape[:2]
        scale = side_px / max(height, width)
        if scale >= 1:
            return encode_png(rgb)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        return encode_png(np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), dtype=np.uint8))

    return fitting(encoded, lambda image: (image,), max(rgb.shape[:2]), most_bytes)
