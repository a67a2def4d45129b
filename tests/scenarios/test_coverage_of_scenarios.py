"""Every scenario and every report has a test that exists, and the page about them is current."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios.row import Row
from tests.scenarios.table import REPORTS, SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
DESIGN = ROOT.parent / "shared" / "design"


def test_the_page_is_current_and_every_test_it_names_exists() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "scenario_table.py"), "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def scenario_numbers() -> set[str]:
    """As the design numbers them; 22 are two."""
    text = (DESIGN / "pool-scenarios.md").read_text()
    numbers = {match[1] for match in re.finditer(r"^(\d+)\. ", text, re.MULTILINE)}
    return numbers - {"22"} | {"22a", "22b"}


def report_ids() -> set[str]:
    """As they came in."""
    with (DESIGN / "field-reports.tsv").open(newline="") as file:
        return {row["id"] for row in csv.DictReader(file, delimiter="\t")}


@pytest.mark.parametrize(
    ("asked", "rows"), [(scenario_numbers, SCENARIOS), (report_ids, REPORTS)], ids=["scenarios", "reports"]
)
def test_none_is_left_out(asked: Callable[[], set[str]], rows: tuple[Row, ...]) -> None:
    if not DESIGN.is_dir():
        pytest.skip("the design is not here")
    keys = [row.key for row in rows]
    assert set(keys) == asked()
    assert len(keys) == len(set(keys))


def test_every_one_has_a_test() -> None:
    assert [row.key for row in (*SCENARIOS, *REPORTS) if not row.tests] == []
