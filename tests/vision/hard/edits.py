"""Edits of a portrait that make it hard: light, blur, grain, things before the face."""

from __future__ import annotations

import cv2
import numpy as np

from bench.portraits.face import Face, Image, blurred, over
from tests.vision.hard.studio import to_bytes
from vision.types import Label, RgbImage

EYES = ((33, 133), (362, 263))
"""Outer and inner corner (mesh) of the subject's right and left eye."""

LENS = (0.112, 0.095)
"""Half the width and half the height of a lens, in face units."""


def blur(rgb: RgbImage, sigma_px: float) -> RgbImage:
    """Out of focus."""
    return np.asarray(cv2.GaussianBlur(rgb, (0, 0), sigma_px), dtype=np.uint8)


def grain(rgb: RgbImage, sd: float) -> RgbImage:
    """A sensor in the dark: noise of that standard deviation, in grey levels."""
    noise = np.random.default_rng(7).normal(0, sd, rgb.shape)
    return np.clip(rgb + noise, 0, 255).round().astype(np.uint8)


def side_light(rgb: RgbImage, darkest: float) -> RgbImage:
    """One lamp on the viewer's right; the other side is left `darkest` of its light."""
    across = np.linspace(0, 1, rgb.shape[1])
    ramp = darkest + (1 - darkest) / (1 + np.exp(-12 * (across - 0.5)))
    return np.clip(rgb * ramp[None, :, None], 0, 255).round().astype(np.uint8)


def backlight(face: Face, person: float) -> RgbImage:
    """Before a bright window: the person is left `person` of the light, and the window spills over the outline."""
    background = _background(face)
    dark = over(face.image * np.float32(person), np.ones_like(face.image), background)
    glow = blurred(background, 0.06 * face.unit_px)
    return to_bytes(dark + 0.25 * (glow * (1 - background))[..., None])


def on_black(face: Face) -> RgbImage:
    """The person before a black curtain."""
    return to_bytes(over(face.image, np.full_like(face.image, 0.02), _background(face)))


def _background(face: Face) -> Image:
    """(H, W), 1 where the person is not; shoulders beyond the parser's raster go on straight down."""
    raster = face.parsing.probabilities[Label.BACKGROUND]
    size = (face.rgb.shape[1], face.rgb.shape[0])
    mapped = cv2.warpAffine(raster, face.parsing.photo_from_map, size, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(mapped, dtype=np.float32)


def glasses(face: Face, *, dark: bool) -> RgbImage:
    """Round frames; `dark`: sunglasses that hide the eyes."""
    picture = face.rgb.copy()
    thickness = max(2, round(0.012 * face.unit_px))
    centres = []
    for outer, inner in EYES:
        centre = face.landmarks.points[[outer, inner]].mean(axis=0)
        centres.append(centre)
        middle = (round(float(centre[0])), round(float(centre[1] + 0.01 * face.unit_px)))
        axes = (round(LENS[0] * face.unit_px), round(LENS[1] * face.unit_px))
        if dark:
            cv2.ellipse(picture, middle, axes, 0, 0, 360, (18, 18, 20), -1, cv2.LINE_AA)
        cv2.ellipse(picture, middle, axes, 0, 0, 360, (30, 24, 22), thickness, cv2.LINE_AA)
    right, left = centres
    along = (left - right) / np.linalg.norm(left - right)
    reach = LENS[0] * face.unit_px
    for start, end in (
        (right + reach * along, left - reach * along),
        (right - reach * along, right - 2 * reach * along),
        (left + reach * along, left + 2 * reach * along),
    ):
        ends = [(round(float(point[0])), round(float(point[1]))) for point in (start, end)]
        cv2.line(picture, ends[0], ends[1], (30, 24, 22), thickness, cv2.LINE_AA)
    return picture
