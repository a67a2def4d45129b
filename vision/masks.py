"""Masks of the parts of head and face, as pictures of the photo's size, with their areas.

The hair's border is that of `vision.hair_mask`; all other borders are the parser's, made smooth. Every other part is
what lies under the hair, as far as the hair lets it be seen: where hair and skin meet, their masks add up to one.

The same drawing is done twice: on the pixels of the answer's picture, and on the parsing's raster, where the areas are
taken, so that they do not depend on the size of the picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vision.calls import FaceMask, FacePart, MaskOptions
from vision.hair_mask import Floats, border_distance, hair_matte, in_picture
from vision.head import GLABELLA, Array, photo_axes
from vision.parsing import RASTER_PX, sample
from vision.png import encode_png
from vision.scale import Z95
from vision.types import FaceLandmarks, Facts, HairlineState, Interval, Label, ParsingMap, Points, RgbImage

_LABELS: Mapping[FacePart, tuple[int, ...]] = {
    FacePart.SKIN: (Label.SKIN, Label.NOSE),
    FacePart.FOREHEAD: (Label.SKIN,),
    FacePart.BROWS: (Label.LEFT_BROW, Label.RIGHT_BROW),
    FacePart.EYES: (Label.LEFT_EYE, Label.RIGHT_EYE),
    FacePart.NOSE: (Label.NOSE,),
    FacePart.LIPS: (Label.UPPER_LIP, Label.LOWER_LIP),
    FacePart.EARS: (Label.LEFT_EAR, Label.RIGHT_EAR),
    FacePart.NECK: (Label.NECK,),
}
"""What each part but the hair is made of. The parser's skin has a hole where the nose is."""

_UPPER_BROWS = (70, 63, 105, 66, 107, 336, 296, 334, 293, 300)
"""Points of the mesh along the upper margin of the brows, from the subject's right temple to the left one."""
_SUBNASALE, _TOP = 2, 10
_UPPER_OUTLINE = (21, 54, 103, 67, 109, 10, 338, 297, 332, 284, 251)
"""Points of the mesh from the right temple, at the height of the brows, over the forehead to the left one."""
_OPEN_DEG = 6.0
"""Where no hairline is observed within so many degrees, as seen from the glabella, the forehead goes on as far as skin
is seen, but not beyond `USUAL_HEIGHT`: on a shaved head that would be the whole skull."""
USUAL_HEIGHT = 1.0
"""Where a hairline usually lies above the glabella, in heights of the middle court, glabella to subnasale: the thirds
are alike."""
BORDER_SD: Mapping[FacePart, float] = {FacePart.HAIR: 0.008}
BORDER_SD_OF_OTHERS = 0.004
"""How far a part's border may lie off all along, one standard deviation, in mesh heights. Of hair: what makes the areas
within the outlines of `bench.portraits.hair_outlines` differ (root mean square over 25). Of the others: the scatter of
the parser's border at nineteen marked hairlines."""
_EYES = (
    (Label.RIGHT_EYE, (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246)),
    (Label.LEFT_EYE, (263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466)),
)
"""The mesh's outline of each eye. Behind glasses the parser sees glasses alone."""
_ROWS = 512
_SUBPIXEL_BITS = 4


@dataclass(frozen=True, slots=True)
class _Grid:
    """Pixels on which masks are drawn."""

    rgb: RgbImage
    """(H, W, 3), the photo as it looks there."""
    from_map: NDArray[np.float64]
    """(2, 3): pixel of the parsing's raster to pixel of this grid."""
    from_photo: NDArray[np.float64]
    """(2, 3): pixel of the photo to pixel of this grid."""

    def rows(self, start: int, stop: int) -> _Grid:
        """A band of it."""
        up = np.array([[0, 0, 0], [0, 0, start]])
        return _Grid(self.rgb[start:stop], self.from_map - up, self.from_photo - up)


class _Parts:
    """What is known of the parts, ready to be drawn on any grid."""

    def __init__(self, facts: Facts) -> None:
        self._hair = hair_matte(facts.photo.rgb, facts.parsing)
        self._under_hair = _under_hair(facts.parsing, facts.landmarks)
        self._forehead = _forehead(facts)

    def draw(self, parts: tuple[FacePart, ...], grid: _Grid) -> list[Floats]:
        """(H, W), 0 to 1, for each of the parts."""
        hair = self._hair.on(grid.rgb, grid.from_map)
        return [hair if part is FacePart.HAIR else self._other(part, grid) * (1 - hair) for part in parts]

    def _other(self, part: FacePart, grid: _Grid) -> Floats:
        mask = _smooth(np.isin(self._under_hair, _LABELS[part]), grid)
        return mask * _filled(self._forehead, grid) if part is FacePart.FOREHEAD else mask


