"""Face parsing of a photo: aligned crops of one to three sizes through the network, fused on one raster.

The network was trained on portraits in which the face fills about half of the picture, upright and centred; on anything
else it fails. So each crop is cut with the roll of the head removed and the face at such a size. The narrowest crop is
the best one wherever it reaches (over 19 marked hairlines the boundary scatters by 0.3 % of the face height in it, by
0.4 % in one of 3.4 mesh heights, and twice falls on a fold of the forehead there); a wider one is looked at only where
hair goes on beyond the last. The wider, the lower it lies: long hair hangs down, and so the face stays large in it.
Beyond four mesh heights the network takes hair for a hat, and background for hair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.resample import reduced_by
from vision.types import FaceLandmarks, Label, Parser, ParsingMap, Photo, RgbImage

INPUT_SIDE_PX = 512
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32) * 255
_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32) * 255

RASTER_PX = 188
"""Pixels of the fused raster per height of the landmark mesh, upper forehead to chin: six for each cell of the
narrowest crop's logits."""
CENTRE_ABOVE = 0.12
"""How far the narrowest crop's centre lies above the middle of the mesh, in mesh heights: the hair needs the room."""


@dataclass(frozen=True, slots=True)
class Crop:
    """A square that is looked at, on the raster. All are centred on the midline, and each lies inside the next."""

    side_px: int
    """Even, so that one lies in the middle of the other."""
    lower_px: int
    """How far its centre lies below that of the narrowest."""


CROPS = (Crop(376, 0), Crop(528, 24), Crop(752, 80))
"""2.0, 2.8 and 4.0 mesh heights wide; they reach 0.9, 1.4 and 2.3 below the middle of the mesh."""
FEATHER = 0.3
"""Width of the band inside a crop's border over which the wider one takes over, in sides of the crop."""
HAIR = (Label.HAIR, Label.HAT)
HAIR_AND_NECK = (*HAIR, Label.NECK)
"""What a crop must not cut."""
MARGIN_PX = 12
CUT = 0.4
"""A crop cuts what has this probability so near to its border, inside the photo. Over 52 pictures it is 0.32 and less
where hair ends well inside the narrowest crop, 0.57 and more elsewhere. Two cells of the logits: less is known there,
and `vision.hair_mask` needs what lies beyond the hair."""

_SIDES = (
    (Label.LEFT_BROW, Label.RIGHT_BROW),
    (Label.LEFT_EYE, Label.RIGHT_EYE),
    (Label.LEFT_EAR, Label.RIGHT_EAR),
)
_BAND = 16
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


def parse(
    photo: Photo, landmarks: FaceLandmarks, forward: Parser, step: Callable[[], None], uncut: tuple[int, ...] = HAIR
) -> ParsingMap:
    """Probabilities of the 19 classes around the face: a forward for each crop that is needed lest one of the classes
    `uncut` is cut. Calls `step` before each.
    """
    fused = _parse_crop(photo, landmarks, CROPS[0], forward, step)
    for inner, outer in pairwise(CROPS):
        if not _cuts(fused, uncut, photo):
            break
        wider = _parse_crop(photo, landmarks, outer, forward, step)
        _lay_into(wider.probabilities, fused.probabilities, inner, outer)
        fused = wider
    _give_sides(fused.probabilities)
    return fused


def _parse_crop(
    photo: Photo, landmarks: FaceLandmarks, crop: Crop, forward: Parser, step: Callable[[], None]
) -> ParsingMap:
    """One forward."""
    step()
    square = _square(landmarks, crop)
    pixels = sample(photo.rgb, square.photo_from_square(INPUT_SIDE_PX), INPUT_SIDE_PX)
    logits = forward(normalized(pixels))[0]
    return ParsingMap(_probabilities(logits, crop.side_px), square.photo_from_square(crop.side_px))


def _square(landmarks: FaceLandmarks, crop: Crop) -> _Square:
    top, chin = landmarks.points[_TOP], landmarks.points[_CHIN]
    height = float(np.linalg.norm(top - chin))
    up = (top - chin) / height
    roll = np.radians(landmarks.pose.roll_deg)
    down_the_raster = np.array([-np.sin(roll), np.cos(roll)])
    px = height / RASTER_PX
    centre = (top + chin) / 2 + CENTRE_ABOVE * height * up + crop.lower_px * px * down_the_raster
    return _Square(centre, crop.side_px * px, landmarks.pose.roll_deg)


def _lay_into(wider: NDArray[np.float32], narrower: NDArray[np.float32], inner: Crop, outer: Crop) -> None:
    """Put the raster of `inner` into that of `outer`, which takes over towards the border."""
    left = (outer.side_px - inner.side_px) // 2
    top = left - (outer.lower_px - inner.lower_px)
    region = wider[:, top : top + inner.side_px, left : left + inner.side_px]
    region += _feather(inner.side_px) * (narrower - region)


