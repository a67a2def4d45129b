"""Bangs: strands of the person's own hair colours over the forehead, with uneven ends and a shadow under them."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from bench.portraits.face import Face, Image, blurred, over
from vision.types import Label

OVERSAMPLING = 2


@dataclass(frozen=True)
class Bangs:
    """How they are cut. Lengths in face units."""

    end: float
    """Mean height of the ends above the glabella."""
    slant: float = 0.0
    """How much lower they end per unit towards the subject's left."""
    sweep: float = 0.0
    """How far a strand moves sideways on its way down."""
    wave: float = 0.0
    """Amplitude of the strands' waves."""
    half_width: float = 0.33
    gap: float = 0.0
    """Share of strands left out: thin bangs let the forehead shine through."""


def add_bangs(face: Face, cut: Bangs, rng: np.random.Generator) -> Image:
    """The portrait with bangs."""
    hair = face.probability(Label.HAIR)
    base = face.image
    pool = base[(hair > 0.6) & (blurred(hair, 0.01 * face.unit_px) > 0.6)]
    lightness = pool.mean(axis=1)
    pool = pool[np.argsort(lightness)][int(0.05 * len(pool)) : int(0.85 * len(pool))]
    size = (face.rgb.shape[1] * OVERSAMPLING, face.rgb.shape[0] * OVERSAMPLING)
    colour = np.zeros((size[1], size[0], 3), dtype=np.float32)
    cover = np.zeros((size[1], size[0]), dtype=np.float32)
    count = int(2600 * (1 - cut.gap))
    locks = rng.normal(0, 0.03, 24)
    thickness = max(1, round(0.0022 * face.unit_px * OVERSAMPLING))
    for _ in range(count):
        strand, lock = _strand(cut, locks, rng)
        points = np.round(face.to_photo(strand) * OVERSAMPLING * 16).astype(np.int32)
        # Locks have a shade of their own; strands in the light are the pool's brighter ones.
        shade = np.clip(rng.normal(0.5 + 5 * locks[lock], 0.2), 0, 0.999)
        _draw(colour, cover, points, pool[int(shade * len(pool))], thickness, rng)
    colour, cover = _shrunk(colour, face), _shrunk(cover, face)
    shadow = np.roll(blurred(cover, 0.012 * face.unit_px), round(0.012 * face.unit_px), axis=0)
    shaded = base * (1 - 0.35 * shadow * face.probability(*range(1, 6)))[..., None]
    return over(shaded, colour / np.maximum(cover, 1e-3)[..., None], np.clip(cover, 0, 1))


def _strand(cut: Bangs, locks: NDArray[np.float64], rng: np.random.Generator) -> tuple[NDArray[np.float64], int]:
    """(24, 2), one strand in face coordinates, and its lock."""
    across = rng.uniform(-1, 1)
    lock = int((across + 1) / 2 * 0.999 * len(locks))
    root = np.array([0.75 * cut.half_width * across, rng.uniform(0.42, 0.5) - 0.12 * across**2])
    foot_u = cut.half_width * across + cut.sweep + rng.normal(0, 0.008)
    end = cut.end - cut.slant * foot_u + 0.35 * locks[lock] - 0.10 * across**2 + rng.normal(0, 0.012)
    t = np.linspace(0, 1, 24)
    u = root[0] + (foot_u - root[0]) * t**1.4
    v = root[1] + (end - root[1]) * (0.25 * t + 0.75 * t**1.3)
    phase = 6 * lock + rng.normal(0, 0.5)
    return np.column_stack(
        [u + cut.wave * np.sin(phase + 16 * t) * t, v + 0.5 * cut.wave * np.cos(phase + 16 * t)]
    ), lock


def _draw(
    colour: Image, cover: Image, points: NDArray[np.int32], shade: Image, thickness: int, rng: np.random.Generator
) -> None:
    """One strand with a highlight, thinner and fainter towards its end."""
    bright = 1 + 0.45 * np.exp(-0.5 * ((np.linspace(0, 1, len(points)) - rng.normal(0.45, 0.05)) / 0.12) ** 2)
    for i in range(len(points) - 1):
        fade = 1.0 if i < len(points) - 5 else (len(points) - 1 - i) / 5
        tone = tuple(float(min(1.0, c * bright[i])) * fade for c in shade)
        width = max(1, round(thickness * min(1.0, fade + 0.3)))
        segment = [points[i : i + 2]]
        cv2.polylines(colour, segment, isClosed=False, color=tone, thickness=width, shift=4)
        cv2.polylines(cover, segment, isClosed=False, color=fade, thickness=width, shift=4)


def _shrunk(image: Image, face: Face) -> Image:
    small = cv2.resize(image, (face.rgb.shape[1], face.rgb.shape[0]), interpolation=cv2.INTER_AREA)
    return np.asarray(small, dtype=np.float32)
