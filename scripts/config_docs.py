"""The tables in docs/configuration.md out of the settings of edge and worker; `--check` says whether they are current.

Exit status 1 with --check: the page is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "configuration.md"
sys.path.insert(0, str(ROOT))

from hairmesh.config_schema import SIDES, SideName, of  # noqa: E402  (the tree first)
from hairmesh.config_words import EFFECTS, Key, keys  # noqa: E402


def markdown(side: SideName) -> str:
    """Every key of one file: those at the top first, then section by section."""
    parts = []
    of_section = {name: list(group) for name, group in groupby(sorted(keys(side), key=_section), key=_section)}
    parts.append(_table(of_section.pop(""), side, with_effect=True))
    for name, node in of(side)["properties"].items():
        if name in of_section:
            about = " ".join(node["description"].split())
            parts.append(f"### {side}: `{name}`\n\n{about} A change is **{EFFECTS[node['x-takes-effect']]}**.\n")
            parts.append(_table(of_section[name], side, with_effect=False))
    return "\n".join(parts)


def _section(key: Key) -> str:
    return key.name.partition(".")[0] if "." in key.name and "[]" not in key.name.partition(".")[0] else ""


def _table(rows: Iterable[Key], side: SideName, *, with_effect: bool) -> str:
    head = ["key", "what it is", "default"]
    head += ["a change is"] if with_effect else []
    head += ["environment"] if side == "worker" else []
    head += ["meaning"]
    cells = [_row(key, with_effect=with_effect, variable=side == "worker") for key in rows]
    return "".join([_line(head), f"{'|---' * len(head)}|\n", *map(_line, cells)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _row(key: Key, *, with_effect: bool, variable: bool) -> Iterator[str]:
    yield f"`{key.name if with_effect else key.name.partition('.')[2]}`"
    yield key.kind
    yield f"`{key.default}`" if key.default else "must be given"
    if with_effect:
        yield EFFECTS[key.effect]
    if variable:
        yield f"`{key.variable}`" if key.variable else ""
    yield " ".join(key.meaning.split())


def rewritten(page: str) -> str:
    """The page with the tables of now between its marks."""
    for side in SIDES:
        begin, end = f"<!-- {side} -->\n", f"\n<!-- end of {side} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{markdown(side)}{end}{rest.partition(end)[2]}"
    return page


def main() -> None:
    """Write the page, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    page = PAGE.read_text()
    if not parser.parse_args().check:
        PAGE.write_text(rewritten(page))
    elif rewritten(page) != page:
        sys.exit(f"{PAGE.name} is stale: run scripts/config_docs.py")


if __name__ == "__main__":
    main()
