"""Raster primitives of the annotated pictures: antialiased strokes, dots, plates and text on a photo.

Frame: pixels of the canvas, origin at its top left corner, x right, y down, pixel centres at whole numbers. Colours
are RGB. Every primitive touches only its own bounding rectangle, so that drawing costs little beside the encoding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from vision.types import Points, RgbImage

Colour = tuple[int, int, int]

FONT_FILE = "NotoSansCJKsc-Regular-subset.otf"
CANVAS: Colour = (30, 33, 38)
"""Where the canvas reaches beyond the photo."""
PLATE: Colour = (18, 20, 24)
HALO: Colour = (0, 0, 0)
HALO_ALPHA = 0.38
"""Dark rim of every stroke: light lines stay visible on light hair, skin and cloth."""

BASELINE = 0.93
LINE_HEIGHT = 1.2
"""Of the text size: where Latin descenders and Chinese glyphs both stay inside their line."""

_SUBPIXEL_BITS = 4


class Rect(NamedTuple):
    """Axis-parallel rectangle."""

    x: float
    y: float
    w: float
    h: float

    @property
    def right(self) -> float:
        """Right edge."""
        return self.x + self.w

    @property
    def bottom(self) -> float:
        """Lower edge."""
        return self.y + self.h

    def grown(self, by: float) -> Rect:
        """`by` wider on every side."""
        return Rect(self.x - by, self.y - by, self.w + 2 * by, self.h + 2 * by)

    def overlaps(self, other: Rect) -> bool:
        """Whether the two share an area."""
        across = self.x < other.right and other.x < self.right
        return across and self.y < other.bottom and other.y < self.bottom

    def holds(self, other: Rect) -> bool:
        """Whether `other` lies inside."""
        return self.x <= other.x and self.y <= other.y and other.right <= self.right and other.bottom <= self.bottom

    def union(self, other: Rect) -> Rect:
        """The smallest rectangle around both."""
        x, y = min(self.x, other.x), min(self.y, other.y)
        return Rect(x, y, max(self.right, other.right) - x, max(self.bottom, other.bottom) - y)

    def moved(self, scale: float, dx: float, dy: float) -> Rect:
        """Scaled about the origin, then shifted."""
        return Rect(self.x * scale + dx, self.y * scale + dy, self.w * scale, self.h * scale)


@dataclass(frozen=True, slots=True)
class Stroke:
    """A thin polyline."""

    points: Points
    colour: Colour
    width_px: float
    alpha: float = 1.0
    dash_px: tuple[float, float] | None = None
    """Lengths drawn and left out in turn."""
    halo: bool = True
    """Whether a dark rim keeps it visible on light ground."""


@dataclass(frozen=True, slots=True)
class Wash:
    """A polygon (N, 2), closed by itself, lightly tinted and hatched."""

    points: Points
    colour: Colour
    alpha: float
    hatch_px: float
    """Distance of the hatching's lines."""
    hatch_alpha: float


@dataclass(frozen=True, slots=True)
class Dot:
    """A filled disc with a dark rim."""

    centre: tuple[float, float]
    radius_px: float
    colour: Colour


