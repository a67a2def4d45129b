"""Rendered pairs of eyes whose iris diameter is known: the ruler for the iris fit.

Drawn in millimetres: irises of 11.7 mm, 63 mm apart, between lids with lashes, lit from above, with catchlights; then
blurred, noisy and compressed like photos. The limbus is a soft step whose middle lies at the true radius.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import cv2
import numpy as np

from bench.portraits.face import Image, noise
from vision.scale import LEFT_EYE, LIDS, RIGHT_EYE
from vision.types import Box, FaceLandmarks, Label, ParsingMap, Photo, Pose

IRIS_MM = 11.7
PUPILS_APART_MM = 63.0
EYE_HALF_MM = 14.0
WIDTH_MM, HEIGHT_MM = 104.0, 32.0
OVERSAMPLING_TO_PX = 110
"""Drawn with irises about so wide, then reduced."""
LEFT, RIGHT = LEFT_EYE, RIGHT_EYE
"""First iris point, exocanthion, endocanthion in MediaPipe's mesh."""


@dataclass(frozen=True)
class EyeLook:
    """How a pair of eyes looks."""

    diameter_px: float
    iris: tuple[float, float, float] = (0.28, 0.17, 0.10)
    limbus_sd_mm: float = 0.30
    upper_lid_mm: float = 4.3
    """Height of the upper lid's margin above the centre of the iris; the iris reaches 5.85."""
    lower_lid_mm: float = 5.6
    glare: bool = True
    blur_px: float = 0.6
    noise: float = 0.01
    jpeg_quality: int = 90
    gaze_deg: float = 0.0
    """Of the eyes to the side, against the line of sight; the head turns with them."""
    roll_deg: float = 0.0
    sclera: float = 0.80


@dataclass(frozen=True)
class RenderedEyes:
    """A picture with what the scale needs."""

    photo: Photo
    landmarks: FaceLandmarks
    parsing: ParsingMap
    look: EyeLook


def render(look: EyeLook, seed: int) -> RenderedEyes:
    """Draw a pair of eyes; iris points are as far off as MediaPipe's, deterministic in `seed`."""
    rng = np.random.default_rng(seed)
    px_per_mm = look.diameter_px / IRIS_MM
    size = (round(WIDTH_MM * px_per_mm), round(HEIGHT_MM * px_per_mm))
    finer = max(2, round(OVERSAMPLING_TO_PX / look.diameter_px))
    fine = px_per_mm * finer
    y, x = np.mgrid[: size[1] * finer, : size[0] * finer].astype(np.float32)
    centre = (np.array(size) - 1) / 2
    x, y = (((axis + 0.5) / finer - 0.5 - middle) / px_per_mm for axis, middle in zip((x, y), centre, strict=True))
    turn = np.radians(look.roll_deg)
    x, y = x * np.cos(turn) + y * np.sin(turn), -x * np.sin(turn) + y * np.cos(turn)
    picture = _skin(x, y, fine, rng)
    shift = 9.8 * np.sin(np.radians(look.gaze_deg)) - 5.7 * np.sin(np.radians(look.gaze_deg))
    apart = PUPILS_APART_MM / 2 * np.cos(np.radians(look.gaze_deg))
    for side in (-1.0, 1.0):
        picture = _eye(picture, x - side * apart, y, side, shift, look, fine, rng)
    shrunk = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    blurred = cv2.GaussianBlur(shrunk, (0, 0), max(look.blur_px, 0.05))
    grainy = blurred + look.noise * rng.standard_normal(blurred.shape)
    eight_bit = (np.clip(grainy, 0, 1) * 255).round().astype(np.uint8)
    _, encoded = cv2.imencode(".jpg", eight_bit[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, look.jpeg_quality])
    rgb = np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR), dtype=np.uint8)[:, :, ::-1]
    landmarks = _landmarks(look, centre, px_per_mm, apart, shift, rng)
    return RenderedEyes(Photo(np.ascontiguousarray(rgb), "JPEG", 1), landmarks, _nothing_worn(size), look)


def _skin(x: Image, y: Image, fine: float, rng: np.random.Generator) -> Image:
    shade = 0.92 - 0.10 * np.exp(-(((y + 9) / 4) ** 2)) + 0.015 * noise(x.shape, 0.4 * fine, rng)
    shade = shade + 0.01 * noise(x.shape, 3 * fine, rng)
    skin: Image = (shade[..., None] * np.array([0.80, 0.60, 0.50])).astype(np.float32)
    return skin


