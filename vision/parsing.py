"""Face parsing of a photo: aligned crops of two scales through the network, fused on one raster.

The network was trained on portraits in which the face fills about half of the picture, upright and centred; on anything
else it fails. So each crop is cut with the roll of the head removed and the face at such a size. The narrow crop is
sharp near the face, the wide one knows the hair further out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.types import FaceLandmarks, Parser, ParsingMap, Photo, RgbImage

INPUT_SIDE_PX = 512
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32) * 255
_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32) * 255

NARROW_SIDE = 2.0
WIDE_SIDE = 3.4
"""Sides of the two crops, in heights of the landmark mesh (upper forehead to chin)."""
CENTRE_ABOVE = 0.12
"""How far the crops' centre lies above the middle of the mesh, in mesh heights: the hair needs the room."""
MAP_SIDE_PX = 640
"""Side of the fused raster, which covers the wide crop."""
FEATHER = 0.12
"""Width of the band inside the narrow crop's border over which the wide one takes over, in sides of the crop."""

_TOP, _CHIN = 10, 152


@dataclass(frozen=True, slots=True)
class _Square:
    """A square of the photo, upright with the face."""

    centre: NDArray[np.float64]
    side_px: float
    roll_deg: float

    def photo_from_square(self, cells: int) -> NDArray[np.float64]:
        """(2, 3): square divided into cells × cells pixels (centres at whole numbers) to photo pixels."""
        scale = self.side_px / cells
        angle = np.radians(self.roll_deg)
        linear = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        offset = self.centre - linear @ np.full(2, (cells - 1) / 2)
        return np.column_stack([linear, offset])


def parse(photo: Photo, landmarks: FaceLandmarks, forward: Parser, step: Callable[[], None]) -> ParsingMap:
    """Probabilities of the 19 classes around the face. Calls `step` before each forward."""
    narrow = _square(landmarks, NARROW_SIDE)
    wide = _square(landmarks, WIDE_SIDE)
    fused = _interpolated(_logits(photo, wide, forward, step), wide, wide)
    _softmax(fused)
    near = _interpolated(_logits(photo, narrow, forward, step), narrow, wide)
    _softmax(near)
    inner = _inner(wide, narrow)
    region = fused[:, inner, inner]
    region += _feather(near.shape[1]) * (near - region)
    return ParsingMap(probabilities=fused, photo_from_map=wide.photo_from_square(MAP_SIDE_PX))


def _square(landmarks: FaceLandmarks, side: float) -> _Square:
    top, chin = landmarks.points[_TOP], landmarks.points[_CHIN]
    height = float(np.linalg.norm(top - chin))
    up = (top - chin) / height
    centre = (top + chin) / 2 + CENTRE_ABOVE * height * up
    return _Square(centre, side * height, landmarks.pose.roll_deg)


def _logits(photo: Photo, square: _Square, forward: Parser, step: Callable[[], None]) -> NDArray[np.float32]:
    """(19, 64, 64) logits of the square."""
    step()
    crop = sample(photo.rgb, square.photo_from_square(INPUT_SIDE_PX), INPUT_SIDE_PX)
    logits: NDArray[np.float32] = forward(normalized(crop))[0]
    return logits


def normalized(rgb: RgbImage) -> NDArray[np.float32]:
    """(H, W, 3) 8-bit to (1, 3, H, W) as the network was trained on."""
    scaled = (rgb.astype(np.float32) - _MEAN) / _STD
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None], dtype=np.float32)


def sample(rgb: RgbImage, photo_from_crop: NDArray[np.float64], side_px: int) -> RgbImage:
    """Cut a (side, side, 3) crop; what lies outside the photo is black. Averages where the crop is coarser."""
    corners = np.array([[0, 0, 1], [side_px, 0, 1], [0, side_px, 1], [side_px, side_px, 1]], dtype=np.float64)
    mapped = corners @ photo_from_crop.T
    low = np.maximum(np.floor(mapped.min(axis=0)).astype(int) - 1, 0)
    high = np.minimum(np.ceil(mapped.max(axis=0)).astype(int) + 2, (rgb.shape[1], rgb.shape[0]))
    if (high <= low).any():
        return np.zeros((side_px, side_px, 3), dtype=np.uint8)
    part = rgb[low[1] : high[1], low[0] : high[0]]
    reduce = max(1, int(np.hypot(*photo_from_crop[:, 0])))
    size = (max(1, part.shape[1] // reduce), max(1, part.shape[0] // reduce))
    factor = np.array([part.shape[1] / size[0], part.shape[0] / size[1]])
    if reduce > 1:
        part = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    part_from_crop = photo_from_crop.copy()
    part_from_crop[:, 2] -= low
    part_from_crop /= factor[:, None]
    part_from_crop[:, 2] += 0.5 / factor - 0.5
    crop = cv2.warpAffine(part, part_from_crop, (side_px, side_px), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    return np.asarray(crop, dtype=np.uint8)


def _interpolated(logits: NDArray[np.float32], source: _Square, raster: _Square) -> NDArray[np.float32]:
    """(19, 64, 64) logits of `source` at the pixels of `raster` that lie inside it; both share centre and roll."""
    inner = _inner(raster, source)
    weights = _linear_weights(logits.shape[-1], source.side_px / raster.side_px)[inner]
    return np.asarray(weights @ logits @ weights.T, dtype=np.float32)


def _linear_weights(cells: int, share: float) -> NDArray[np.float32]:
    """(MAP_SIDE_PX, cells): how each raster pixel along one axis is made of the cells of a square `share` as wide."""
    fraction = ((np.arange(MAP_SIDE_PX) + 0.5) / MAP_SIDE_PX - 0.5) / share + 0.5
    pixel = fraction * INPUT_SIDE_PX - 0.5
    position = np.clip(pixel * (cells - 1) / (INPUT_SIDE_PX - 1), 0, cells - 1)
    weights: NDArray[np.float32] = np.clip(1 - np.abs(position[:, None] - np.arange(cells)), 0, 1).astype(np.float32)
    return weights


def _inner(raster: _Square, square: _Square) -> slice:
    """Raster pixels, along either axis, whose centres lie inside the square."""
    share = square.side_px / raster.side_px
    first = int(np.ceil(MAP_SIDE_PX * (1 - share) / 2 - 0.5))
    first = max(0, first)
    return slice(first, MAP_SIDE_PX - first)


def _feather(side: int) -> NDArray[np.float32]:
    """(side, side): 1 in the middle, falling to 0 at the border."""
    ramp = np.clip((np.minimum(np.arange(side), np.arange(side)[::-1]) + 0.5) / (FEATHER * side), 0, 1)
    smooth: NDArray[np.float32] = (3 * ramp**2 - 2 * ramp**3).astype(np.float32)
    return smooth[:, None] * smooth


def _softmax(logits: NDArray[np.float32]) -> None:
    """Over the first axis, in place."""
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