@dataclass(frozen=True, slots=True)
class Plate:
    """A translucent dark rectangle with rounded corners, under text."""

    rect: Rect
    radius_px: float
    alpha: float


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text; `rect` is `LINE_HEIGHT` times `size_px` high and as wide as the text."""

    text: str
    rect: Rect
    size_px: float
    colour: Colour


Mark = Stroke | Wash | Dot | Plate | Text


@dataclass(frozen=True, slots=True)
class Picture:
    """What is to be drawn. Washes and plates are painted first, then all halos of strokes, strokes, and what stands on
    them; each kind in order."""

    width_px: int
    height_px: int
    photo: Rect
    """Where the photo lies on the canvas."""
    marks: tuple[Mark, ...]


def moved(mark: Mark, scale: float, dx: float, dy: float) -> Mark:
    """The mark scaled about the origin, then shifted."""
    match mark:
        case Stroke():
            dash = mark.dash_px and (mark.dash_px[0] * scale, mark.dash_px[1] * scale)
            return replace(mark, points=mark.points * scale + (dx, dy), width_px=mark.width_px * scale, dash_px=dash)
        case Wash():
            return replace(mark, points=mark.points * scale + (dx, dy), hatch_px=mark.hatch_px * scale)
        case Dot():
            x, y = mark.centre
            return replace(mark, centre=(x * scale + dx, y * scale + dy), radius_px=mark.radius_px * scale)
        case Plate():
            return replace(mark, rect=mark.rect.moved(scale, dx, dy), radius_px=mark.radius_px * scale)
        case Text():
            return replace(mark, rect=mark.rect.moved(scale, dx, dy), size_px=mark.size_px * scale)


@lru_cache(maxsize=64)
def _font(size_px: float) -> ImageFont.FreeTypeFont:
    data = (files("vision") / "fonts" / FONT_FILE).read_bytes()
    # The basic layout engine is part of every Pillow: the same bytes on every machine.
    return ImageFont.truetype(BytesIO(data), size_px, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(maxsize=512)
def text_width(text: str) -> float:
    """Width of `text` set in 1 px; proportional to the size."""
    return _font(200.0).getlength(text) / 200.0


def render(rgb: RgbImage, picture: Picture) -> RgbImage:
    """Paint `picture` over the photo `rgb` (H, W, 3); returns the canvas (height, width, 3)."""
    canvas = _canvas(rgb, picture)
    for mark in picture.marks:
        if isinstance(mark, Wash):
            _wash(canvas, mark)
    for mark in picture.marks:
        if isinstance(mark, Plate):
            _plate(canvas, mark)
    strokes = [mark for mark in picture.marks if isinstance(mark, Stroke)]
    for stroke in strokes:
        if stroke.halo:
            rim_px = max(1.0, stroke.width_px / 2)
            _stroke(canvas, stroke, HALO, stroke.width_px + 2 * rim_px, stroke.alpha * HALO_ALPHA)
    for stroke in strokes:
        _stroke(canvas, stroke, stroke.colour, stroke.width_px, stroke.alpha)
    for mark in picture.marks:
        match mark:
            case Dot():
                _dot(canvas, mark)
            case Text():
                _text(canvas, mark)
            case _:
                pass
    return canvas


def _canvas(rgb: RgbImage, picture: Picture) -> RgbImage:
    x, y, width, height = (round(value) for value in picture.photo)
    if (width, height) != (rgb.shape[1], rgb.shape[0]):
        rgb = np.asarray(cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)
    if (width, height) == (picture.width_px, picture.height_px):
        return rgb.copy()
    canvas = np.full((picture.height_px, picture.width_px, 3), CANVAS, dtype=np.uint8)
    canvas[y : y + height, x : x + width] = rgb
    return canvas


def _blend(
    canvas: NDArray[np.uint8], mask: NDArray[np.uint8], place: tuple[int, int], colour: Colour, alpha: float
) -> None:
    """Lay `colour` over the canvas where `mask` (h, w; 255 = fully) says; `place` is that of its top left corner."""
    left, top = place
    height, width = canvas.shape[:2]
    x0, y0 = max(0, left), max(0, top)
    x1, y1 = min(width, left + mask.shape[1]), min(height, top + mask.shape[0])
    if x0 >= x1 or y0 >= y1:
        return
    part = mask[y0 - top : y1 - top, x0 - left : x1 - left]
    ground = canvas[y0:y1, x0:x1]
    # In OpenCV's 8-bit arithmetic: seven times as fast as float arrays, and exact where the mask is 0.
    weight = cv2.cvtColor(cv2.convertScaleAbs(part, alpha=alpha), cv2.COLOR_GRAY2RGB)
    paint = cv2.multiply(weight, (*colour, 0), scale=1 / 255)
    cv2.add(cv2.multiply(ground, cv2.bitwise_not(weight), scale=1 / 255), paint, dst=ground)


def _stroke(canvas: NDArray[np.uint8], stroke: Stroke, colour: Colour, width_px: float, alpha: float) -> None:
    points = np.asarray(stroke.points, dtype=np.float64)
    reach = int(np.ceil(width_px)) + 2
    left, top = (int(value) for value in np.floor(points.min(axis=0)) - reach)
    right, bottom = (int(value) for value in np.ceil(points.max(axis=0)) + reach)
    mask = np.zeros((bottom - top + 1, right - left + 1), dtype=np.uint8)
    lines = [points] if stroke.dash_px is None else dashes(points, *stroke.dash_px)
    scaled = [np.rint((line - (left, top)) * (1 << _SUBPIXEL_BITS)).astype(np.int32)[:, None] for line in lines]
    pen = {"thickness": max(1, round(width_px)), "lineType": cv2.LINE_AA, "shift": _SUBPIXEL_BITS}
    cv2.polylines(mask, scaled, isClosed=False, color=255, **pen)
    _blend(canvas, mask, (left, top), colour, alpha)


def _wash(canvas: NDArray[np.uint8], wash: Wash) -> None:
    left, top = (int(value) for value in np.floor(wash.points.min(axis=0)) - 1)
    right, bottom = (int(value) for value in np.ceil(wash.points.max(axis=0)) + 1)
    width, height = right - left + 1, bottom - top + 1
    inside = np.zeros((height, width), dtype=np.uint8)
    corners = np.rint((wash.points - (left, top)) * (1 << _SUBPIXEL_BITS)).astype(np.int32)
    cv2.fillPoly(inside, [corners], 255, cv2.LINE_AA, _SUBPIXEL_BITS)
    hatch = np.zeros_like(inside)
    step = max(3, round(wash.hatch_px))
    # Multiples of the step on the canvas: the hatching of neighbouring regions is one pattern.
    first = -(-(left + top) // step) * step - left - top
    for offset in range(first, width + height, step):
        cv2.line(hatch, (offset, 0), (offset - height, height), 255, max(1, step // 10), cv2.LINE_AA)
    _blend(canvas, inside, (left, top), wash.colour, wash.alpha)
    _blend(canvas, np.minimum(inside, hatch), (left, top), wash.colour, wash.hatch_alpha)


def dashes(points: Points, on_px: float, off_px: float) -> list[Points]:
    """The pieces of a polyline (N, 2) that a dashed pen draws."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    pieces = []
    for start in np.arange(0.0, along[-1], on_px + off_px):
        end = min(start + on_px, along[-1])
        inner = points[(along > start) & (along < end)]
        ends = [[np.interp(at, along, points[:, axis]) for axis in (0, 1)] for at in (start, end)]
        pieces.append(np.vstack([ends[0], inner, ends[1]]))
    return pieces


