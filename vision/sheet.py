"""The sheet that labels and lines are laid out on, before anything is painted.

Frame: layout pixels, that is pixels of the photo after it was reduced to the longest allowed side; origin at the
photo's top left corner. The sheet grows beyond the photo where the labels need room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vision.drawing import LINE_HEIGHT, Colour, Dot, Mark, Picture, Plate, Rect, Stroke, Text, moved, text_width
from vision.types import Points

WHITE: Colour = (255, 255, 255)
SOFT: Colour = (220, 226, 231)
TEAL: Colour = (94, 234, 212)
BLUE: Colour = (182, 214, 255)
AMBER: Colour = (255, 205, 110)

PLATE_ALPHA = 0.6
"""Dark enough for text on a white wall: 4.5 : 1 for white, 3 : 1 for every colour."""

Align = Literal["left", "centre", "right"]


class Sizes(NamedTuple):
    """Sizes in layout pixels, all from the photo's size."""

    text: float
    small: float
    pad: float
    gap: float
    margin: float
    line: float
    fine: float

    @classmethod
    def of(cls, width_px: float, height_px: float) -> Sizes:
        """17 px of text on a photo of 250 px, 26 on 900, 41 on 2048: legible at half the picture's size."""
        text = 14 + 0.013 * float(np.sqrt(width_px * height_px))
        return cls(
            text=text,
            small=0.82 * text,
            pad=0.28 * text,
            gap=0.22 * text,
            margin=0.5 * text,
            line=max(1.0, text / 19),
            fine=max(1.0, text / 30),
        )


class Line(NamedTuple):
    """One line of a label."""

    text: str
    size_px: float
    colour: Colour

    @property
    def width_px(self) -> float:
        """Width of the set text."""
        return text_width(self.text) * self.size_px


def wrapped(text: str, size_px: float, colour: Colour, width_px: float) -> list[Line]:
    """`text` broken at its spaces so that no line is wider than `width_px`, where its words allow."""
    lines: list[Line] = []
    for word in text.split(" "):
        longer = Line(f"{lines[-1].text} {word}" if lines else word, size_px, colour)
        if lines and longer.width_px <= width_px:
            lines[-1] = longer
        else:
            lines.append(Line(word, size_px, colour))
    return lines


@dataclass(frozen=True, slots=True)
class Label:
    """Lines of text that stand together on one plate."""

    lines: tuple[Line, ...]
    pad_px: float

    @property
    def width_px(self) -> float:
        """Of the plate."""
        return max(line.width_px for line in self.lines) + 2 * self.pad_px

    @property
    def height_px(self) -> float:
        """Of the plate."""
        return sum(line.size_px for line in self.lines) * LINE_HEIGHT + 2 * self.pad_px


def bounds(points: NDArray[np.float64]) -> Rect:
    """The smallest rectangle around points (N, 2)."""
    (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
    return Rect(float(x0), float(y0), float(x1 - x0), float(y1 - y0))


@dataclass(slots=True)
class Sheet:
    """What was laid out so far."""

    width_px: float
    height_px: float
    """Of the photo."""
    sizes: Sizes
    marks: list[Mark] = field(default_factory=list)
    plates: list[Rect] = field(default_factory=list)
    """Of the labels: none may lie on another."""
    rulers: list[NDArray[np.float64]] = field(default_factory=list)
    """Lines (2, 2) on which no label should lie."""

    def stroke(
        self,
        points: ArrayLike,
        colour: Colour,
        width_px: float,
        *,
        alpha: float = 1.0,
        dash_px: tuple[float, float] | None = None,
        halo: bool = True,
    ) -> None:
        """Add a polyline (N, 2)."""
        line: Points = np.asarray(points, dtype=np.float64)
        self.marks.append(Stroke(line, colour, width_px, alpha, dash_px, halo))

    def dot(self, centre: Sequence[float] | NDArray[np.float64], radius_px: float, colour: Colour) -> None:
        """Add a disc."""
        self.marks.append(Dot((float(centre[0]), float(centre[1])), radius_px, colour))

    def label(self, label: Label, plate: Rect, align: Align) -> None:
        """Set `label` on a plate of its size."""
        self.marks.append(Plate(plate, 1.6 * label.pad_px, PLATE_ALPHA))
        self.plates.append(plate)
        y = plate.y + label.pad_px
        for line in label.lines:
            spare = plate.w - 2 * label.pad_px - line.width_px
            x = plate.x + label.pad_px + {"left": 0.0, "centre": spare / 2, "right": spare}[align]
            self.text(line, x, y)
            y += line.size_px * LINE_HEIGHT

    def text(self, line: Line, x: float, y: float) -> None:
        """Set one line without a plate; (x, y) is its top left corner."""
        rect = Rect(x, y, line.width_px, line.size_px * LINE_HEIGHT)
        self.marks.append(Text(line.text, rect, line.size_px, line.colour))

    @property
    def area(self) -> Rect:
        """The photo with all labels and rulers, and a margin around those that reach beyond it."""
        photo = Rect(0.0, 0.0, self.width_px, self.height_px)
        around = [plate.grown(self.sizes.margin) for plate in self.plates]
        around += [bounds(ruler).grown(self.sizes.margin) for ruler in self.rulers]
        return reduce(Rect.union, (rect for rect in around if not photo.holds(rect.grown(-self.sizes.margin))), photo)

    def picture(self, area: Rect, max_side_px: int) -> Picture:
        """The sheet's `area` as a canvas of at most `max_side_px`; never enlarged."""
        scale = min(1.0, max_side_px / max(area.w, area.h))
        width, height = (min(max_side_px, round(side * scale)) for side in (area.w, area.h))
        x, y = round(-area.x * scale), round(-area.y * scale)
        photo = Rect(x, y, min(width - x, round(self.width_px * scale)), min(height - y, round(self.height_px * scale)))
        return Picture(width, height, photo, tuple(moved(mark, scale, x, y) for mark in self.marks))
