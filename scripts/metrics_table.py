"""The tables in docs/metrics.md out of those of the code; `--check` only says whether they are current.

Exit status 1 with --check: the page is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "metrics.md"
sys.path.insert(0, str(ROOT))

from edge import metrics as edge  # noqa: E402  (the tree first)
from hairmesh.metrics import BUILD_INFO, Metric  # noqa: E402
from worker import metrics as worker  # noqa: E402

TABLES: Mapping[str, Mapping[str, Metric]] = {
    "every process": {BUILD_INFO.name: BUILD_INFO},
    "edge": edge.TABLE,
    "worker": worker.TABLE,
}


def markdown(rows: Mapping[str, Metric]) -> str:
    """One table as it stands in the page."""
    lines = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for metric in rows.values():
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |")
    return "\n".join(lines)


def rewritten(page: str) -> str:
    """The page with the tables of now between its marks."""
    for name, rows in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{markdown(rows)}\n{end}{rest.partition(end)[2]}"
    return page


def main() -> None:
    """Write the page, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    page = PAGE.read_text()
    if not parser.parse_args().check:
        PAGE.write_text(rewritten(page))
    elif rewritten(page) != page:
        sys.exit(f"{PAGE.name} is stale: run scripts/metrics_table.py")


if __name__ == "__main__":
    main()
