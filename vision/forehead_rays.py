"""A fan of rays from the glabella over the forehead: the photo and its parsing, sampled where the hairline is sought.

Column `j` of every array is the ray at `ANGLES_DEG[j]` against the facial midline, from the subject's right (negative,
viewer's left) to the left; a row is a distance from the glabella. Distances are in face units: three middle courts as
the photo shows them, which is about the height of the face.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.head import GLABELLA, Array, photo_axes
from vision.types import FaceLandmarks, ParsingMap, Photo, Points

Floats = NDArray[np.float32]

ANGLE_STEP_DEG = 2.0
ANGLES_DEG = np.arange(-80.0, 80.1, ANGLE_STEP_DEG)
RADIUS_STEP = 0.004
RADII = np.arange(0.04, 0.70, RADIUS_STEP)
MIDLINE = int(np.argmin(np.abs(ANGLES_DEG)))
"""Column of the facial midline."""

SUBNASALE = 2


@dataclass(frozen=True, slots=True)
class Rays:
    """The fan over one face."""

    origin: Array
    """(2,), the glabella in the photo."""
    unit_px: float
    """One face unit."""
    directions: Array
    """(N, 2), unit vectors in the photo."""

    def at(self, radii: Array) -> Points:
        """(..., N, 2), places in the photo at distances (..., N) on the rays."""
        places: Points = self.origin + self.unit_px * radii[..., None] * self.directions
        return places

    def probability(self, parsing: ParsingMap, labels: tuple[int, ...], radii: Array) -> Floats:
        """(M, N), probability of any of the `labels` at distances (M, N)."""
        places = self.at(radii) @ parsing.map_from_photo[:, :2].T + parsing.map_from_photo[:, 2]
        return sampled(parsing.probabilities[list(labels)].sum(axis=0), places)


def forehead_rays(landmarks: FaceLandmarks) -> Rays:
    """The fan over one face."""
    lateral, down = photo_axes(landmarks)
    origin = landmarks.points[GLABELLA]
    angles = np.radians(ANGLES_DEG)[:, None]
    return Rays(
        origin=origin,
        unit_px=3 * float((landmarks.points[SUBNASALE] - origin) @ down),
        directions=np.sin(angles) * lateral - np.cos(angles) * down,
    )


class ForeheadColours:
    """The part of the photo that the fan covers, in CIE Lab, averaged to cells of about `step` face units."""

    def __init__(self, photo: Photo, rays: Rays, step: float) -> None:
        reach = rays.at(np.vstack([np.zeros(rays.directions.shape[0]), np.full(rays.directions.shape[0], RADII[-1])]))
        limit = (photo.width_px - 1, photo.height_px - 1)
        low = np.clip(np.floor(reach.min(axis=(0, 1))).astype(int) - 2, 0, limit)
        high = np.maximum(np.ceil(reach.max(axis=(0, 1))).astype(int) + 3, low + 1)
        part = photo.rgb[low[1] : high[1], low[0] : high[0]]
        self._low = low
        self._shrink = np.ones(2)
        if step * rays.unit_px > 1:
            size = np.maximum(1, np.round(np.array(part.shape[1::-1]) / (step * rays.unit_px))).astype(int)
            self._shrink = size / np.array(part.shape[1::-1])
            part = np.asarray(cv2.resize(part, size.tolist(), interpolation=cv2.INTER_AREA), dtype=np.uint8)
        self._lab = np.asarray(cv2.cvtColor(part.astype(np.float32) / 255, cv2.COLOR_RGB2Lab), dtype=np.float32)

    def at(self, places: Points) -> Floats:
        """(..., 3), Lab at places (..., 2) of the photo; beyond the photo its edge goes on."""
        return sampled(self._lab, (places - self._low + 0.5) * self._shrink - 0.5)


def sampled(raster: Floats, places: Points) -> Floats:
    """Values of a raster (H, W) or (H, W, C) at places (M, N, 2) of it, interpolated."""
    at = places.astype(np.float32)
    values = cv2.remap(raster, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(values, dtype=np.float32)
