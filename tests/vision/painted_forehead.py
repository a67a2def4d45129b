"""A forehead painted about a mesh: skin, and hair from a known line on, with the parsing such a picture would get."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.vision.measured_faces import laid
from vision.forehead_rays import forehead_rays
from vision.types import FaceLandmarks, Label, ParsingMap, Photo

SKIN = (205.0, 160.0, 135.0)
DARK_HAIR = (52.0, 38.0, 32.0)
SIZE = 0.6
MIDDLE = (500.0, 620.0)
SIDE_PX = 1000
CELL_PX = 4


@dataclass(frozen=True)
class Forehead:
    """The picture with what is known of it."""

    photo: Photo
    landmarks: FaceLandmarks
    parsing: ParsingMap
    unit_px: float
    glabella: NDArray[np.float64]

    def radius_of(self, x_px: float, y_px: float) -> float:
        """Distance from the glabella in face units."""
        return float(np.hypot(x_px - self.glabella[0], y_px - self.glabella[1]) / self.unit_px)


def paint(
    *,
    line: float = 0.30,
    parser_line: float = 0.288,
    hair: tuple[float, float, float] = DARK_HAIR,
    above: int = Label.HAIR,
    baby_hair: float = 0.0,
    softness: float = 0.012,
    stripe: bool = False,
    strands: float = 0.03,
    parting_deg: float = 0.0,
) -> Forehead:
    """Hair begins at `line` (face units above the glabella), strand by strand within `softness`; the parser believes
    in `parser_line` and in the class `above`. `baby_hair` is the share of strands that reach 0.05 lower; `stripe` lays
    a dark bar over the forehead. `strands` is how much hair varies in brightness from pixel to pixel; at a parting of
    some degrees to either side of the midline hair begins 0.05 higher.
    """
    rng = np.random.default_rng(11)
    landmarks = laid(SIZE, at=MIDDLE)
    rays = forehead_rays(landmarks)
    y, x = np.mgrid[:SIDE_PX, :SIDE_PX].astype(np.float64)
    radius, angle = _polar(x, y, rays.origin, rays.unit_px)
    strand = np.clip((angle / np.pi * 1500).astype(int) + 1500, 0, 2999)
    ends = rng.normal(0, softness, 3000) - 0.05 * (rng.uniform(size=3000) < baby_hair)
    parted = 0.05 * (np.abs(angle) < np.radians(parting_deg))
    is_hair = radius > line + ends[strand] + parted
    shade = 1 + np.where(is_hair, strands, 0.03) * rng.standard_normal(radius.shape)
    rgb = np.where(is_hair[..., None], hair, SKIN) * shade[..., None]
    if stripe:
        rgb[np.abs(radius - 0.17) < 0.012] *= 0.45
    cells = SIDE_PX // CELL_PX
    cell_y, cell_x = (np.mgrid[:cells, :cells].astype(np.float64) + 0.5) * CELL_PX - 0.5
    cell_radius, _ = _polar(cell_x, cell_y, rays.origin, rays.unit_px)
    beyond = 1 / (1 + np.exp(-(cell_radius - parser_line) / 0.008))
    probabilities = np.zeros((19, cells, cells), dtype=np.float32)
    probabilities[Label.SKIN] = 1 - beyond
    probabilities[above] += beyond.astype(np.float32)
    offset = CELL_PX / 2 - 0.5
    return Forehead(
        photo=Photo(np.clip(rgb, 0, 255).astype(np.uint8), "PNG", 1),
        landmarks=landmarks,
        parsing=ParsingMap(probabilities, np.array([[CELL_PX, 0, offset], [0, CELL_PX, offset]], dtype=np.float64)),
        unit_px=rays.unit_px,
        glabella=rays.origin,
    )


def _polar(
    x: NDArray[np.float64], y: NDArray[np.float64], origin: NDArray[np.float64], unit_px: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distance from the glabella in face units, and angle against straight up."""
    return np.hypot(x - origin[0], y - origin[1]) / unit_px, np.arctan2(x - origin[0], origin[1] - y)
