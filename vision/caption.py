"""The strip under a picture: notes, what its lines are, the scale and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vision import labels
from vision.drawing import LINE_HEIGHT, Colour, Plate, Rect
from vision.sheet import AMBER, PLATE_ALPHA, SOFT, TEAL, Line, Sheet
from vision.types import Facts, HairlineState, Lang

BAR_MM = (50, 20, 10, 5, 2, 1)
"""Lengths of the scale bar; the longest that stays small is taken."""


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of text that stands on one line, with a symbol before it."""

    line: Line
    symbol: Literal["none", "note", "curve", "bar"] = "none"
    symbol_px: float = 0.0
    """Room for the symbol and the space behind it."""
    colour: Colour = TEAL
    """Of a curve."""
    dash_px: tuple[float, float] | None = None
    """Of a curve."""


def caption(sheet: Sheet, facts: Facts, lang: Lang, scale: float) -> Rect:
    """Add the strip below everything on the sheet; returns the sheet's area with it.

    `scale` is layout pixels per pixel of the photo.
    """
    size = sheet.sizes.small
    hidden = [] if facts.hairline.status is HairlineState.OBSERVED else [labels.HAIRLINE_NOTE[facts.hairline.status]]
    notes = notes_of([words(lang) for words in hidden] + warnings_of(facts, lang), size)
    seen = [] if facts.hairline.trichion is None else [curve_item(labels.HAIRLINE(lang), TEAL, sheet)]
    content = max((plate.bottom for plate in sheet.plates), default=0.0)
    return strip(sheet, [*([note] for note in notes), [*seen, *scale_items(facts, lang, sheet, scale)]], content)


def strip(sheet: Sheet, rows: Sequence[Sequence[Item]], content: float) -> Rect:
    """Add a strip of `rows` below `content`; a row that is too long goes on in the next. Returns the sheet's area.

    It lies over the bottom of the photo where that is free, else below the photo.
    """
    sizes = sheet.sizes
    area = sheet.area
    space = 1.2 * sizes.text
    widest = max(item.line.width_px + item.symbol_px for row in rows for item in row)
    area = area.union(Rect(area.x, area.y, widest + 2 * sizes.margin, area.h))
    set_rows = [part for row in rows for part in _broken(row, area.w - 2 * sizes.margin, space)]
    heights = [1.45 * max(item.line.size_px for item in row) for row in set_rows]

    height = sum(heights) + sizes.margin
    inside = sheet.height_px - height
    content += sizes.margin
    top = inside if content <= inside else max(sheet.height_px, content)
    plate = Rect(area.x, top, area.w, height)
    sheet.marks.append(Plate(plate, 0.0, PLATE_ALPHA))
    y = top + sizes.margin / 2
    for row, row_height in zip(set_rows, heights, strict=True):
        x = area.x + sizes.margin
        middle = y + row_height / 2
        for item in row:
            _symbol(sheet, item, x, middle)
            sheet.text(item.line, x + item.symbol_px, middle - 0.5 * LINE_HEIGHT * item.line.size_px)
            x += item.symbol_px + item.line.width_px + space
        y += row_height
    return area.union(plate)


def _broken(row: Sequence[Item], width_px: float, space: float) -> list[list[Item]]:
    """A row as rows of at most `width_px`, where single items allow."""
    rows: list[list[Item]] = []
    used = 0.0
    for item in row:
        width = item.symbol_px + item.line.width_px
        if not rows or used + width > width_px:
            rows.append([])
            used = 0.0
        rows[-1].append(item)
        used += width + space
    return rows


def notes_of(texts: Sequence[str], size: float) -> list[Item]:
    """Things the reader should know, each with its sign."""
    return [Item(Line(text, size, AMBER), "note", size) for text in texts]


def warnings_of(facts: Facts, lang: Lang) -> list[str]:
    """Those that have words for pictures; others stand in the answer alone."""
    return [labels.WARNING[warning.reason](lang) for warning in facts.warnings if warning.reason in labels.WARNING]


def curve_item(text: str, colour: Colour, sheet: Sheet, dash_px: tuple[float, float] | None = None) -> Item:
    """What a line of that colour is."""
    return Item(Line(text, sheet.sizes.small, SOFT), "curve", 1.6 * sheet.sizes.text, colour, dash_px)


def scale_items(facts: Facts, lang: Lang, sheet: Sheet, scale: float) -> list[Item]:
    """A bar, the scale with its interval, and whose left is left."""
    size, text = sheet.sizes.small, sheet.sizes.text
    items = []
    if facts.scale.mm_per_px is not None:
        px_per_mm = scale / facts.scale.mm_per_px
        bar = next((mm for mm in BAR_MM if mm * px_per_mm <= 4 * text), BAR_MM[-1])
        items.append(Item(Line(f"{bar} mm", size, SOFT), "bar", bar * px_per_mm + 0.4 * text))
    items.append(Item(Line(labels.scale(facts.scale, lang), size, SOFT)))
    if facts.scale.mm_per_px is not None:
        items.append(Item(Line(labels.LESS_CERTAIN(lang), size, SOFT)))
    items.append(Item(Line(labels.SIDES(lang), size, SOFT)))
    return items


def _symbol(sheet: Sheet, item: Item, x: float, y: float) -> None:
    sizes = sheet.sizes
    end = x + item.symbol_px - 0.4 * sizes.text
    match item.symbol:
        case "note":
            sheet.dot((x + 0.3 * sizes.small, y), 0.2 * sizes.small, AMBER)
        case "curve":
            sheet.stroke([(x, y), (end, y)], item.colour, 1.3 * sizes.line, dash_px=item.dash_px)
        case "bar":
            cap = 0.25 * sizes.text
            bar = [(x, y - cap), (x, y + cap), (x, y), (end, y), (end, y - cap), (end, y + cap)]
            sheet.stroke(bar, SOFT, sizes.line)
        case "none":
            pass