def _dot(canvas: NDArray[np.uint8], dot: Dot) -> None:
    reach = int(np.ceil(dot.radius_px * 1.5)) + 2
    left, top = int(dot.centre[0]) - reach, int(dot.centre[1]) - reach
    centre = tuple(
        round((value - low) * (1 << _SUBPIXEL_BITS)) for value, low in zip(dot.centre, (left, top), strict=True)
    )
    for radius, colour, alpha in ((dot.radius_px * 1.4, HALO, 0.55), (dot.radius_px, dot.colour, 1.0)):
        mask = np.zeros((2 * reach + 2, 2 * reach + 2), dtype=np.uint8)
        cv2.circle(mask, centre, round(radius * (1 << _SUBPIXEL_BITS)), 255, -1, cv2.LINE_AA, _SUBPIXEL_BITS)
        _blend(canvas, mask, (left, top), colour, alpha)


def _plate(canvas: NDArray[np.uint8], plate: Plate) -> None:
    left, top = round(plate.rect.x), round(plate.rect.y)
    width, height = round(plate.rect.right) - left, round(plate.rect.bottom) - top
    radius = min(round(plate.radius_px), width // 2, height // 2)
    mask = np.zeros((height, width), dtype=np.uint8)
    if radius <= 0:
        mask[:] = 255
    else:
        cv2.rectangle(mask, (radius, 0), (width - 1 - radius, height - 1), 255, -1)
        cv2.rectangle(mask, (0, radius), (width - 1, height - 1 - radius), 255, -1)
        for x in (radius, width - 1 - radius):
            for y in (radius, height - 1 - radius):
                cv2.circle(mask, (x, y), radius, 255, -1, cv2.LINE_AA)
    _blend(canvas, mask, (left, top), PLATE, plate.alpha)


def _text(canvas: NDArray[np.uint8], text: Text) -> None:
    font = _font(text.size_px)
    left, top = int(np.floor(text.rect.x)), int(np.floor(text.rect.y))
    # Set letters step in whole pixels: a long line comes out somewhat wider or narrower than `text_width` says.
    right = max(text.rect.right, text.rect.x + font.getlength(text.text))
    image = Image.new("L", (int(np.ceil(right)) - left + 2, int(np.ceil(text.rect.bottom)) - top + 2))
    origin = (text.rect.x - left, text.rect.y - top + BASELINE * text.size_px)
    ImageDraw.Draw(image).text(origin, text.text, fill=255, font=font, anchor="ls")
    _blend(canvas, np.asarray(image), (left, top), text.colour, 1.0)
