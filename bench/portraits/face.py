"""A portrait with what the edits need to know of it, in face coordinates.

Face coordinates: origin at the glabella, u to the subject's left along the head's lateral axis, v up the face, both in
face units (three middle courts as the photo shows them; about the height of the face). Brows lie near v = 0, a usual
hairline near 0.3, the crown near 0.6, the menton near -0.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.head import GLABELLA, photo_axes
from vision.types import FaceLandmarks, ParsingMap, RgbImage

Image = NDArray[np.floating[Any]]
"""(H, W, 3) or (H, W), 0 to 1."""


@dataclass(frozen=True)
class Face:
    """One portrait."""

    rgb: RgbImage
    landmarks: FaceLandmarks
    parsing: ParsingMap

    @property
    def image(self) -> Image:
        """(H, W, 3), 0 to 1."""
        return self.rgb.astype(np.float32) / np.float32(255)

    @property
    def origin(self) -> NDArray[np.float64]:
        """(2,), the glabella."""
        glabella: NDArray[np.float64] = self.landmarks.points[GLABELLA]
        return glabella

    @property
    def unit_px(self) -> float:
        """One face unit."""
        return 3 * float((self.landmarks.points[2] - self.origin) @ photo_axes(self.landmarks)[1])

    def to_photo(self, uv: NDArray[np.float64]) -> NDArray[np.float64]:
        """(N, 2) face coordinates to pixels."""
        lateral, down = photo_axes(self.landmarks)
        places: NDArray[np.float64] = self.origin + self.unit_px * (uv[:, :1] * lateral - uv[:, 1:] * down)
        return places

    def coordinates(self) -> tuple[Image, Image]:
        """u and v of every pixel, (H, W) each."""
        lateral, down = photo_axes(self.landmarks)
        y, x = np.mgrid[: self.rgb.shape[0], : self.rgb.shape[1]].astype(np.float32)
        x, y = x - self.origin[0], y - self.origin[1]
        u = (x * lateral[0] + y * lateral[1]) / self.unit_px
        v = -(x * down[0] + y * down[1]) / self.unit_px
        return u.astype(np.float32), v.astype(np.float32)

    def probability(self, *labels: int) -> Image:
        """(H, W), the parser's probability of any of the `labels`."""
        raster = self.parsing.probabilities[list(labels)].sum(axis=0)
        size = (self.rgb.shape[1], self.rgb.shape[0])
        mapped = cv2.warpAffine(raster, self.parsing.photo_from_map, size, flags=cv2.INTER_LINEAR)
        return np.asarray(mapped, dtype=np.float32)


def blurred(image: Image, sigma_px: float) -> Image:
    """Gaussian blur; wide ones on a reduced picture, where they look the same and take no time."""
    reduce = max(1, int(sigma_px / 4))
    height, width = image.shape[:2]
    small = image.astype(np.float32)
    if reduce > 1:
        size = (max(1, width // reduce), max(1, height // reduce))
        small = np.asarray(cv2.resize(small, size, interpolation=cv2.INTER_AREA), dtype=np.float32)
    smooth = cv2.GaussianBlur(small, (0, 0), max(0.1, sigma_px / reduce), borderType=cv2.BORDER_REPLICATE)
    if reduce > 1:
        smooth = cv2.resize(smooth, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.asarray(smooth, dtype=np.float32).reshape(image.shape)


def over(base: Image, top: Image, alpha: Image) -> Image:
    """`top` (H, W, 3) on `base` with `alpha` (H, W)."""
    mixed: Image = base + alpha[..., None] * (top - base)
    return mixed


def noise(shape: tuple[int, int], sigma_px: float, rng: np.random.Generator) -> Image:
    """(H, W), smooth noise of unit standard deviation."""
    white = blurred(rng.standard_normal(shape).astype(np.float32), sigma_px)
    scaled: Image = white / white.std()
    return scaled
