"""The annotated picture: three courts and five eyes with rulers, hairline, widths, scale and notes on the photo.

Lines lie on the face, words beside it. Labels go where the photo shows little; where it is framed so tightly that they
do not fit beside the face, the canvas grows beyond the photo on that side (and the whole is reduced to the allowed
size). Nothing is ever written over the face. What was not measured is not drawn; a note says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vision import labels
from vision.caption import caption
from vision.drawing import Picture, Rect, encode, render
from vision.label_layout import Detail, FaceFrame, crosses, spread
from vision.sheet import BLUE, SOFT, TEAL, WHITE, Label, Line, Sheet, Sizes, bounds
from vision.types import EncodedImage, Facts, HairlinePoint, HairlineState, Lang, Measurement, Points

NOSE_ROOT = 168
"""Landmark where the face axes have their origin; any point near the middle of the face would do."""

EAR_WIDTHS = 0.14
"""Labels keep this share of the face's width away from the mesh's outline where they can: ears lie there."""

Side = Literal["left", "right"]
"""Of the photo, as the viewer sees it."""


def annotate(facts: Facts, lang: Lang, max_side_px: int) -> EncodedImage:
    """Draw `facts` on their photo: a PNG without metadata, long side at most `max_side_px`, never enlarged."""
    return encode(render(facts.photo.rgb, plan(facts, lang, max_side_px)))


def plan(facts: Facts, lang: Lang, max_side_px: int) -> Picture:
    """All that `annotate` paints, in place."""
    return _Plan(facts, lang, max_side_px).picture()


@dataclass(frozen=True, slots=True)
class _Court:
    label: Label
    top_v: float
    bottom_v: float


@dataclass(frozen=True, slots=True)
class _Remark:
    """A label beside the face and the point it speaks of, on either side of the face."""

    label: Label
    anchors: dict[Side, NDArray[np.float64]]


class _Plan:
    def __init__(self, facts: Facts, lang: Lang, max_side_px: int) -> None:
        self.facts = facts
        self.lang = lang
        self.max_side_px = max_side_px
        photo = facts.photo
        self.scale = min(1.0, max_side_px / max(photo.width_px, photo.height_px))
        width, height = photo.width_px * self.scale, photo.height_px * self.scale
        self.sizes = Sizes.of(max(width, height))
        self.sheet = Sheet(width, height, self.sizes)

        mesh = self.place(facts.landmarks.points)
        seen = [point for point in facts.hairline.points if point.state is HairlineState.OBSERVED]
        self.face = bounds(np.vstack([mesh, *(self.place(_xy(point)) for point in seen)]))
        self.frame = FaceFrame(mesh[NOSE_ROOT], facts.landmarks.pose.roll_deg)
        across = self.frame.uv(mesh)[:, 0]
        self.left_u, self.right_u = float(across.min()), float(across.max())
        self.face_width = self.right_u - self.left_u

    def place(self, points: ArrayLike) -> Points:
        """Photo pixels to layout pixels."""
        return (np.asarray(points, dtype=np.float64) + 0.5) * self.scale - 0.5

    def picture(self) -> Picture:
        courts, remarks = self.courts(), self.remarks()
        courts_side, courts_x, remarks_x = self.columns(courts, remarks)
        self.draw_widths()
        self.draw_forehead()
        self.draw_courts(courts, courts_side, courts_x)
        self.draw_remarks(remarks, _opposite(courts_side), remarks_x)
        self.draw_fifths()
        self.draw_hairline()
        area = caption(self.sheet, self.facts, self.lang, self.scale)
        return self.sheet.picture(area, self.max_side_px)

    # What there is to say.

    def label(self, *lines: Line) -> Label:
        return Label(lines, self.sizes.pad)

    def lines_of(self, *names: str) -> Iterator[Points]:
        """The drawn lines (N, 2) of those quantities that have one."""
        for name in names:
            line = self.facts.measurements[name].line
            if len(line) > 1:
                yield self.place(line)

    def courts(self) -> list[_Court]:
        found = []
        for name in ("thirds.upper", "thirds.middle", "thirds.lower"):
            quantity = self.facts.measurements[name]
            for line in self.lines_of(name):
                head = labels.MEASUREMENT[name](self.lang)
                if quantity.ratio is not None:
                    head += f" {labels.share(quantity.ratio)}"
                lines = [Line(head, self.sizes.small, SOFT)]
                if quantity.mm is not None:
                    lines.append(Line(labels.mm(quantity.mm), self.sizes.text, WHITE))
                down = self.frame.uv(line)[:, 1]
                found.append(_Court(self.label(*lines), float(down.min()), float(down.max())))
        return found

    def remarks(self) -> list[_Remark]:
        found = []
        value_px = 1.08 * self.sizes.small
        for words, name in (
            (labels.TEMPLE_RECESSION, "temple_recession"),
            (labels.BROW_TO_HAIRLINE, "brow_to_hairline"),
        ):
            lines, anchors = [Line(words(self.lang), self.sizes.small, TEAL)], {}
            sides: tuple[tuple[labels.Words, str, Side], ...] = (
                (labels.RIGHT, "right", "left"),
                (labels.LEFT, "left", "right"),
            )
            for subject_side, suffix, viewer_side in sides:
                quantity = self.facts.measurements[f"{name}.{suffix}"]
                for line in self.lines_of(f"{name}.{suffix}"):
                    if quantity.mm is not None:
                        value = f"{subject_side(self.lang)} {labels.mm(quantity.mm)}"
                        lines.append(Line(value, value_px, WHITE))
                        anchors[viewer_side] = line.mean(axis=0)
            if anchors:
                found.append(_Remark(self.label(*lines), anchors))
        for name in ("face_width", "jaw_width"):
            quantity = self.facts.measurements[name]
            for line in self.lines_of(name):
                if quantity.mm is not None:
                    head = Line(labels.MEASUREMENT[name](self.lang), self.sizes.small, BLUE)
                    ends = line[line[:, 0].argsort()]
                    anchors = {"left": ends[0], "right": ends[-1]}
                    found.append(_Remark(self.label(head, Line(labels.mm(quantity.mm), value_px, WHITE)), anchors))
        return found

    # Where it goes.

    @property
    def ruler_gap(self) -> float:
        return 0.7 * self.sizes.text

    def columns(self, courts: Sequence[_Court], remarks: Sequence[_Remark]) -> tuple[Side, float, float]:
        """Side of the courts, and the x of either column's edge towards the face."""
        courts_width = self.ruler_gap + max((court.label.width_px for court in courts), default=0.0)
        remarks_width = self.sizes.text / 2 + max((remark.label.width_px for remark in remarks), default=0.0)
        detail = Detail(self.facts.photo.rgb, self.scale)
        # The courts' lines should rise towards their ruler, away from the five eyes below the chin.
        handicap: dict[Side, float] = {"right": 0.6 * self.frame.roll_deg, "left": 4.0 - 0.6 * self.frame.roll_deg}
        choices: list[tuple[float, Side, float, float]] = []
        for side, cost in handicap.items():
            courts_cost, courts_x = self.column(side, courts_width, detail)
            remarks_cost, remarks_x = self.column(_opposite(side), remarks_width, detail)
            choices.append((courts_cost + remarks_cost + cost, side, courts_x, remarks_x))
        _, side, courts_x, remarks_x = min(choices)
        return side, courts_x, remarks_x

    def column(self, side: Side, width: float, detail: Detail) -> tuple[float, float]:
        """(cost, x) of the best strip of that width beside the face; x is its edge towards the face.

        Cost in grey levels of detail: near the face is good, plain ground is good, the ear is not; beyond the photo
        only where nothing inside it fits.
        """
        best = (1000.0 + width, self.sheet.width_px + self.sizes.margin if side == "right" else -self.sizes.margin)
        offset = 0.4 * self.sizes.text
        while True:
            x = self.face.right + offset if side == "right" else self.face.x - offset
            left = x if side == "right" else x - width
            if left < self.sizes.margin or left + width > self.sheet.width_px - self.sizes.margin:
                return best
            distance = offset / self.face_width
            cost = detail.mean(Rect(left, self.face.y, width, self.face.h))
            cost += 60 * distance + 150 * max(0.0, EAR_WIDTHS - distance)
            best = min(best, (cost, x))
            offset += 0.4 * self.sizes.text

    def rows(self, found: Sequence[Label], wanted: Sequence[float]) -> list[float]:
        """Centres of the labels of a column."""
        return spread(wanted, [label.height_px for label in found], self.sizes.gap, self.sizes.margin)

    # Drawing.

    def draw_widths(self) -> None:
        """Face and jaw width: their ends alone, like the jaws of a calliper."""
        for line in self.lines_of("face_width", "jaw_width"):
            for end, other in ((line[0], line[-1]), (line[-1], line[0])):
                inward = (other - end) / np.linalg.norm(other - end)
                across = np.array([-inward[1], inward[0]]) * 0.3 * self.sizes.text
                self.sheet.stroke([end, end + inward * 0.09 * self.face_width], BLUE, self.sizes.fine, alpha=0.8)
                self.sheet.stroke([end - across, end + across], BLUE, self.sizes.fine, alpha=0.8)

    def draw_forehead(self) -> None:
        for line in self.lines_of("brow_to_hairline.right", "brow_to_hairline.left"):
            self.sheet.stroke(line, TEAL, self.sizes.fine, alpha=0.75)
        dotted = (0.18 * self.sizes.text, 0.2 * self.sizes.text)
        for line in self.lines_of("temple_recession.right", "temple_recession.left"):
            self.sheet.stroke(line, TEAL, self.sizes.fine, alpha=0.9, dash_px=dotted)

    def draw_courts(self, courts: Sequence[_Court], side: Side, x: float) -> None:
        if not courts:
            return
        outward = 1.0 if side == "right" else -1.0
        far_u = (self.left_u if side == "right" else self.right_u) - outward * 0.05 * self.face_width
        levels = {round(v, 1): v for court in courts for v in (court.top_v, court.bottom_v)}
        tick = np.array([0.35 * self.sizes.text, 0.0])
        at_ruler = {v: self.frame.along_u_to(v, x) for v in levels.values()}
        for v, end in at_ruler.items():
            line = np.array([self.frame.xy(far_u, v), end])
            self.sheet.stroke(line, WHITE, self.sizes.line, alpha=0.8)
            self.sheet.stroke(np.array([end, end + outward * tick]), WHITE, self.sizes.line, alpha=0.9)
            self.sheet.rulers.append(line)
        ends = np.array(list(at_ruler.values()))
        ruler = np.array([[x, ends[:, 1].min()], [x, ends[:, 1].max()]])
        self.sheet.stroke(ruler, WHITE, self.sizes.line, alpha=0.9)
        self.sheet.rulers.append(ruler)

        found = [court.label for court in courts]
        middles = [float(self.frame.along_u_to((court.top_v + court.bottom_v) / 2, x)[1]) for court in courts]
        for label, y in zip(found, self.rows(found, middles), strict=True):
            self.beside(label, side, x + outward * self.ruler_gap, y)

    def draw_remarks(self, remarks: Sequence[_Remark], side: Side, x: float) -> None:
        found = [remark.label for remark in remarks]
        anchors = [remark.anchors.get(side, next(iter(remark.anchors.values()))) for remark in remarks]
        rows = self.rows(found, [float(anchor[1]) for anchor in anchors])
        outward = 1.0 if side == "right" else -1.0
        for label, anchor, y in zip(found, anchors, rows, strict=True):
            edge = x + outward * self.sizes.text / 2
            self.beside(label, side, edge, y)
            self.sheet.stroke(np.array([(edge, y), anchor]), SOFT, self.sizes.fine, alpha=0.65)
            self.sheet.dot(anchor, 0.09 * self.sizes.text, SOFT)

    def beside(self, label: Label, side: Side, x: float, y: float) -> None:
        """Set a label with its edge towards the face at `x` and its middle at `y`."""
        left = x if side == "right" else x - label.width_px
        plate = Rect(left, y - label.height_px / 2, label.width_px, label.height_px)
        self.sheet.label(label, plate, "left" if side == "right" else "right")

    def draw_fifths(self) -> None:
        names = [f"fifths.{name}" for name in ("right_outer", "right_eye", "middle", "left_eye", "left_outer")]
        eyes = list(self.lines_of(*names))
        found = [label for name in names for label in self.fifth(self.facts.measurements[name])]
        if len(eyes) < len(names) or len(found) < len(names):
            return
        # Neighbours share an end: ten ends in a row from the viewer's left are six boundaries.
        ends = np.array(sorted(self.frame.uv(np.vstack(eyes)).tolist()))
        boundaries = np.vstack([ends[:1], (ends[1:-1:2] + ends[2:-1:2]) / 2, ends[-1:]])
        head = labels.FIFTHS(self.lang) + ("" if self.facts.scale.mm_per_px is None else " mm")
        unit = Line(labels.EYE_UNIT(self.lang), 0.9 * self.sizes.small, SOFT)
        title = self.label(Line(head, 0.9 * self.sizes.small, SOFT), unit)
        y, places = self.fifths_row(boundaries, [title, *found])
        tick = np.array([0.0, 0.25 * self.sizes.text])
        at_ruler = [self.frame.along_v_to(float(u), y) for u, _ in boundaries]
        for (u, v), end in zip(boundaries, at_ruler, strict=True):
            reach = 0.05 * self.face_width
            top, bottom = self.frame.xy(u, v - reach), self.frame.xy(u, v + reach)
            self.sheet.stroke([top, bottom], BLUE, self.sizes.line, alpha=0.9)
            self.sheet.stroke([bottom, end], BLUE, self.sizes.fine, alpha=0.4, halo=False)
            self.sheet.stroke([end - tick, end + tick], BLUE, self.sizes.line, alpha=0.9)
        self.sheet.stroke([at_ruler[0], at_ruler[-1]], BLUE, self.sizes.line, alpha=0.9)
        for label, plate in zip([title, *found], places, strict=True):
            self.sheet.label(label, plate, "centre")

    def fifth(self, quantity: Measurement) -> Iterator[Label]:
        lines = []
        if quantity.mm is not None:
            lines.append(Line(labels.bare_mm(quantity.mm), 0.95 * self.sizes.text, WHITE))
        if quantity.ratio is not None:
            lines.append(Line(labels.times(quantity.ratio), 0.9 * self.sizes.small, SOFT))
        if lines:
            yield self.label(*lines)

    def fifths_row(self, boundaries: Points, found: Sequence[Label]) -> tuple[float, list[Rect]]:
        """The y of the ruler under the chin and the plates below it; the first label stands before the others."""
        drop = 0.6 * self.sizes.text
        height = drop + max(label.height_px for label in found)
        y = self.face.bottom + 0.9 * self.sizes.text
        if y + height > self.sheet.height_px - self.sizes.margin / 2:
            y = max(y, self.sheet.height_px + self.sizes.margin)
        while True:
            xs = [float(self.frame.along_v_to(float(u), y)[0]) for u, _ in boundaries]
            wanted = [xs[0] - found[0].width_px / 2 - 0.3 * self.sizes.text, *((a + b) / 2 for a, b in pairwise(xs))]
            middles = spread(wanted, [label.width_px for label in found], self.sizes.gap / 2)
            plates = [
                Rect(x - label.width_px / 2, y + drop, label.width_px, label.height_px)
                for x, label in zip(middles, found, strict=True)
            ]
            row = Rect(min(plates[0].x, xs[0]), y, max(plates[-1].right, xs[-1]) - min(plates[0].x, xs[0]), height)
            if not any(row.overlaps(plate) for plate in self.sheet.plates) and not any(
                crosses(plate, line) for plate in plates for line in self.sheet.rulers
            ):
                return y, plates
            y += 0.5 * self.sizes.text

    def draw_hairline(self) -> None:
        """Solid where it was seen; dashed where something hides it between two seen parts; else left out."""
        hairline = self.facts.hairline
        for seen, run in _runs(hairline.points):
            dash = None if seen else (0.35 * self.sizes.text, 0.3 * self.sizes.text)
            alpha = 0.95 if seen else 0.6
            line = self.place([_xy(point) for point in run])
            self.sheet.stroke(line, TEAL, 1.3 * self.sizes.line, alpha=alpha, dash_px=dash)
        if hairline.trichion is not None:
            at = self.place(_xy(hairline.trichion))
            self.sheet.dot(at, 0.2 * self.sizes.text, WHITE)
            self.sheet.dot(at, 0.13 * self.sizes.text, TEAL)


def _opposite(side: Side) -> Side:
    return "left" if side == "right" else "right"


def _xy(point: HairlinePoint) -> tuple[float, float]:
    return point.x_px, point.y_px


def _runs(points: Sequence[HairlinePoint]) -> Iterator[tuple[bool, list[HairlinePoint]]]:
    """(observed, points) of the stretches to draw: observed ones, and hidden ones between two of those."""
    seen = [index for index, point in enumerate(points) if point.state is HairlineState.OBSERVED]
    run = seen[:1]
    for index, following in pairwise(seen):
        between = points[index + 1 : following]
        if between:
            if len(run) > 1:
                yield True, [points[i] for i in run]
            if all(point.state is HairlineState.OCCLUDED for point in between):
                yield False, list(points[index : following + 1])
            run = []
        run.append(following)
    if len(run) > 1:
        yield True, [points[i] for i in run]
