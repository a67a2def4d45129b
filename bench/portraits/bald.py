"""Bald and shaved heads: hair gives way to the person's own skin, shaded as a skull, and to the studio's background."""

from __future__ import annotations

import cv2
import numpy as np

from bench.portraits.face import Face, Image, blurred, noise, over
from vision.types import Label

SKULL_HALF_WIDTH = 0.375
SKULL_TOP = 0.48
SKULL_FROM = 0.02
"""The skull is the upper half of an ellipse above this height; in face units, as all lengths here."""
STUBBLE_RAMP = 0.25
"""Over this height shaved stubble grows denser: nobody could draw a line."""


def make_bald(face: Face, rng: np.random.Generator) -> Image:
    """The portrait without scalp hair."""
    u, v = face.coordinates()
    hair = face.probability(Label.HAIR)
    removed = np.clip(4 * blurred(_widened(hair, 0.03 * face.unit_px), 0.012 * face.unit_px), 0, 1)
    removed = (removed * np.clip((v + 0.32) * 12, 0, 1)).astype(np.float32)
    height = np.clip(v - SKULL_FROM, 0, None) / (SKULL_TOP - SKULL_FROM)
    inside = 1 - np.sqrt((u / SKULL_HALF_WIDTH) ** 2 + height**2)
    skull = blurred(np.clip(inside * SKULL_HALF_WIDTH * face.unit_px + 0.5, 0, 1).astype(np.float32), 0.8)
    ears = face.probability(Label.LEFT_EAR, Label.RIGHT_EAR)
    picture = over(face.image, _background(face), removed * (1 - np.clip(2 * ears, 0, 1)) * (1 - skull))
    depth = np.sqrt(np.clip(1 - np.clip(1 - inside, 0, 1) ** 2, 0, 1))
    light = 0.42 + 0.60 * depth + 0.10 * np.exp(-(((u + 0.03) / 0.10) ** 2) - (((v - 0.36) / 0.05) ** 2))
    skin = _skin(face, hair, rng) * light[..., None]
    above_brows = np.clip((v - 0.04) * 20, 0, 1)
    side = np.clip((np.abs(u) - 0.24) * 20, 0, 1)
    alpha = removed * skull * np.maximum(above_brows, side)
    return over(picture, np.clip(skin, 0, 1).astype(np.float32), alpha.astype(np.float32))


def shave(face: Face, darkening: float, rng: np.random.Generator) -> Image:
    """A freshly shaved head: stubble that ends nowhere in particular, a cap darker by `darkening` (0 to 1)."""
    u, v = face.coordinates()
    bald = make_bald(face, rng)
    wander = 0.02 * noise(u.shape, 0.06 * face.unit_px, rng)
    cap = np.clip((v - (0.30 - 0.5 * u**2) + wander) / STUBBLE_RAMP + 0.5, 0, 1)
    cap = cap**2 * (3 - 2 * cap) * np.clip(3 * face.probability(Label.SKIN, Label.HAIR), 0, 1)
    cap = cap * ((u / SKULL_HALF_WIDTH) ** 2 + (np.clip(v - SKULL_FROM, 0, None) / (SKULL_TOP - SKULL_FROM)) ** 2 < 1)
    dots = np.clip(noise(u.shape, 0.6, rng), 0, 2)
    shade = 1 - cap * darkening * (0.8 + 0.4 * dots)
    tint = 1 + cap[..., None] * np.array([-0.03, 0.0, 0.04])
    shaven: Image = np.clip(bald * shade[..., None] * tint, 0, 1).astype(np.float32)
    return shaven


def _skin(face: Face, hair: Image, rng: np.random.Generator) -> Image:
    """Forehead skin carried on over the whole picture: its smooth colour, and its pores from a mirrored patch."""
    u, v = face.coordinates()
    image = face.image
    forehead = (face.probability(Label.SKIN) > 0.8) & (hair < 0.1) & (v > 0.06) & (np.abs(u) < 0.25)
    weight = forehead.astype(np.float32)
    # Far from the forehead its mean colour; the nearer, the more local.
    smooth = 1e-6 * np.broadcast_to(image[forehead].mean(axis=0), image.shape)
    total = np.full(u.shape, 1e-6, dtype=np.float32)
    for sigma, share in ((0.03, 1.0), (0.08, 1e-2), (0.20, 1e-4)):
        smooth = smooth + share * blurred(image * weight[..., None], sigma * face.unit_px)
        total += share * blurred(weight, sigma * face.unit_px)
    smooth = smooth / total[..., None]
    patch = face.to_photo(np.array([[-0.15, 0.22], [0.15, 0.08]])).round().astype(int)
    (x0, x1), (y0, y1) = sorted(patch[:, 0]), sorted(patch[:, 1])
    part = image[y0:y1, x0:x1]
    pores = part - blurred(part, 0.008 * face.unit_px)
    pad = ((0, max(0, image.shape[0] - pores.shape[0])), (0, max(0, image.shape[1] - pores.shape[1])), (0, 0))
    tiled = np.pad(pores, pad, mode="symmetric")
    grown: Image = (smooth + tiled + 0.006 * noise(u.shape, 0.04 * face.unit_px, rng)[..., None]).astype(np.float32)
    return grown


def _background(face: Face) -> Image:
    """The studio's grey from the borders of each row."""
    image = face.image
    h, w = image.shape[:2]
    rows = np.minimum(np.arange(h), h // 3)
    left, right = (
        blurred(image[:, 4:12].mean(axis=1, keepdims=True), 15),
        blurred(image[:, -12:-4].mean(axis=1, keepdims=True), 15),
    )
    across = np.linspace(0, 1, w, dtype=np.float32)[None, :, None]
    grey: Image = (left * (1 - across) + right * across)[rows]
    return grey


def _widened(mask: Image, radius_px: float) -> Image:
    """Everything within `radius_px` of the mask."""
    size = 2 * max(1, round(radius_px)) + 1
    return np.asarray(cv2.dilate(mask, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))), dtype=np.float32)