def _eye(
    picture: Image, x: Image, y: Image, side: float, shift: float, look: EyeLook, fine: float, rng: np.random.Generator
) -> Image:
    """One eye on the picture; x and y in mm from the middle of its corners, `shift` where the iris lies."""
    open_x = x / np.cos(np.radians(look.gaze_deg))
    bow = np.clip(1 - (open_x / EYE_HALF_MM) ** 2, 0, 1)
    slant = -0.06 * side * open_x
    above = y - (slant - look.upper_lid_mm * bow**0.8)
    below = (slant + look.lower_lid_mm * bow**0.9) - y
    inside = np.clip(np.minimum(above, below) / 0.18 + 0.5, 0, 1) * (np.abs(open_x) < EYE_HALF_MM)
    white = look.sclera * (1 - 0.35 * (open_x / EYE_HALF_MM) ** 2)[..., None] * np.array([1.0, 0.95, 0.92])
    white = white * (1 + 0.03 * noise(x.shape, 0.5 * fine, rng))[..., None]
    across = (x - shift) / np.cos(np.radians(look.gaze_deg))
    radius = np.hypot(across, y) / (IRIS_MM / 2)
    angle = np.arctan2(y, across)
    fibres = 1 + 0.18 * np.sin(23 * angle + 3 * np.sin(7 * angle)) * np.exp(-(((radius - 0.6) / 0.25) ** 2))
    ring = 1 - 0.45 * np.clip((radius - 0.78) / 0.22, 0, 1)
    iris = (fibres * ring)[..., None] * np.array(look.iris)
    iris = iris * (1 - np.exp(-((radius / 0.36) ** 8)))[..., None]
    step = _normal_cdf((radius - 1) * IRIS_MM / 2 / look.limbus_sd_mm)
    ball = iris * (1 - step)[..., None] + white * step[..., None]
    ball = ball * (1 - 0.5 * np.exp(-np.clip(above, 0, None) / 1.1))[..., None]
    if look.glare:
        window = (np.abs(across + 1.2) < 1.3) & (np.abs(y + 1.9) < 1.0)
        ball = np.where(window[..., None], 0.97, ball)
        wet = np.exp(-(((across - 2.0) / 1.6) ** 2) - (((y - 3.4) / 0.5) ** 2))
        ball = ball + 0.25 * wet[..., None]
    mixed = picture * (1 - inside)[..., None] + ball * inside[..., None]
    return _lashes(mixed.astype(np.float32), open_x, above, fine, rng)


def _lashes(picture: Image, x: Image, above: Image, fine: float, rng: np.random.Generator) -> Image:
    """A dark margin along the upper lid, and lashes that lean outwards; a few hang before the eye."""
    margin = np.exp(-((np.clip(-above, 0, None) / 0.5) ** 2)) * (above < 0.2) * (np.abs(x) < EYE_HALF_MM)
    comb = np.sin(2 * np.pi * (x + 0.5 * above) / 0.75 + noise(x.shape, 2 * fine, rng)) > 0.55
    strands = comb * (above < 0.1) * (above > -2.5) * (np.abs(x) < EYE_HALF_MM)
    hanging = (np.sin(2 * np.pi * (x - 0.3 * above) / 3.1 + 1.0) > 0.985) * (above > 0) * (above < 1.6)
    dark = np.clip(0.75 * margin + 0.6 * strands + 0.6 * hanging * (np.abs(x) < EYE_HALF_MM), 0, 0.9)
    drawn: Image = (picture * (1 - dark)[..., None]).astype(np.float32)
    return drawn


def _normal_cdf(z: Image) -> Image:
    """Good to 2e-4: the logistic approximation with a cubic term."""
    cdf: Image = 1 / (1 + np.exp(-np.clip(1.5976 * z + 0.070566 * z**3, -40, 40)))
    return cdf


def _landmarks(
    look: EyeLook, centre: np.ndarray, px_per_mm: float, apart: float, shift: float, rng: np.random.Generator
) -> FaceLandmarks:
    """Corners where they are; iris points 3 to 11 % too wide and up to 3 % off centre."""
    points = np.zeros((478, 2))
    turn = np.radians(look.roll_deg)
    along = np.array([np.cos(turn), np.sin(turn)])
    across = np.array([-np.sin(turn), np.cos(turn)])
    corner = EYE_HALF_MM * np.cos(np.radians(look.gaze_deg))
    for side, eye in ((1.0, LEFT), (-1.0, RIGHT)):
        iris, outer, inner = eye
        upper, lower = LIDS[eye]
        middle = centre + px_per_mm * side * apart * along
        points[outer] = middle + px_per_mm * (side * corner * along - 0.06 * corner * across)
        points[inner] = middle - px_per_mm * (side * corner * along - 0.06 * corner * across)
        points[upper] = middle - px_per_mm * look.upper_lid_mm * across
        points[lower] = middle + px_per_mm * look.lower_lid_mm * across
        radius = look.diameter_px / 2 * rng.uniform(1.03, 1.11)
        at = middle + px_per_mm * shift * along + look.diameter_px * rng.uniform(-0.03, 0.03, 2)
        points[iris] = at
        wide = radius * np.cos(np.radians(look.gaze_deg))
        for offset, step in enumerate((side * wide * along, -radius * across, -side * wide * along, radius * across)):
            points[iris + 1 + offset] = at + step
    pose = Pose(yaw_deg=look.gaze_deg, pitch_deg=0.0, roll_deg=-look.roll_deg)
    return FaceLandmarks(points, np.zeros(478), np.eye(4), pose, Box(0, 0, 1, 1), 1)


def _nothing_worn(size: tuple[int, int]) -> ParsingMap:
    probabilities = np.zeros((19, size[1], size[0]), dtype=np.float32)
    probabilities[Label.SKIN] = 1
    return ParsingMap(probabilities, np.array([[1.0, 0, 0], [0, 1, 0]]))


IRISES = {
    "brown": (0.28, 0.17, 0.10),
    "dark": (0.10, 0.07, 0.06),
    "blue": (0.38, 0.47, 0.55),
    "green": (0.36, 0.38, 0.26),
}


def looks() -> Iterator[EyeLook]:
    """Looks that cover what portraits show: sizes, colours, lids, light, blur and noise."""
    for size, colour in product((16.0, 24.0, 40.0, 70.0), IRISES.values()):
        yield EyeLook(size, colour)
        yield EyeLook(size, colour, blur_px=0.03 * size, noise=0.03, jpeg_quality=60)
        yield EyeLook(size, colour, upper_lid_mm=3.0, lower_lid_mm=4.6, sclera=0.62, limbus_sd_mm=0.45)
    for gaze in (-14.0, 9.0, 18.0):
        yield EyeLook(50.0, gaze_deg=gaze)
    for roll in (-12.0, 8.0):
        yield EyeLook(50.0, roll_deg=roll, glare=False)
