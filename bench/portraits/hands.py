"""A hand laid over the forehead, modelled as a height field of rounded fingers and lit like the face beneath."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.portraits.face import Face, Image, blurred, noise, over
from vision.types import Label


@dataclass(frozen=True)
class Hand:
    """Where it lies. Lengths in face units."""

    height: float
    """Of the middle of the hand above the glabella."""
    tilt_deg: float
    """Of the fingers against the horizontal; they point to the subject's left, upwards when positive."""
    from_left: bool = False
    """Whether it comes from the subject's left: mirrored."""
    brightness: float = 0.95
    """Of its skin against the face's."""


FINGERS = (
    # offset across, tip along, half-thickness
    (0.150, 0.24, 0.044),
    (0.054, 0.31, 0.047),
    (-0.046, 0.29, 0.045),
    (-0.138, 0.19, 0.038),
)
PALM_FROM, PALM_TO = -3.0, -0.05
"""From the wrist, which lies outside of the photo, to the knuckles."""
PALM_HALF_WIDTH = 0.19


def lay_hand(face: Face, hand: Hand, rng: np.random.Generator) -> Image:
    """The portrait with a hand over the forehead."""
    u, v = face.coordinates()
    side = -1.0 if hand.from_left else 1.0
    angle = np.radians(hand.tilt_deg)
    x, y = side * u, v - hand.height
    along = x * np.cos(angle) + y * np.sin(angle)
    across = -x * np.sin(angle) + y * np.cos(angle)
    height = _height(along, across)
    inside = np.clip(height.clip(0) * 400, 0, 1).astype(np.float32)
    inside = blurred(inside, 0.7)
    relief = blurred(height.clip(0), 0.006 * face.unit_px)
    slope_y, slope_x = np.gradient(relief * face.unit_px)
    light = np.clip(0.97 - 0.42 * slope_y * -1 * 0.8 - 0.10 * side * slope_x, 0.45, 1.15)
    gaps = np.clip(1 - np.exp(-relief / 0.012), 0.35, 1)
    skin = _skin(face, along, across, rng) * hand.brightness
    skin = skin * (light * gaps * _creases(along, across))[..., None]
    skin = skin * (1 + 0.05 * noise(u.shape, 0.03 * face.unit_px, rng))[..., None]
    skin = _with_nails(skin, along, across)
    shadow = blurred(np.roll(inside, round(0.02 * face.unit_px), axis=0), 0.02 * face.unit_px)
    dropped = face.image * (1 - 0.5 * shadow)[..., None]
    return over(dropped, np.clip(skin, 0, 1).astype(np.float32), inside)


def _height(along: Image, across: Image) -> Image:
    """Of the hand above the face, (H, W): fingers as half cylinders with round tips, the back of it a flat one."""
    best = np.full(along.shape, -1.0, dtype=np.float32)
    for offset, tip, thick in FINGERS:
        # Fingers spread a little, and are thinner between their joints.
        centre = offset * (1 + 0.25 * np.clip(along, -0.1, 0.4))
        waist = thick * (1 - 0.07 * np.cos(2 * np.pi * (along - tip) / 0.13))
        beyond = np.clip(along - (tip - thick), 0, None)
        behind = np.clip(PALM_TO - 0.03 - along, 0, None)
        squared = waist**2 - (across - centre) ** 2 - beyond**2 - (3 * behind) ** 2
        best = np.maximum(best, np.where(squared > 0, np.sqrt(np.clip(squared, 0, None)), -1.0))
    narrowing = PALM_HALF_WIDTH * (1 - 0.25 * np.clip((PALM_TO - along) / 0.5, 0, 1) ** 2)
    end = np.clip(along - PALM_TO, 0, None)
    palm = 1 - (across / narrowing) ** 2 - (end / 0.05) ** 2
    back = np.where((palm > 0) & (along > PALM_FROM), 0.055 * np.clip(palm, 0, None) ** 0.5, -1.0)
    knuckles = sum(
        0.012 * np.exp(-(((along - PALM_TO) / 0.03) ** 2) - ((across - offset) / 0.03) ** 2) for offset, _, _ in FINGERS
    )
    whole: Image = np.where(back > best, back + knuckles, best).astype(np.float32)
    return whole


def _creases(along: Image, across: Image) -> Image:
    """Wrinkles over the finger joints."""
    shade = np.ones_like(along)
    for offset, tip, thick in FINGERS:
        near = np.exp(-(((across - offset) / thick) ** 4))
        for joint in (tip - 0.085, tip - 0.185):
            for shift in (-0.007, 0.0, 0.007):
                line = along - joint - shift - 0.15 * (across - offset) ** 2 / thick
                shade = shade * (1 - 0.16 * near * np.exp(-0.5 * (line / 0.0022) ** 2))
    return shade


def _with_nails(skin: Image, along: Image, across: Image) -> Image:
    """Paler, smooth ovals near the tips."""
    for offset, tip, thick in FINGERS:
        centre = offset * (1 + 0.25 * (tip - 0.03))
        oval = ((along - tip + 0.032) / 0.026) ** 2 + ((across - centre) / (0.62 * thick)) ** 2
        inside = np.clip((1 - oval) * 6, 0, 1).astype(np.float32)
        rim = np.exp(-(((oval - 1) / 0.18) ** 2))
        skin = over(skin, skin * np.array([1.08, 1.04, 1.06], dtype=np.float32) + 0.04, inside * 0.8)
        skin = skin * (1 - 0.18 * rim)[..., None]
    return skin


def _skin(face: Face, along: Image, across: Image, rng: np.random.Generator) -> Image:
    """Skin of the person's own cheeks, carried on: colour and pores."""
    u, v = face.coordinates()
    cheek = (face.probability(Label.SKIN) > 0.9) & (v < -0.15) & (v > -0.35) & (np.abs(u) > 0.12) & (np.abs(u) < 0.25)
    colour = np.median(face.image[cheek], axis=0)
    corners = face.to_photo(np.array([[-0.22, -0.18], [-0.12, -0.30]])).round().astype(int)
    (x0, x1), (y0, y1) = sorted(corners[:, 0]), sorted(corners[:, 1])
    part = face.image[y0:y1, x0:x1]
    pores = part - blurred(part, 0.01 * face.unit_px)
    # Read the patch along the fingers, mirrored at its borders.
    rows = _mirrored(across * face.unit_px, pores.shape[0])
    columns = _mirrored(along * face.unit_px, pores.shape[1])
    redness = 1 + np.array([0.02, -0.015, -0.02]) * noise(u.shape, 0.05 * face.unit_px, rng)[..., None]
    grown: Image = ((colour + pores[rows, columns]) * redness).astype(np.float32)
    return grown


def _mirrored(index: Image, size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    folded = np.abs(np.round(index).astype(np.int64)) % (2 * size)
    return np.asarray(np.minimum(folded, 2 * size - 1 - folded), dtype=np.int64)
