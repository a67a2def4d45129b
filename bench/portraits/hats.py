"""Hats: a knitted beanie, and a cap with a brim. Both hide the hairline and all hair above it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from bench.portraits.face import Face, Image, blurred, noise, over
from vision.types import Label


class HatKind(StrEnum):
    """What is worn."""

    BEANIE = "beanie"
    CAP = "cap"


@dataclass(frozen=True)
class Hat:
    """One hat. Lengths in face units."""

    kind: HatKind
    colour: tuple[float, float, float]
    edge: float = 0.14
    """Height of its lower edge above the glabella, on the midline."""
    tilt: float = 0.0
    """How much higher the edge lies per unit towards the subject's left."""


STITCH = 0.018
CUFF = 0.15
BRIM = 0.13


def put_on(face: Face, hat: Hat, rng: np.random.Generator) -> Image:
    """The portrait with a hat."""
    u, v = face.coordinates()
    hair = face.probability(Label.HAIR)
    # The edge bends down towards the ears, as on a head seen from the front.
    edge = hat.edge + hat.tilt * u - 0.75 * u**2
    above = np.clip((v - edge) * face.unit_px, 0, 1)
    half_width, top = _head(u, v, hair)
    half_width, top = max(half_width, 0.40) + 0.015, max(top, 0.56) + 0.05
    middle = hat.edge - 0.75 * half_width**2
    dome = 1 - (u / half_width) ** 2 - np.clip((v - middle) / (top - middle), 0, None) ** 2.2
    inside = np.clip(dome * 0.5 * half_width * face.unit_px, 0, 1) * above
    cloth = (
        _knit(face, u, v, edge, half_width, hat, rng) if hat.kind is HatKind.BEANIE else _twill(face, u, v, hat, rng)
    )
    # Lit from the front and above: darker towards the outline.
    light = 0.45 + 0.55 * np.sqrt(np.clip(dome, 0, 1))
    picture = _without_hair_above(face, hair, edge, v)
    shadow = _shadow(face, inside)
    picture = picture * (1 - 0.5 * shadow)[..., None]
    picture = over(picture, np.clip(cloth * light[..., None], 0, 1).astype(np.float32), inside)
    if hat.kind is HatKind.CAP:
        picture = _brim(face, picture, u, v, hat, rng)
    return picture


def _head(u: Image, v: Image, hair: Image) -> tuple[float, float]:
    """Half-width and top of the hair above the brows, in face units; big hair is pressed down to what a hat holds."""
    seen = (hair > 0.5) & (v > 0.1)
    return min(0.46, float(np.quantile(np.abs(u[seen]), 0.98))), min(0.62, float(np.quantile(v[seen], 0.99)))


def _without_hair_above(face: Face, hair: Image, edge: Image, v: Image) -> Image:
    """Hair that would stand out over the hat is replaced by the studio's background."""
    image = face.image
    h, w = hair.shape
    border = image[: h // 3, [5, w - 6]].mean(axis=1, keepdims=True)
    background = np.repeat(blurred(border, 20), w, axis=1)
    rows = np.minimum(np.arange(h), h // 3 - 1)
    gone = np.clip(3 * blurred(hair, 4), 0, 1) * np.clip((v - edge) * 40, 0, 1)
    return over(image, background[rows], gone.astype(np.float32))


def _shadow(face: Face, inside: Image) -> Image:
    """Soft shadow under the lower edge, on the face alone."""
    below = blurred(np.roll(inside, round(0.02 * face.unit_px), axis=0), 0.014 * face.unit_px)
    return below * face.probability(Label.SKIN, Label.LEFT_BROW, Label.RIGHT_BROW)


def _knit(face: Face, u: Image, v: Image, edge: Image, half_width: float, hat: Hat, rng: np.random.Generator) -> Image:
    """Columns of stitches; a cuff of ribs at the edge."""
    around = np.arcsin(np.clip(u / (half_width + 0.02), -0.999, 0.999)) * half_width
    up = v - edge
    cuff = (up < CUFF).astype(np.float32)
    wales = np.abs(((around / STITCH) % 1) - 0.5) * 2
    rows = (up / (0.8 * STITCH) + 0.45 * np.abs(wales - 0.5)) % 1
    stitch = (0.62 + 0.38 * np.sin(np.pi * rows)) * (0.7 + 0.3 * np.sin(np.pi * wales))
    ribs = 0.6 + 0.4 * np.abs(np.sin(np.pi * around / (1.6 * STITCH))) * (0.85 + 0.15 * np.sin(2 * np.pi * up / STITCH))
    pattern = cuff * ribs + (1 - cuff) * stitch
    fold = 1 - 0.5 * np.exp(-0.5 * ((up - CUFF) / 0.006) ** 2) - 0.35 * np.exp(-0.5 * (up / 0.005) ** 2)
    fuzz = 1 + 0.08 * noise(u.shape, 0.7, rng) + 0.05 * noise(u.shape, 0.02 * face.unit_px, rng)
    shade = blurred((pattern * fold * fuzz).astype(np.float32), 0.0015 * face.unit_px)
    coloured: Image = (shade[..., None] * np.array(hat.colour, dtype=np.float32)).astype(np.float32)
    return coloured


def _twill(face: Face, u: Image, v: Image, hat: Hat, rng: np.random.Generator) -> Image:
    """Woven cotton in panels with seams."""
    weave = 1 + 0.04 * np.sin(2 * np.pi * (u + v) * face.unit_px / 3.1) + 0.03 * noise(u.shape, 0.8, rng)
    wrinkles = 1 + 0.05 * noise(u.shape, 0.03 * face.unit_px, rng)
    bent = u / np.sqrt(np.clip(1.02 - np.clip(v / 0.75, 0, 1) ** 2, 0.05, 1))
    seams = 1.0
    for seam in (-0.2, 0.0, 0.2):
        seams = seams * (1 - 0.35 * np.exp(-0.5 * ((bent - seam) / 0.004) ** 2))
    shade = (weave * wrinkles * seams).astype(np.float32)
    coloured: Image = (shade[..., None] * np.array(hat.colour, dtype=np.float32)).astype(np.float32)
    return coloured


def _brim(face: Face, picture: Image, u: Image, v: Image, hat: Hat, rng: np.random.Generator) -> Image:
    """A curved brim seen from the front, a little from above; its shadow falls on the brows."""
    upper = hat.edge + 0.035 + hat.tilt * u - 0.55 * u**2
    lower = upper - BRIM * np.sqrt(np.clip(1 - (u / 0.40) ** 2, 0, 1))
    inside = np.clip((upper - v) * face.unit_px, 0, 1) * np.clip((v - lower) * face.unit_px, 0, 1)
    inside = (inside * np.clip((0.40 - np.abs(u)) * face.unit_px, 0, 1)).astype(np.float32)
    shadow = blurred(np.roll(inside, round(0.05 * face.unit_px), axis=0), 0.025 * face.unit_px)
    picture = picture * (1 - 0.45 * shadow * face.probability(*range(1, 11)))[..., None]
    across = np.clip((v - lower) / BRIM, 0, 1)
    light = (0.55 + 0.5 * across) * (1 - 0.25 * (u / 0.4) ** 2) * (1 + 0.03 * noise(u.shape, 0.8, rng))
    rim = 1 - 0.3 * np.exp(-0.5 * ((v - lower - 0.012) / 0.003) ** 2)
    cloth = np.clip((light * rim)[..., None] * np.array(hat.colour), 0, 1).astype(np.float32)
    return over(picture, cloth, inside)
