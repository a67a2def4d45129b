"""A painted head with combed hair, and everything that is known of it: growth around it needs no model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from tests.vision.annotate_faces import invented_facts
from tests.vision.conftest import photo_of
from vision.types import LABEL_COUNT, Facts, HairlineState, Label, ParsingMap, Points, RgbImage

SIDE_PX = 800
FACE_WIDTH = 0.34
CENTRE = (0.5, 0.48)
RASTER_PX = 400
"""Of the painted parsing: half of the photo's."""
SKIN, HAIR, GROUND = (205, 165, 140), (62, 46, 38), (120, 130, 140)
HEAD_PX = (190, 290)
"""Half axes of head and hair about a point above the root of the nose."""

Array = NDArray[np.float64]


def combed(height: int, width: int, angle_deg: float = 0.0, seed: int = 3) -> Array:
    """(height, width), mean 0 and deviation 1: strands that run down, turned by `angle_deg`."""
    rng = np.random.default_rng(seed)
    noise = cv2.GaussianBlur(rng.normal(size=(height, width)), (0, 0), 0.8)
    length = 41
    line = np.zeros((length, length))
    middle = length // 2
    step = (middle * np.sin(np.radians(angle_deg)), middle * np.cos(np.radians(angle_deg)))
    start, end = ((round(middle - sign * step[0]), round(middle - sign * step[1])) for sign in (1, -1))
    cv2.line(line, start, end, 1.0, 1)
    strands = cv2.filter2D(noise, -1, line / line.sum(), borderType=cv2.BORDER_REFLECT)
    return np.asarray((strands - strands.mean()) / strands.std(), dtype=np.float64)


def hair_pixels(strands: Array) -> RgbImage:
    """Strands in the head's colour."""
    return np.clip(np.array(HAIR) + 16 * strands[..., None], 0, 255).astype(np.uint8)


def hairline_y(facts: Facts, x: Array | NDArray[np.int64]) -> Array:
    """Height of the hairline at `x`; far below the picture beside its ends."""
    line = np.array([(point.x_px, point.y_px) for point in facts.hairline.points])
    return np.asarray(np.interp(x, line[:, 0], line[:, 1], left=1e4, right=1e4), dtype=np.float64)


@cache
def painted_facts(*, hair: bool = True, with_scale: bool = True, angle_deg: float = 0.0) -> Facts:
    """A head of 800 × 800 px before a plain ground; without `hair` it is bald."""
    facts = invented_facts(SIDE_PX, SIDE_PX, face_width=FACE_WIDTH, centre=CENTRE, with_scale=with_scale)
    y, x = np.mgrid[:SIDE_PX, :SIDE_PX]
    middle = (CENTRE[0] * SIDE_PX, CENTRE[1] * SIDE_PX - 20)
    head = ((x - middle[0]) / HEAD_PX[0]) ** 2 + ((y - middle[1]) / HEAD_PX[1]) ** 2 < 1
    above = head & (y < np.minimum(hairline_y(facts, x), CENTRE[1] * SIDE_PX + 60)) & hair
    rng = np.random.default_rng(5)
    rgb = np.empty((SIDE_PX, SIDE_PX, 3))
    rgb[:] = GROUND
    rgb[head] = SKIN
    rgb += rng.normal(0, 1.5, rgb.shape)
    soft = cv2.GaussianBlur(above.astype(np.float64), (0, 0), 2.5)[..., None]
    rgb += soft * (hair_pixels(combed(SIDE_PX, SIDE_PX, angle_deg)) - rgb)
    labels = np.where(above, Label.HAIR, np.where(head, Label.SKIN, Label.BACKGROUND))
    return replace(
        facts,
        photo=photo_of(np.clip(rgb, 0, 255).astype(np.uint8)),
        parsing=parsing_of(labels),
        hairline=facts.hairline
        if hair
        else replace(facts.hairline, points=(), status=HairlineState.NONE, trichion=None),
    )


def parsing_of(labels: NDArray[np.int64]) -> ParsingMap:
    """The parsing of a photo whose classes are `labels` (H, W), on a raster of its own."""
    height, width = labels.shape
    size = (RASTER_PX, RASTER_PX)
    planes = [
        cv2.resize((labels == label).astype(np.float32), size, interpolation=cv2.INTER_AREA)
        for label in range(LABEL_COUNT)
    ]
    scale = np.array([width / RASTER_PX, height / RASTER_PX])
    return ParsingMap(np.stack(planes), np.column_stack([np.diag(scale), scale / 2 - 0.5]))


def lowered(facts: Facts, by_px: float) -> tuple[Points, Points]:
    """A front (N, 2) below the hairline, least at its ends, and the closed region between the two."""
    line = np.array([(point.x_px, point.y_px) for point in facts.hairline.points])
    share = np.sin(np.pi * np.linspace(0, 1, len(line)))
    front = line + np.column_stack([np.zeros(len(line)), by_px * np.sqrt(share)])
    return front, np.vstack([line - (0.0, 4.0), front[::-1]])
