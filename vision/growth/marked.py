"""The picture of a region that a user marked: its border and a light wash on the photo, its area below the face."""

from __future__ import annotations

from itertools import islice

import numpy as np

from vision import labels
from vision.caption import Item, notes_of, scale_items, strip, warnings_of
from vision.drawing import Picture, Wash, render
from vision.face_labels import FaceView
from vision.growth.region import MarkedRegion
from vision.growth.region_raster import outlines
from vision.png import encode_png
from vision.sheet import TEAL, WHITE, Line, Sheet
from vision.types import EncodedImage, Facts, Lang, Points

WASH_ALPHA = 0.12
HATCH = 0.6
"""Distance of the hatching's lines in heights of the text."""
HATCH_ALPHA = 0.5
MOST_BORDERS = 500
"""The longest are drawn: of thousands one sees none."""


def draw_marked(facts: Facts, region: MarkedRegion, lang: Lang, max_output_side_px: int) -> EncodedImage:
    """Draw the region on its photo: a PNG without metadata, long side at most `max_output_side_px`, never enlarged."""
    return encode_png(render(facts.photo.rgb, plan_marked(facts, region, lang, max_output_side_px)))


def plan_marked(facts: Facts, region: MarkedRegion, lang: Lang, max_side_px: int) -> Picture:
    """All that `draw_marked` paints, in place."""
    scale = min(1.0, max_side_px / max(facts.photo.width_px, facts.photo.height_px))
    view = FaceView(facts, lang, scale)
    sheet = Sheet(view.width_px, view.height_px, view.sizes)
    borders = [view.place(border) for border in _borders(region)]
    sheet.marks.append(Wash(_joined(borders), TEAL, WASH_ALPHA, HATCH * view.sizes.text, HATCH_ALPHA))
    for border in borders:
        sheet.stroke(np.vstack([border, border[:1]]), WHITE, 1.3 * view.sizes.line)
    words = labels.marked(region.area_px2, region.area_cm2(facts.landmarks, facts.scale.mm_per_px), lang)
    head = [Item(Line(words, view.sizes.text, WHITE))]
    notes = [[note] for note in notes_of(warnings_of(facts, lang), view.sizes.small)]
    area = strip(sheet, [head, *notes, scale_items(facts, lang, sheet, scale)], view.face.bottom)
    return sheet.picture(area, max_side_px)


def _borders(region: MarkedRegion) -> list[Points]:
    """Closed lines (N, 2) around all parts of the region and its holes, in pixels of the photo."""
    if region.polygon is not None:
        return [region.polygon]
    return list(islice(outlines(region.mask), MOST_BORDERS))


def _joined(borders: list[Points]) -> Points:
    """One closed line through all of them: what lies inside an even number of them is outside of it."""
    start = borders[0][:1]
    return np.vstack([part for border in borders for part in (border, border[:1], start)])
