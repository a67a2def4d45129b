"""Outlines of hair drawn by eye, before any parser had been run on the pictures for their hair.

`hair_outlines.json` says by which rule they were drawn, and holds them; `hair_outlines_second.json` holds some of them
drawn once more, without the first ones being seen: how far two outlines of the same hair agree.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.types import Points

OUTLINES = Path(__file__).parent / "hair_outlines.json"
SECOND = Path(__file__).parent / "hair_outlines_second.json"
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class HairOutline:
    """The hair of one picture."""

    picture: str
    """Name, as `bench.portraits.pictures.path_of` knows it."""
    framing: Literal["loose", "tight"]
    outer: tuple[Points, ...]
    """Polygons (N, 2) in pixels of the upright photo; closed by themselves."""
    holes: tuple[Points, ...]

    def mask(self, height_px: int, width_px: int) -> Mask:
        """(H, W), which pixels are hair."""
        drawn = np.zeros((height_px, width_px), dtype=np.uint8)
        for polygons, value in ((self.outer, 1), (self.holes, 0)):
            for polygon in polygons:
                cv2.fillPoly(drawn, [np.rint(polygon).astype(np.int32)], value)
        return drawn.astype(bool)


def read_outlines(path: Path = OUTLINES) -> tuple[HairOutline, ...]:
    """All of them, in the order of the file."""
    pictures = json.loads(path.read_text())["pictures"]
    return tuple(
        HairOutline(
            picture,
            drawn["framing"],
            *(tuple(np.array(polygon, dtype=np.float64) for polygon in drawn[kind]) for kind in ("outer", "holes")),
        )
        for picture, drawn in pictures.items()
    )


def overlap(found: Mask, drawn: Mask) -> float:
    """Intersection over union of two masks (H, W); 1 where both are empty."""
    union = np.count_nonzero(found | drawn)
    return np.count_nonzero(found & drawn) / union if union else 1.0
