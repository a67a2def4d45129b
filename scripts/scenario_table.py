"""docs/scenarios.md out of tests/scenarios/table/; `--check` says whether it is current and all tests it names exist.

Exit status 1 with --check: the page is stale, a row has no test, or a test that is named does not exist.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scenarios.md"
sys.path.insert(0, str(ROOT))

from tests.scenarios.row import Row  # noqa: E402  (the tree first)
from tests.scenarios.table import REPORTS, SCENARIOS  # noqa: E402

HEAD = """# Scenarios and reports, and the tests that stand for them

Made by `scripts/scenario_table.py` from `tests/scenarios/table/`; a test holds that it is current and that every test
named here exists. `python -m tests.scenarios.mutations` breaks the code in a copy, one behaviour at a time, and shows
that the test named for it fails.
"""


def render() -> str:
    """The page."""
    parts = [HEAD]
    for title, rows in (("Scenarios", SCENARIOS), ("Reports from the field", REPORTS)):
        parts.append(f"\n## {title}\n")
        parts += [_section(row) for row in rows]
    return "".join(parts)


def _section(row: Row) -> str:
    lines = [f"\n**{row.key}.** {row.what} *{row.answer}*\n\n"]
    lines += [f"- `{test}`\n" for test in row.tests]
    return "".join(lines)


def collected(files: Iterable[str]) -> set[str]:
    """Node ids, without parameters, of the tests in these files."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *sorted(set(files))]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603  (our own)
    if result.returncode:
        raise SystemExit(result.stdout + result.stderr)
    return {line.partition("[")[0] for line in result.stdout.splitlines() if "::" in line}


def problems() -> Iterator[str]:
    """What `--check` complains of."""
    rows = (*SCENARIOS, *REPORTS)
    if not PAGE.exists() or PAGE.read_text() != render():
        yield f"{PAGE.relative_to(ROOT)} is stale: run scripts/scenario_table.py"
    for row in rows:
        if not row.tests:
            yield f"{row.key} has no test"
    named = {test: row.key for row in rows for test in row.tests}
    files = {test.partition("::")[0] for test in named}
    missing = {file for file in files if not (ROOT / file).is_file()}
    there = collected(files - missing)
    for test, key in named.items():
        if test not in there:
            yield f"{key} names {test}, which does not exist"


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 when something is wrong")
    if parser.parse_args().check:
        found = list(problems())
        print("\n".join(found), file=sys.stderr)  # noqa: T201
        raise SystemExit(bool(found))
    PAGE.write_text(render())


if __name__ == "__main__":
    main()
