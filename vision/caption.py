"""The strip under an annotated picture: notes, what the curve is, the scale and its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vision import labels
from vision.drawing import LINE_HEIGHT, Plate, Rect
from vision.sheet import AMBER, PLATE_ALPHA, SOFT, TEAL, Line, Sheet
from vision.types import Facts, HairlineState, Lang

BAR_MM = (50, 20, 10, 5, 2, 1)
"""Lengths of the scale bar; the longest that stays small is taken."""


@dataclass(frozen=True, slots=True)
class _Item:
    line: Line
    symbol: Literal["none", "note", "curve", "bar"] = "none"
    symbol_px: float = 0.0
    """Room for the symbol and the space behind it."""


def caption(sheet: Sheet, facts: Facts, lang: Lang, scale: float) -> Rect:
    """Add the strip below everything on the sheet; returns the sheet's area with it.

    It lies over the bottom of the photo where that is free, else below the photo. `scale` is layout pixels per pixel of
    the photo.
    """
    sizes = sheet.sizes
    area = sheet.area
    size = sizes.small
    notes, items = _notes(facts, lang, size), _items(facts, lang, sheet, scale)
    space = 1.2 * sizes.text
    widest = max(item.line.width_px + item.symbol_px for item in (*notes, *items))
    area = area.union(Rect(area.x, area.y, widest + 2 * sizes.margin, area.h))

    rows: list[list[_Item]] = [[note] for note in notes] + [[]]
    used = 0.0
    for item in items:
        width = item.symbol_px + item.line.width_px
        if rows[-1] and used + width > area.w - 2 * sizes.margin:
            rows.append([])
            used = 0.0
        rows[-1].append(item)
        used += width + space

    height = 1.45 * size * len(rows) + sizes.margin
    content = max((plate.bottom for plate in sheet.plates), default=0.0) + sizes.margin
    inside = sheet.height_px - height
    top = inside if content <= inside else max(sheet.height_px, content)
    strip = Rect(area.x, top, area.w, height)
    sheet.marks.append(Plate(strip, 0.0, PLATE_ALPHA))
    y = top + (height - 1.45 * size * len(rows)) / 2 + (1.45 - LINE_HEIGHT) * size / 2
    for row in rows:
        x = area.x + sizes.margin
        for item in row:
            _symbol(sheet, item, x, y + 0.5 * LINE_HEIGHT * size)
            sheet.text(item.line, x + item.symbol_px, y)
            x += item.symbol_px + item.line.width_px + space
        y += 1.45 * size
    return area.union(strip)


def _notes(facts: Facts, lang: Lang, size: float) -> list[_Item]:
    hidden = [] if facts.hairline.status is HairlineState.OBSERVED else [labels.HAIRLINE_NOTE[facts.hairline.status]]
    # Warnings without words for pictures stand in the answer alone.
    warned = [labels.WARNING[warning.reason] for warning in facts.warnings if warning.reason in labels.WARNING]
    return [_Item(Line(words(lang), size, AMBER), "note", size) for words in (*hidden, *warned)]


def _items(facts: Facts, lang: Lang, sheet: Sheet, scale: float) -> list[_Item]:
    size, text = sheet.sizes.small, sheet.sizes.text
    items = []
    if facts.hairline.trichion is not None:
        items.append(_Item(Line(labels.HAIRLINE(lang), size, SOFT), "curve", 1.6 * text))
    if facts.scale.mm_per_px is not None:
        px_per_mm = scale / facts.scale.mm_per_px
        bar = next((mm for mm in BAR_MM if mm * px_per_mm <= 4 * text), BAR_MM[-1])
        items.append(_Item(Line(f"{bar} mm", size, SOFT), "bar", bar * px_per_mm + 0.4 * text))
    items.append(_Item(Line(labels.scale(facts.scale, lang), size, SOFT)))
    if facts.scale.mm_per_px is not None:
        items.append(_Item(Line(labels.LESS_CERTAIN(lang), size, SOFT)))
    items.append(_Item(Line(labels.SIDES(lang), size, SOFT)))
    return items


def _symbol(sheet: Sheet, item: _Item, x: float, y: float) -> None:
    sizes = sheet.sizes
    end = x + item.symbol_px - 0.4 * sizes.text
    match item.symbol:
        case "note":
            sheet.dot((x + 0.3 * sizes.small, y), 0.2 * sizes.small, AMBER)
        case "curve":
            sheet.stroke([(x, y), (end, y)], TEAL, 1.3 * sizes.line)
        case "bar":
            cap = 0.25 * sizes.text
            bar = [(x, y - cap), (x, y + cap), (x, y), (end, y), (end, y - cap), (end, y + cap)]
            sheet.stroke(bar, SOFT, sizes.line)
        case "none":
            pass
