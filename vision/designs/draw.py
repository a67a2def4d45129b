"""The picture of a design: its curve on the photo, where hair would be filled in, and what that means in numbers.

Nothing but thin lines lies on the face; all words stand in a strip below the chin.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from vision import labels
from vision.calls import HairlineDesign
from vision.caption import Item, curve_item, notes_of, scale_items, strip, warnings_of
from vision.designs.forehead import Forehead
from vision.designs.present import present_line
from vision.designs.rules import on_hair
from vision.drawing import Picture, Wash, render
from vision.face_labels import FaceView
from vision.photo_warnings import is_child
from vision.png import encode_png
from vision.sheet import SOFT, TEAL, WHITE, Line, Sheet
from vision.types import EncodedImage, Facts, HairlineState, Lang, Points

WASH_ALPHA = 0.10
HATCH_ALPHA = 0.55
HATCH = 0.6
"""Distance of the hatching's lines in heights of the text."""
DASHES = (0.32, 0.3)
"""Drawn and left out where the design lies inside the present hair, in heights of the text."""


def draw_design(facts: Facts, design: HairlineDesign, lang: Lang, max_output_side_px: int) -> EncodedImage:
    """Draw one design on the photo: a PNG without metadata, long side at most `max_output_side_px`, never enlarged."""
    return encode_png(render(facts.photo.rgb, plan_design(facts, design, lang, max_output_side_px)))


def plan_design(facts: Facts, design: HairlineDesign, lang: Lang, max_side_px: int) -> Picture:
    """All that `draw_design` paints, in place."""
    scale = min(1.0, max_side_px / max(facts.photo.width_px, facts.photo.height_px))
    view = FaceView(facts, lang, scale)
    sheet = Sheet(view.width_px, view.height_px, view.sizes)
    text = view.sizes.text
    for region in design.regions:
        sheet.marks.append(Wash(view.place(region), TEAL, WASH_ALPHA, HATCH * text, HATCH_ALPHA))
    for line in _present(facts):
        sheet.stroke(view.place(line), TEAL, view.sizes.line, alpha=0.7)
    _height(sheet, view, design)
    inside = False
    for on_the_hair, line in _runs(facts, design):
        dashes = (DASHES[0] * text, DASHES[1] * text) if on_the_hair else None
        sheet.stroke(view.place(line), WHITE, 1.6 * view.sizes.line, dash_px=dashes)
        inside |= on_the_hair
    for point, size in ((design.mid_point, 1.0), (design.left_temple_point, 0.8), (design.right_temple_point, 0.8)):
        at = view.place(point)
        sheet.dot(at, 0.17 * size * text, WHITE)
        sheet.dot(at, 0.10 * size * text, TEAL)
    area = strip(sheet, _rows(sheet, facts, design, lang, scale, inside=inside), view.face.bottom)
    return sheet.picture(area, max_side_px)


def _height(sheet: Sheet, view: FaceView, design: HairlineDesign) -> None:
    """From the glabella up to the mid-frontal point."""
    line = view.place(design.height.line)
    if len(line) < 2:
        return
    dotted = (0.12 * view.sizes.text, 0.24 * view.sizes.text)
    sheet.stroke(line, SOFT, view.sizes.fine, alpha=0.8, dash_px=dotted)
    sheet.dot(line[-1], 0.09 * view.sizes.text, SOFT)


def _present(facts: Facts) -> Iterator[Points]:
    """The pieces (N, 2) of the present hairline that were seen; none without a trichion, as in `vision.annotate`."""
    if facts.hairline.trichion is None:
        return
    for seen, run in groupby(facts.hairline.points, lambda point: point.state is HairlineState.OBSERVED):
        line = np.array([(point.x_px, point.y_px) for point in run])
        if seen and len(line) > 1:
            yield line


def _runs(facts: Facts, design: HairlineDesign) -> Iterator[tuple[bool, Points]]:
    """The curve in pieces (N, 2): whether they lie inside the present hair; neighbours share a point."""
    forehead = Forehead(facts.landmarks)
    inside = on_hair(forehead.to_face(design.curve), present_line(facts, forehead))
    start = 0
    for on_the_hair, run in groupby(inside.tolist()):
        end = start + len(list(run))
        yield on_the_hair, design.curve[max(0, start - 1) : end]
        start = end


def _rows(
    sheet: Sheet, facts: Facts, design: HairlineDesign, lang: Lang, scale: float, *, inside: bool
) -> list[list[Item]]:
    text, small = sheet.sizes.text, sheet.sizes.small
    head = [Item(Line(labels.STYLE[design.style](lang), 1.15 * text, WHITE))]
    notes = []
    if design.height.mm is not None:
        words = f"{labels.MEASUREMENT['mid_frontal_height'](lang)} {labels.mm(design.height.mm)}"
        head.append(Item(Line(words, text, WHITE)))
    if design.area_cm2 and design.area_interval_cm2 is not None and design.grafts is not None:
        head.append(Item(Line(labels.area(design.area_cm2, design.area_interval_cm2, lang), text, WHITE)))
        head.append(Item(Line(labels.grafts(design.grafts, design.density_per_cm2, lang), text, WHITE)))
    elif is_child(facts.warnings):
        notes.append(labels.NO_AREA_CHILD(lang))
    elif design.area_cm2 is not None:
        notes.append(labels.NOTHING_TO_FILL(lang))
    elif facts.scale.mm_per_px is not None or facts.hairline.status is not HairlineState.OBSERVED:
        notes.append(labels.NO_AREA[facts.hairline.status](lang))
    notes += [note for note in (labels.broken(design.rules, lang), labels.uncertain(design.rules, lang)) if note]
    legend = [curve_item(labels.DESIGN(lang), WHITE, sheet)]
    if inside:
        legend.append(curve_item(labels.DESIGN_ON_HAIR(lang), WHITE, sheet, (DASHES[0] * text, DASHES[1] * text)))
    if facts.hairline.trichion is not None:
        legend.append(curve_item(labels.PRESENT_HAIRLINE(lang), TEAL, sheet))
    rows = [[note] for note in notes_of([*notes, *warnings_of(facts, lang)], small)]
    return [head, *rows, [*legend, *scale_items(facts, lang, sheet, scale)]]
