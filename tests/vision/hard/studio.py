"""Licensed pictures to start from, as arrays, with what the edits need to know of the face in them."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from bench.portraits.face import Face
from bench.portraits.face import Image as FloatImage
from bench.portraits.negatives import NEGATIVES, SIDE_PX
from tests.conftest import PEOPLE, SHARED_PORTRAITS, selfie, studio_portrait
from vision.decode import decode
from vision.landmarks import LandmarkDetector
from vision.parsing import parse
from vision.runtime import ParserRuntime
from vision.types import Photo, RgbImage

JPEG_QUALITY = 92


class Studio:
    """Pictures of openpeople's synthetic people, reduced, and edits of them. Nothing is stored in the project."""

    def __init__(self, detector: LandmarkDetector, parser: ParserRuntime) -> None:
        self._detector = detector
        self._parser = parser
        self.face = cache(self._face)

    def portrait(self, person: int = 1, side_px: int = SIDE_PX) -> RgbImage:
        """Studio portrait, (side, side, 3)."""
        return _reduced(decode(studio_portrait(person).read_bytes()).rgb, side_px)

    def selfie(self, person: int) -> RgbImage:
        """Taken at arm's length, 848 px wide."""
        return _reduced(decode(selfie(person).read_bytes()).rgb, 848)

    def profile(self, person: int) -> RgbImage:
        """The view from the side of the character sheet, enlarged."""
        sheet = decode(Path(str(PEOPLE / f"P{person:03}" / "assets" / "character_sheet.jpg")).read_bytes()).rgb
        x, y, side = _PROFILES[person]
        return np.asarray(cv2.resize(sheet[y : y + side, x : x + side], (960, 960), interpolation=cv2.INTER_CUBIC))

    def shared(self, name: str) -> bytes:
        """File of a shared portrait."""
        return (SHARED_PORTRAITS / name).read_bytes()

    def edited(self, name: str) -> RgbImage:
        """One of the pictures without a hairline that the bench makes: bangs, hats, bald heads, hands."""
        seed, negative = next((at, each) for at, each in enumerate(NEGATIVES) if each.name == name)
        return to_bytes(negative.edit(self.face(int(negative.person[1:])), np.random.default_rng(seed)))

    def _face(self, person: int) -> Face:
        photo = Photo(self.portrait(person), "JPEG", 1)
        landmarks = self._detector.find(photo.rgb)[0]
        return Face(photo.rgb, landmarks, parse(photo, landmarks, self._parser, lambda: None))


_PROFILES = {5: (1868, 150, 450)}
"""Left, top and side of the side view on a person's sheet, in px."""


def to_bytes(image: FloatImage) -> RgbImage:
    """Floats from 0 to 1 as 8-bit values."""
    return (np.clip(image, 0, 1) * 255).round().astype(np.uint8)


def stored(rgb: RgbImage, form: str = "JPEG", **options: object) -> bytes:
    """The picture as a file."""
    out = io.BytesIO()
    quality = {"quality": JPEG_QUALITY} if form == "JPEG" else {}
    Image.fromarray(rgb).save(out, form, **{**quality, **options})
    return out.getvalue()


def _reduced(rgb: RgbImage, width_px: int) -> RgbImage:
    height_px = round(rgb.shape[0] * width_px / rgb.shape[1])
    return np.asarray(cv2.resize(rgb, (width_px, height_px), interpolation=cv2.INTER_AREA), dtype=np.uint8)
