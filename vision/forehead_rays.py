"""A fan of rays from the glabella over the forehead: the photo and its parsing, sampled where the hairline is sought.

Column `j` of every array is the ray at `ANGLES_DEG[j]` against the facial midline, from the subject's right (negative,
viewer's left) to the left; a row is a distance from the glabella. Distances are in face units: three middle courts as
the photo shows them, which is about the height of the face.

On a turned head the facial midline is no straight line in the photo: the forehead recedes towards the crown, so the
midline bends to the side the face is turned away from, by 5 % of a face height at the hairline for a yaw of 11 degrees.
The mesh shows the bend up to where it ends; the fan follows it and goes on with it (against two markings by eye the
direction of the trichion is then 0.9 degrees off, root mean square, instead of 1.6).
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
ON_THE_MIDLINE = ((151, 151), (10, 10), (108, 337), (109, 338))
"""Pairs of the mesh's forehead points whose middles lie on the midline."""


@dataclass(frozen=True, slots=True)
class Rays:
    """The fan over one face."""

    origin: Array
    """(2,), the glabella in the photo."""
    unit_px: float
    """One face unit."""
    directions: Array
    """(N, 2), unit vectors in the photo, as they leave the origin without the bend."""
    lateral: Array
    """(2,), unit vector to the subject's left."""
    bend: Array
    """(2,), how far the midline lies to the left at a height `h` above the origin: `bend[0] h + bend[1] h**2`, all in
    face units."""

    def at(self, radii: Array) -> Points:
        """(..., N, 2), places in the photo at distances (..., N) on the rays."""
        height = radii * np.cos(np.radians(ANGLES_DEG))
        aside = height * (self.bend[0] + self.bend[1] * height)
        places: Points = self.origin + self.unit_px * (
            radii[..., None] * self.directions + aside[..., None] * self.lateral
        )
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
    unit_px = 3 * float((landmarks.points[SUBNASALE] - origin) @ down)
    midline = (landmarks.points[np.array(ON_THE_MIDLINE)].mean(axis=1) - origin) / unit_px
    height = -midline @ down
    return Rays(
        origin=origin,
        unit_px=unit_px,
        directions=np.sin(angles) * lateral - np.cos(angles) * down,
        lateral=lateral,
        bend=np.linalg.lstsq(np.column_stack([height, height**2]), midline @ lateral, rcond=None)[0],
    )


GRAIN_SIGMA = 0.008
"""How far around a place its grain is judged, in face units; what is finer than half of it is grain."""
GRAIN_FLOOR = 2.0
"""Contrast in lightness that skin and camera have as well; what is below counts for little."""
GRAIN_GAIN = 15.0
"""Makes the grain (a logarithm) count like a Lab colour: strands have some 10 more of it than skin."""


class ForeheadColours:
    """The part of the photo that the fan covers, averaged to cells of about `step` face units.

    Four channels: CIE Lab, and the grain: how much fine detail there is around a place. White hair on pale skin and
    stubble differ from skin by that more than by any colour.
    """

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
        lab = np.asarray(cv2.cvtColor(part.astype(np.float32) / 255, cv2.COLOR_RGB2Lab), dtype=np.float32)
        sigma = max(1.0, GRAIN_SIGMA * rays.unit_px * float(self._shrink[0]))
        self._channels = np.dstack([lab, _grain(lab[..., 0], sigma)])

    def at(self, places: Points) -> Floats:
        """(..., 4), Lab and grain at places (..., 2) of the photo; beyond the photo its edge goes on."""
        return sampled(self._channels, (places - self._low + 0.5) * self._shrink - 0.5)


def _grain(lightness: Floats, sigma: float) -> Floats:
    """(H, W), logarithm of the local contrast of detail finer than half of `sigma` cells."""
    fine = lightness - cv2.GaussianBlur(lightness, (0, 0), sigma / 2)
    power = cv2.GaussianBlur(fine**2, (0, 0), sigma)
    return np.asarray(GRAIN_GAIN * np.log1p(np.sqrt(power) / GRAIN_FLOOR), dtype=np.float32)


def sampled(raster: Floats, places: Points) -> Floats:
    """Values of a raster (H, W) or (H, W, C) at places (M, N, 2) of it, interpolated."""
    at = places.astype(np.float32)
    values = cv2.remap(raster, at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(values, dtype=np.float32)