def make_masks(facts: Facts, options: MaskOptions) -> tuple[FaceMask, ...]:
    """The masks in the order asked for; black, with no area, where there is nothing of a part."""
    parts = options.parts or tuple(FacePart)
    drawn = _Parts(facts)
    on_raster = drawn.draw(parts, _raster_grid(facts))
    return tuple(
        _face_mask(facts, part, pixels, mask)
        for part, pixels, mask in zip(parts, _pictures(facts, drawn, parts, options), on_raster, strict=True)
    )


def _face_mask(facts: Facts, part: FacePart, pixels: NDArray[np.uint8], on_raster: Floats) -> FaceMask:
    """With areas from the mask that was drawn on the raster; what lies beyond the photo does not count."""
    to_photo = facts.parsing.photo_from_map
    px2 = float(abs(np.linalg.det(to_photo[:, :2])))
    inside = in_picture(to_photo, len(on_raster), facts.photo.rgb)
    area_px2 = px2 * float((on_raster * inside).sum(dtype=np.float64))
    mm = facts.scale.mm_per_px
    if mm is None:
        return FaceMask(part, encode_png(pixels), area_px2, None, None)
    border = _border_length(on_raster, inside) * RASTER_PX * BORDER_SD.get(part, BORDER_SD_OF_OTHERS)
    half_width = float(
        np.hypot(2 * facts.scale.causes.total_pct / 100 * area_px2, Z95 * px2 * border)  # a scale counts twice
    )
    interval = Interval(max(0.0, area_px2 - half_width) * mm**2, (area_px2 + half_width) * mm**2)
    return FaceMask(part, encode_png(pixels), area_px2, area_px2 * mm**2, interval)


def _border_length(mask: Floats, inside: Floats) -> float:
    """In pixels of the raster, of a mask (h, w) where it lies in the photo; without single strands."""
    down, right = np.gradient(cv2.GaussianBlur(mask, (0, 0), 1))
    return float((np.hypot(down, right) * inside).sum(dtype=np.float64))


def _pictures(
    facts: Facts, drawn: _Parts, parts: tuple[FacePart, ...], options: MaskOptions
) -> list[NDArray[np.uint8]]:
    """(H, W) each, drawn by bands of rows: a photo of 40 MP would take gigabytes at once."""
    grid = _picture_grid(facts, options.max_output_side_px)
    pictures = [np.empty(grid.rgb.shape[:2], dtype=np.uint8) for _ in parts]
    for start in range(0, len(grid.rgb), _ROWS):
        band = slice(start, start + _ROWS)
        for picture, mask in zip(pictures, drawn.draw(parts, grid.rows(start, start + _ROWS)), strict=True):
            picture[band] = np.rint(255 * mask)
    return pictures


def _picture_grid(facts: Facts, max_side_px: int) -> _Grid:
    """The photo, or smaller."""
    rgb = facts.photo.rgb
    shrink = min(1.0, max_side_px / max(rgb.shape[:2]))
    height, width = (max(1, round(side * shrink)) for side in rgb.shape[:2])
    if shrink < 1:
        rgb = np.asarray(cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)
    scale = np.array([width / facts.photo.width_px, height / facts.photo.height_px])
    from_photo = np.column_stack([np.diag(scale), (scale - 1) / 2])
    return _Grid(rgb, _chained(from_photo, facts.parsing.photo_from_map), from_photo)


def _raster_grid(facts: Facts) -> _Grid:
    """The parsing's own raster."""
    parsing = facts.parsing
    rgb = sample(facts.photo.rgb, parsing.photo_from_map, parsing.probabilities.shape[-1])
    return _Grid(rgb, np.eye(2, 3), parsing.map_from_photo)


def _chained(second: NDArray[np.float64], first: NDArray[np.float64]) -> NDArray[np.float64]:
    """(2, 3): `second` of what `first` gives."""
    both: NDArray[np.float64] = second[:, :2] @ first
    both[:, 2] += second[:, 2]
    return both


