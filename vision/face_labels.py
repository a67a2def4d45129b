"""What an annotated picture says of a face: its labels, and the points of the photo they speak of.

Frame: layout pixels of `vision.sheet`. Left and right are the subject's, but for `Side`, which is the viewer's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vision import labels
from vision.drawing import Colour
from vision.label_layout import FaceFrame
from vision.sheet import BLUE, SOFT, TEAL, WHITE, Label, Line, Sizes, bounds, wrapped
from vision.types import Facts, HairlineState, Lang, Points

Side = Literal["left", "right"]
"""Of the photo, as the viewer sees it."""

COURTS = ("thirds.upper", "thirds.middle", "thirds.lower")
FIFTHS = ("fifths.right_outer", "fifths.right_eye", "fifths.middle", "fifths.left_eye", "fifths.left_outer")
WIDTHS = ("face_width", "jaw_width")
FOREHEAD = ((labels.TEMPLE_RECESSION, "temple_recession"), (labels.BROW_TO_HAIRLINE, "brow_to_hairline"))
SIDES: tuple[tuple[labels.Words, str, Side], ...] = ((labels.RIGHT, "right", "left"), (labels.LEFT, "left", "right"))
"""The subject's side in words and in names, and where the photo shows it."""

NOSE_ROOT = 168
"""Landmark where the face axes have their origin; any point near the middle of the face would do."""


@dataclass(frozen=True, slots=True)
class Court:
    """The label of a court and the heights of its upper and lower end, along the face."""

    label: Label
    top_v: float
    bottom_v: float


@dataclass(frozen=True, slots=True)
class Remark:
    """A label beside the face and the points it speaks of: on one side of the photo, or alike on both."""

    label: Label
    anchors: dict[Side, NDArray[np.float64]]

    def anchor(self, side: Side) -> NDArray[np.float64]:
        """The point to lead to from a label on that side."""
        return self.anchors.get(side, next(iter(self.anchors.values())))


class FaceView:
    """The facts in layout pixels: `scale` of them to a pixel of the photo."""

    def __init__(self, facts: Facts, lang: Lang, scale: float) -> None:
        self.facts = facts
        self.lang = lang
        self.scale = scale
        self.width_px, self.height_px = facts.photo.width_px * scale, facts.photo.height_px * scale
        self.sizes = Sizes.of(self.width_px, self.height_px)
        mesh = self.place(facts.landmarks.points)
        seen = [(p.x_px, p.y_px) for p in facts.hairline.points if p.state is HairlineState.OBSERVED]
        self.face = bounds(np.vstack([mesh, *(self.place(point) for point in seen)]))
        self.frame = FaceFrame(mesh[NOSE_ROOT], facts.landmarks.pose.roll_deg)
        across = self.frame.uv(mesh)[:, 0]
        self.left_u, self.right_u = float(across.min()), float(across.max())
        self.face_width_px = self.right_u - self.left_u

    @property
    def has_mm(self) -> bool:
        """Whether lengths are known; without, what has no ratio has no label, and no lines either."""
        return self.facts.scale.mm_per_px is not None

    def place(self, points: ArrayLike) -> Points:
        """Photo pixels to layout pixels."""
        return (np.asarray(points, dtype=np.float64) + 0.5) * self.scale - 0.5

    def lines_of(self, *names: str) -> Iterator[Points]:
        """The drawn lines (N, 2) of those quantities that have one."""
        for name in names:
            line = self.facts.measurements[name].line
            if len(line) > 1:
                yield self.place(line)

    def tells(self, name: str) -> bool:
        """Whether a quantity differs from nothing on either side: a recession of 0.3 mm is none."""
        sides = [self.facts.measurements[f"{name}.{side}"].interval_mm for side in ("left", "right")]
        return any(side is not None and side.low > 0 for side in sides)

    def courts(self) -> list[Court]:
        """Those courts that were measured."""
        found = []
        for name in COURTS:
            quantity = self.facts.measurements[name]
            for line in self.lines_of(name):
                head = labels.MEASUREMENT[name](self.lang)
                if quantity.ratio is not None:
                    head += f" {labels.share(quantity.ratio)}"
                value = [] if quantity.mm is None else [Line(labels.mm(quantity.mm), self.sizes.text, WHITE)]
                down = self.frame.uv(line)[:, 1]
                found.append(Court(self._label(head, SOFT, value), float(down.min()), float(down.max())))
        return found

    def remarks(self) -> list[Remark]:
        """Temples and brows, face and jaw width, as far as they were measured in mm."""
        found = []
        size = 1.08 * self.sizes.small
        for words, name in FOREHEAD:
            values: list[Line] = []
            anchors: dict[Side, NDArray[np.float64]] = {}
            for prefix, side, at in SIDES:
                quantity = self.facts.measurements[f"{name}.{side}"]
                for line in self.lines_of(f"{name}.{side}"):
                    if quantity.mm is not None:
                        values.append(Line(f"{prefix(self.lang)} {labels.mm(quantity.mm)}", size, WHITE))
                        anchors[at] = line.mean(axis=0)
            if self.tells(name):
                found.append(Remark(self._label(words(self.lang), TEAL, values), anchors))
        for name in WIDTHS:
            quantity = self.facts.measurements[name]
            for line in self.lines_of(name):
                if quantity.mm is not None:
                    value = Line(labels.mm(quantity.mm), size, WHITE)
                    ends = line[line[:, 0].argsort()]
                    label = self._label(labels.MEASUREMENT[name](self.lang), BLUE, [value])
                    found.append(Remark(label, {"left": ends[0], "right": ends[-1]}))
        return found

    def fifths(self) -> tuple[Points, list[Label]] | None:
        """Six boundaries (u, v) in face axes from the viewer's left, a title and five labels; None unless complete."""
        eyes = list(self.lines_of(*FIFTHS))
        if len(eyes) < len(FIFTHS):
            return None
        # Neighbours share an end: ten ends in a row are six boundaries.
        ends = np.array(sorted(self.frame.uv(np.vstack(eyes)).tolist()))
        boundaries = np.vstack([ends[:1], (ends[1:-1:2] + ends[2:-1:2]) / 2, ends[-1:]])
        fine = 0.9 * self.sizes.small
        head = labels.FIFTHS(self.lang) + (" mm" if self.has_mm else "")
        texts = [(Line(head, fine, SOFT), Line(labels.EYE_UNIT(self.lang), fine, SOFT))]
        for name in FIFTHS:
            quantity = self.facts.measurements[name]
            value = () if quantity.mm is None else (Line(labels.bare_mm(quantity.mm), 0.95 * self.sizes.text, WHITE),)
            ratio = () if quantity.ratio is None else (Line(labels.times(quantity.ratio), fine, SOFT),)
            texts.append((*value, *ratio))
        return boundaries, [Label(lines, self.sizes.pad) for lines in texts if lines]

    def _label(self, name: str, colour: Colour, values: Sequence[Line]) -> Label:
        """A name over values; broken into lines where it is much wider than they are."""
        width = 1.3 * max((value.width_px for value in values), default=np.inf)
        return Label((*wrapped(name, self.sizes.small, colour, width), *values), self.sizes.pad)
