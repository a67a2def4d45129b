"""One page with every picture of a walk through the calls: `index.html` beside its pictures, without scripts.

The page lies in the folder of the pictures and names them relatively, so that the folder can be moved as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1d232b; --soft: #5c6773; --line: #d9dee4; --ground: #f6f7f9; --card: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ebef; --soft: #9aa5b1; --line: #323a44; --ground: #14181d; --card: #1c2229; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1280px; padding: 2.5rem 1.5rem 4rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, "Noto Sans CJK SC", "Microsoft YaHei", sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 3rem 0 .2rem; }
p { margin: 0 0 1rem; color: var(--soft); max-width: 62rem; }
code { font: .9em ui-monospace, monospace; }
.pictures { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, var(--wide)), 1fr)); }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
figure img, figure svg { display: block; width: 100%; height: auto; }
.layers { display: block; position: relative; isolation: isolate; }
.layers :last-child { position: absolute; inset: 0; }
.cut :last-child { mix-blend-mode: multiply; }
circle { fill: #35d0a5; stroke: #06251c; stroke-width: 1.5px; vector-effect: non-scaling-stroke; }
figcaption { padding: .6rem .8rem; font-size: .875rem; color: var(--soft); }
figcaption b { color: var(--ink); }
.facts { overflow-x: auto; margin-top: 1rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem 1.2rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; }
"""


@dataclass(frozen=True, slots=True)
class Points:
    """Named places on a picture."""

    width_px: int
    height_px: int
    places: Mapping[str, tuple[float, float]]
    """x and y in pixels of the picture."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture of the folder."""

    file: str
    title: str
    caption: str = ""
    under: str = ""
    """For a mask: the picture it is laid over, so that what it takes out is seen."""
    points: Points | None = None
    """What is marked on the picture."""


@dataclass(frozen=True, slots=True)
class Section:
    """One call: what was asked, its pictures, its numbers."""

    title: str
    route: str
    text: str
    figures: Sequence[Figure] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    wide: bool = False
    """Whether its pictures are worth a third of the page, not a fifth."""


def render(title: str, text: str, sections: Sequence[Section]) -> str:
    """The page. All words are escaped: pictures' names and answers may hold anything."""
    body = "".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>\n{body}</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    width = "22rem" if section.wide else "14rem"
    parts = [
        f"<h2>{escape(section.title)}</h2>\n",
        f"<p><code>{escape(section.route)}</code> {escape(section.text)}</p>\n",
    ]
    if section.figures:
        figures = "".join(_figure(figure) for figure in section.figures)
        parts.append(f'<div class="pictures" style="--wide: {width}">\n{figures}</div>\n')
    if section.rows:
        head = "".join(f"<th>{escape(name)}</th>" for name in section.columns)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in section.rows)
        parts.append(f'<div class="facts"><table>\n<tr>{head}</tr>\n{rows}</table></div>\n')
    return "".join(parts)


def _figure(figure: Figure) -> str:
    name = escape(figure.file)
    caption = f" {escape(figure.caption)}" if figure.caption else ""
    picture = f'<img src="{name}" alt="{escape(figure.title)}" loading="lazy">'
    if figure.under:
        under = f'<img src="{escape(figure.under)}" alt="" loading="lazy">'
        picture = f'<span class="layers cut">{under}{picture}</span>'
    elif figure.points:
        picture = f'<span class="layers">{picture}{_marks(figure.points)}</span>'
    return (
        f'<figure><a href="{name}">{picture}</a>'
        f"<figcaption><b>{escape(figure.title)}</b>{caption}</figcaption></figure>\n"
    )


def _marks(points: Points) -> str:
    radius = 0.004 * max(points.width_px, points.height_px)
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{escape(name)}</title></circle>'
        for name, (x, y) in points.places.items()
    )
    return f'<svg viewBox="0 0 {points.width_px} {points.height_px}" aria-hidden="true">{marks}</svg>'