def _under_hair(parsing: ParsingMap, landmarks: FaceLandmarks) -> NDArray[np.uint8]:
    """(h, w), most probable class but hair; eyes behind glasses are eyes."""
    below = parsing.probabilities[: Label.HAIR]
    labels = below.argmax(axis=0).astype(np.uint8)
    labels[parsing.probabilities[Label.HAT] > below.max(axis=0)] = Label.HAT
    glasses = labels == Label.EYEGLASSES
    in_map = landmarks.points @ parsing.map_from_photo[:, :2].T + parsing.map_from_photo[:, 2]
    for label, outline in _EYES:
        eye = cv2.fillPoly(np.zeros_like(labels), [np.rint(in_map[list(outline)]).astype(np.int32)], 1)
        labels[glasses & (eye > 0)] = label
    return np.asarray(labels, dtype=np.uint8)


def _smooth(inside: NDArray[np.bool_], grid: _Grid) -> Floats:
    """(H, W), 0 to 1: a region of the raster, its border as wide as a pixel of the raster or of the grid."""
    if not inside.any():
        return np.zeros(grid.rgb.shape[:2], dtype=np.float32)
    size = grid.rgb.shape[1::-1]
    distance_px = cv2.warpAffine(
        border_distance(inside) * RASTER_PX,
        grid.from_map,
        size,
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=(-RASTER_PX,),
    )
    steepness = min(1.0, float(np.sqrt(abs(np.linalg.det(grid.from_map[:, :2])))))
    return np.asarray(np.clip(0.5 + steepness * distance_px, 0, 1), dtype=np.float32)


def _forehead(facts: Facts) -> Points:
    """(N, 2): a polygon in the photo between brows, temples and hairline; where none is observed, up to the
    usual height of one."""
    mesh = facts.landmarks.points
    lateral, down = photo_axes(facts.landmarks)
    axes = np.column_stack([lateral, -down])

    def polar(places: Points) -> tuple[Array, Array]:
        across, up = ((places - mesh[GLABELLA]) @ axes).T
        return np.degrees(np.arctan2(across, up)), np.hypot(across, up)

    points = [(point.x_px, point.y_px) for point in facts.hairline.points if point.state is HairlineState.OBSERVED]
    hairline = np.array(points).reshape(-1, 2)
    angle_deg, radius = _usual_hairline(*polar(mesh[list(_UPPER_OUTLINE)]), mesh)
    apart = np.abs(angle_deg[:, None] - polar(hairline)[0])
    angle = np.radians(angle_deg)
    usual = mesh[GLABELLA] + radius[:, None] * (np.column_stack([np.sin(angle), np.cos(angle)]) @ axes.T)
    upper = np.vstack([hairline, usual[(apart > _OPEN_DEG).all(axis=1)]])
    return np.vstack([upper[np.argsort(polar(upper)[0])], mesh[list(_UPPER_BROWS[::-1])]])


def _usual_hairline(angle_deg: Array, radius: Array, mesh: Points) -> tuple[Array, Array]:
    """(41,) each, seen from the glabella: the mesh's upper outline made smooth, moved up to `USUAL_HEIGHT` in the
    middle and left where it is at the temples."""
    smooth = np.polynomial.Polynomial.fit(angle_deg, radius, 4)
    rays = np.linspace(angle_deg.min(), angle_deg.max(), 41)
    court = float(np.linalg.norm(mesh[_SUBNASALE] - mesh[GLABELLA]))
    growth = max(0.0, USUAL_HEIGHT * court / float(np.linalg.norm(mesh[_TOP] - mesh[GLABELLA])) - 1)
    return rays, smooth(rays) * (1 + growth * np.maximum(0, np.cos(np.radians(rays))))


def _filled(polygon: Points, grid: _Grid) -> Floats:
    """(H, W), 0 to 1: a polygon of the photo, antialiased."""
    corners = polygon @ grid.from_photo[:, :2].T + grid.from_photo[:, 2]
    canvas = np.zeros(grid.rgb.shape[:2], dtype=np.uint8)
    fixed = np.rint(corners * 2**_SUBPIXEL_BITS).astype(np.int32)
    cv2.fillPoly(canvas, [fixed], 255, lineType=cv2.LINE_AA, shift=_SUBPIXEL_BITS)
    return np.divide(canvas, 255, dtype=np.float32)
