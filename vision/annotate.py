"""The annotated picture: three courts and five eyes with rulers, hairline, widths, scale and notes on the photo.

Lines lie on the face, words beside it. Labels go where the photo shows little; where it is framed so tightly that they
do not fit beside the face, the canvas grows beyond the photo on that side (and the whole is reduced to the allowed
size). Nothing is ever written over the face. What was not measured is not drawn; a note says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np

from vision.caption import caption
from vision.drawing import Picture, Rect, render
from vision.face_labels import WIDTHS, Court, FaceView, Remark, Side
from vision.label_layout import Detail, crosses, spread
from vision.png import encode_png
from vision.sheet import BLUE, SOFT, TEAL, WHITE, Label, Sheet
from vision.types import EncodedImage, Facts, HairlineState, Lang, Points

EAR_WIDTHS = 0.14
"""Labels keep this share of the face's width away from the mesh's outline where they can: ears lie there."""


def annotate(facts: Facts, lang: Lang, max_side_px: int) -> EncodedImage:
    """Draw `facts` on their photo: a PNG without metadata, long side at most `max_side_px`, never enlarged."""
    return encode_png(render(facts.photo.rgb, plan(facts, lang, max_side_px)))


def plan(facts: Facts, lang: Lang, max_side_px: int) -> Picture:
    """All that `annotate` paints, in place."""
    scale = min(1.0, max_side_px / max(facts.photo.width_px, facts.photo.height_px))
    view = FaceView(facts, lang, scale)
    layout = _Layout(view)
    layout.forehead()
    layout.widths()
    layout.columns()
    layout.fifths()
    layout.hairline()
    area = caption(layout.sheet, facts, lang, scale)
    return layout.sheet.picture(area, max_side_px)


class _Layout:
    """Lays the parts out one after the other; each keeps clear of the labels before it."""

    def __init__(self, view: FaceView) -> None:
        self.view = view
        self.sizes = view.sizes
        self.sheet = Sheet(view.width_px, view.height_px, view.sizes)

    def widths(self) -> None:
        """Face and jaw width: their ends alone, like the jaws of a calliper."""
        if not self.view.has_mm:
            return
        for line in self.view.lines_of(*WIDTHS):
            for end, other in ((line[0], line[-1]), (line[-1], line[0])):
                inward = (other - end) / np.linalg.norm(other - end)
                across = np.array([-inward[1], inward[0]]) * 0.3 * self.sizes.text
                tip = end + inward * 0.09 * self.view.face_width_px
                self.sheet.stroke([end, tip], BLUE, self.sizes.fine, alpha=0.8)
                self.sheet.stroke([end - across, end + across], BLUE, self.sizes.fine, alpha=0.8)

    def forehead(self) -> None:
        """From the brows to the hairline; how far the temples recede, where they do."""
        if not self.view.has_mm:
            return
        for line in self.view.lines_of("brow_to_hairline.right", "brow_to_hairline.left"):
            self.sheet.stroke(line, TEAL, 0.8 * self.sizes.line, alpha=0.85)
        if self.view.tells("temple_recession"):
            dotted = (0.18 * self.sizes.text, 0.2 * self.sizes.text)
            for line in self.view.lines_of("temple_recession.right", "temple_recession.left"):
                self.sheet.stroke(line, TEAL, 0.8 * self.sizes.line, dash_px=dotted)

    def hairline(self) -> None:
        """Where it was seen. Nothing without a trichion: what is seen beside bangs is not told from their edge."""
        hairline = self.view.facts.hairline
        if hairline.trichion is None:
            return
        for seen, run in groupby(hairline.points, lambda point: point.state is HairlineState.OBSERVED):
            line = self.view.place([(point.x_px, point.y_px) for point in run])
            if seen and len(line) > 1:
                self.sheet.stroke(line, TEAL, 1.3 * self.sizes.line, alpha=0.95)
        at = self.view.place((hairline.trichion.x_px, hairline.trichion.y_px))
        self.sheet.dot(at, 0.2 * self.sizes.text, WHITE)
        self.sheet.dot(at, 0.13 * self.sizes.text, TEAL)

    # The columns beside the face.

    def columns(self) -> None:
        """Courts with their ruler on one side of the face, everything else on the other."""
        courts, remarks = self.view.courts(), self.view.remarks()
        detail = Detail(self.view.facts.photo.rgb, self.view.scale)
        roll_deg = self.view.frame.roll_deg
        # The courts' lines should rise towards their ruler, away from the five eyes below the chin.
        handicap: dict[Side, float] = {"right": 0.6 * roll_deg, "left": 4.0 - 0.6 * roll_deg}
        choices: list[tuple[float, Side, float, float]] = []
        for side, cost in handicap.items():
            edge = self.view.face.right if side == "right" else self.view.face.x
            found = [court.label for court in courts]
            courts_cost, courts_x = self.column(side, self.ruler_gap, found, self.court_rows(courts, edge), detail)
            other = _opposite(side)
            found = [remark.label for remark in remarks]
            rows = self.remark_rows(remarks, other)
            remarks_cost, remarks_x = self.column(other, self.sizes.text / 2, found, rows, detail)
            choices.append((cost + courts_cost + remarks_cost, side, courts_x, remarks_x))
        _, side, courts_x, remarks_x = min(choices)
        self.courts(courts, side, courts_x)
        self.remarks(remarks, _opposite(side), remarks_x)

    @property
    def ruler_gap(self) -> float:
        """From the courts' ruler to their labels."""
        return 0.7 * self.sizes.text

    def column(
        self, side: Side, gap: float, found: Sequence[Label], rows: Sequence[float], detail: Detail
    ) -> tuple[float, float]:
        """(cost, x) of the best place beside the face for a column; x is its edge towards the face.

        Cost in grey levels of detail: near the face is good, plain ground is good, the ear is not; beyond the photo
        only where nothing inside it fits.
        """
        if not found:
            return 0.0, 0.0
        face, margin = self.view.face, self.sizes.margin
        width = gap + max(label.width_px for label in found)
        best = (1000.0 + width, self.sheet.width_px + margin if side == "right" else -margin)
        offset = 0.4 * self.sizes.text
        while True:
            x = face.right + offset if side == "right" else face.x - offset
            if not margin <= (x + width if side == "right" else x - width) <= self.sheet.width_px - margin:
                return best
            plates = [_beside(label, side, x + _outward(side) * gap, y) for label, y in zip(found, rows, strict=True)]
            distance = offset / self.view.face_width_px
            cost = sum(detail.mean(plate) for plate in plates) / len(plates)
            cost += 60 * distance + 150 * max(0.0, EAR_WIDTHS - distance)
            best = min(best, (cost, x))
            offset += 0.4 * self.sizes.text

    def rows(self, found: Sequence[Label], wanted: Sequence[float]) -> list[float]:
        """Middles of the labels of a column."""
        return spread(wanted, [label.height_px for label in found], self.sizes.gap, self.sizes.margin)

    def court_rows(self, courts: Sequence[Court], x: float) -> list[float]:
        middles = [self.view.frame.along_u_to((court.top_v + court.bottom_v) / 2, x) for court in courts]
        return self.rows([court.label for court in courts], [float(middle[1]) for middle in middles])

    def remark_rows(self, remarks: Sequence[Remark], side: Side) -> list[float]:
        return self.rows([remark.label for remark in remarks], [float(remark.anchor(side)[1]) for remark in remarks])

    def courts(self, courts: Sequence[Court], side: Side, x: float) -> None:
        """Lines across the face to a ruler at `x`, labels beyond it."""
        if not courts:
            return
        outward, frame = _outward(side), self.view.frame
        far_u = (self.view.left_u if side == "right" else self.view.right_u) - outward * 0.05 * self.view.face_width_px
        tick = np.array([outward * 0.35 * self.sizes.text, 0.0])
        # Courts share their ends.
        levels = {round(v, 1): v for court in courts for v in (court.top_v, court.bottom_v)}.values()
        ends = np.array([frame.along_u_to(v, x) for v in levels])
        ruler = np.array([[x, ends[:, 1].min()], [x, ends[:, 1].max()]])
        lines = [np.array([frame.xy(far_u, v), end]) for v, end in zip(levels, ends, strict=True)]
        for line in lines:
            self.sheet.stroke(line, WHITE, self.sizes.line, alpha=0.8)
            self.sheet.stroke([line[1], line[1] + tick], WHITE, self.sizes.line, alpha=0.9)
        self.sheet.stroke(ruler, WHITE, self.sizes.line, alpha=0.9)
        self.sheet.rulers += [*lines, ruler]
        for court, y in zip(courts, self.court_rows(courts, x), strict=True):
            self.beside(court.label, side, x + outward * self.ruler_gap, y)

    def remarks(self, remarks: Sequence[Remark], side: Side, x: float) -> None:
        """Labels with thin lines to the points they speak of."""
        edge = x + _outward(side) * self.sizes.text / 2
        for remark, y in zip(remarks, self.remark_rows(remarks, side), strict=True):
            anchor = remark.anchor(side)
            self.beside(remark.label, side, edge, y)
            self.sheet.stroke(np.array([(edge, y), anchor]), SOFT, self.sizes.fine, alpha=0.65)
            self.sheet.dot(anchor, 0.09 * self.sizes.text, SOFT)

    def beside(self, label: Label, side: Side, x: float, y: float) -> None:
        """Set a label with its edge towards the face at `x` and its middle at `y`."""
        self.sheet.label(label, _beside(label, side, x, y), "left" if side == "right" else "right")

    # The row under the chin.

    def fifths(self) -> None:
        """Ticks at the corners of the eyes and the temples, a ruler under the chin, labels below it."""
        found = self.view.fifths()
        if found is None:
            return
        boundaries, row = found
        y, plates = self.fifths_row(boundaries, row)
        frame, reach = self.view.frame, 0.05 * self.view.face_width_px
        tick = np.array([0.0, 0.25 * self.sizes.text])
        at_ruler = [frame.along_v_to(u, y) for u in boundaries[:, 0]]
        for (u, v), end in zip(boundaries, at_ruler, strict=True):
            top, bottom = frame.xy(u, v - reach), frame.xy(u, v + reach)
            self.sheet.stroke([top, bottom], BLUE, self.sizes.line, alpha=0.9)
            self.sheet.stroke([bottom, end], BLUE, self.sizes.fine, alpha=0.4, halo=False)
            self.sheet.stroke([end - tick, end + tick], BLUE, self.sizes.line, alpha=0.9)
        self.sheet.stroke([at_ruler[0], at_ruler[-1]], BLUE, self.sizes.line, alpha=0.9)
        for label, plate in zip(row, plates, strict=True):
            self.sheet.label(label, plate, "centre")

    def fifths_row(self, boundaries: Points, row: Sequence[Label]) -> tuple[float, list[Rect]]:
        """The y of the ruler and the plates below it: a title, then one label to each fifth."""
        drop = 0.6 * self.sizes.text
        height = drop + max(label.height_px for label in row)
        y = self.view.face.bottom + 0.9 * self.sizes.text
        while True:
            if y + height > self.sheet.height_px - self.sizes.margin / 2:  # never across the photo's edge
                y = max(y, self.sheet.height_px + self.sizes.margin)
            xs = [float(self.view.frame.along_v_to(u, y)[0]) for u in boundaries[:, 0]]
            wanted = [xs[0] - row[0].width_px / 2 - 0.3 * self.sizes.text, *((a + b) / 2 for a, b in pairwise(xs))]
            middles = spread(wanted, [label.width_px for label in row], self.sizes.gap / 2)
            plates = [
                Rect(x - label.width_px / 2, y + drop, label.width_px, label.height_px)
                for x, label in zip(middles, row, strict=True)
            ]
            left = min(xs[0], plates[0].x)
            whole = Rect(left, y, max(xs[-1], plates[-1].right) - left, height)
            if not any(whole.overlaps(plate) for plate in self.sheet.plates) and not any(
                crosses(plate, line) for plate in plates for line in self.sheet.rulers
            ):
                return y, plates
            y += 0.5 * self.sizes.text


def _opposite(side: Side) -> Side:
    return "left" if side == "right" else "right"


def _outward(side: Side) -> float:
    return 1.0 if side == "right" else -1.0


def _beside(label: Label, side: Side, x: float, y: float) -> Rect:
    left = x if side == "right" else x - label.width_px
    return Rect(left, y - label.height_px / 2, label.width_px, label.height_px)