def _cuts(parsing: ParsingMap, labels: tuple[int, ...], photo: Photo) -> bool:
    """Whether anything of these classes goes on beyond the raster, inside the photo."""
    near = parsing.probabilities[list(labels)].sum(axis=0) > CUT
    near[MARGIN_PX:-MARGIN_PX, MARGIN_PX:-MARGIN_PX] = False
    y, x = np.nonzero(near)
    in_photo = parsing.photo_from_map @ np.stack([x, y, np.ones_like(x)])
    limits = [[photo.width_px - 1], [photo.height_px - 1]]
    return bool(((in_photo > 0) & (in_photo < limits)).all(axis=0).any())


def _give_sides(probabilities: NDArray[np.float32]) -> None:
    """Give each half of the face its own side's labels, in place; all crops have the midline in their middle.

    The network finds eyes, brows and ears well, but not whose side they are on: in mirrored photos it swaps them.
    """
    viewers_left, viewers_right = np.split(probabilities, [probabilities.shape[-1] // 2], axis=-1)
    for left, right in _SIDES:
        viewers_left[right] += viewers_left[left]
        viewers_left[left] = 0
        viewers_right[left] += viewers_right[right]
        viewers_right[right] = 0


def normalized(rgb: RgbImage) -> NDArray[np.float32]:
    """(H, W, 3) 8-bit to (1, 3, H, W) as the network was trained on."""
    scaled = (rgb.astype(np.float32) - _MEAN) / _STD
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None], dtype=np.float32)


def sample(rgb: RgbImage, photo_from_crop: NDArray[np.float64], side_px: int) -> RgbImage:
    """Cut a (side, side, 3) crop; what lies outside the photo is black. Averages where the crop is coarser."""
    corners = np.array([[0, 0, 1], [side_px, 0, 1], [0, side_px, 1], [side_px, side_px, 1]], dtype=np.float64)
    mapped = corners @ photo_from_crop.T
    reduce = max(1, int(np.hypot(*photo_from_crop[:, 0])))
    low = np.maximum(np.floor(mapped.min(axis=0)).astype(int) - reduce, 0)
    high = np.minimum(np.ceil(mapped.max(axis=0)).astype(int) + 2 * reduce, (rgb.shape[1], rgb.shape[0]))
    if (high <= low).any():
        return np.zeros((side_px, side_px, 3), dtype=np.uint8)
    part = rgb[low[1] : high[1], low[0] : high[0]]
    part_from_crop = photo_from_crop.copy()
    part_from_crop[:, 2] -= low
    part = reduced_by(part, reduce)
    part_from_crop /= reduce
    part_from_crop[:, 2] += 0.5 / reduce - 0.5
    crop = cv2.warpAffine(part, part_from_crop, (side_px, side_px), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    return np.asarray(crop, dtype=np.uint8)


def _probabilities(logits: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """(19, 64, 64) logits of a square to the (19, side, side) pixels of its raster: bilinear, then softmax.

    The network was trained with its grid stretched over the crop corner to corner, see `vision.bisenet.BiSeNet`.
    Two taps by indexing (a matrix product takes ten times as long where other processes use the CPUs: BLAS threads
    spin), and by bands of rows that stay in the cache.
    """
    cells = logits.shape[-1]
    crop_px = (np.arange(side) + 0.5) * INPUT_SIDE_PX / side - 0.5
    cell = np.clip(crop_px * (cells - 1) / (INPUT_SIDE_PX - 1), 0, cells - 1)
    first = np.minimum(cell.astype(int), cells - 2)
    share = (cell - first).astype(np.float32)
    below_zero = logits - logits.max(axis=0)  # softmax is blind to it, and nothing interpolated can overflow
    along_x = below_zero[..., first]
    along_x += share * (below_zero[..., first + 1] - along_x)
    rise = along_x[:, 1:] - along_x[:, :-1]
    pixels = np.empty((len(logits), side, side), dtype=np.float32)
    for start in range(0, side, _BAND):
        rows = slice(start, start + _BAND)
        band = along_x[:, first[rows]]
        band += share[rows, None] * rise[:, first[rows]]
        np.exp(band, out=band)
        np.divide(band, np.einsum("kij->ij", band), out=pixels[:, rows])  # twice as fast as sum(axis=0)
    return pixels


def _feather(side: int) -> NDArray[np.float32]:
    """(side, side): 1 in the middle, falling to 0 at the border."""
    ramp = np.clip((np.minimum(np.arange(side), np.arange(side)[::-1]) + 0.5) / (FEATHER * side), 0, 1)
    smooth: NDArray[np.float32] = (3 * ramp**2 - 2 * ramp**3).astype(np.float32)
    return smooth[:, None] * smooth
