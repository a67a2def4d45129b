"""docs/sizing.md says what the arithmetic says, and the arithmetic what the real pool does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import sizing
from scripts.sizing_arithmetic import Cell, Site, mean_wait_s, wait_s
from tests.sim.waiting import waits


def test_the_page_is_current(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["sizing.py", "--check"])
    sizing.main()
    page = sizing.PAGE.read_text()
    stale = tmp_path / "sizing.md"
    stale.write_text(page.replace("| 1,000,000 |", "| 1,000,001 |").replace("<!-- =ping_s -->5", "<!-- =ping_s -->6"))
    monkeypatch.setattr(sizing, "PAGE", stale)
    with pytest.raises(SystemExit, match="is stale"):
        sizing.main()
    monkeypatch.setattr(sys, "argv", ["sizing.py"])
    sizing.main()
    assert stale.read_text() == page


def test_waits_by_formula_are_those_of_the_textbook() -> None:
    assert mean_wait_s(1, 1.0, 0.5) == pytest.approx(0.5), "one server: busy / (1 - busy) × time"
    assert wait_s(1, 2.0, 0.5) == float("inf")


@pytest.mark.parametrize("workers", [2, 8, 1000])
def test_waits_by_formula_are_those_of_the_real_pool(workers: int) -> None:
    assert sizing.disagreements(workers) == []


@pytest.mark.parametrize("measures", [10_000, 100_000, 10_000_000])
def test_measurements_wait_no_longer_than_promised_while_hair_grows(measures: int) -> None:
    assert sizing.impatience(Site(measures)) == []


def test_an_edge_keeps_no_more_workers_busy_than_its_door_lets_in() -> None:
    assert waits(100, 1000.0, 0.5, calls=1000, max_in_flight=64).running_most == 64
    cell = Cell(workers=100, edges=3)
    share = cell.workers // (cell.edges - 1)
    crowd = waits(share, 1e6, 0.5, calls=1000, slow_per_s=1e9, slow_call_s=1.0, max_in_flight=cell.max_in_flight)
    assert crowd.running_most == share, "all of them grow hair"
