"""docs/pool.md says what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edge.pool.endpoint import STAYS, TRANSITIONS
from scripts import pool_diagram

ROOT = Path(__file__).parents[2]


def test_the_page_is_fresh() -> None:
    command = [sys.executable, "scripts/pool_diagram.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_stale_page_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "pool.md"
    page.write_text(
        pool_diagram.PAGE.read_text().replace("<!-- =cooldown_seconds -->60", "<!-- =cooldown_seconds -->61")
    )
    monkeypatch.setattr(pool_diagram, "PAGE", page)
    monkeypatch.setattr(sys, "argv", ["pool_diagram.py", "--check"])
    with pytest.raises(SystemExit, match="run scripts/pool_diagram"):
        pool_diagram.main()
    monkeypatch.setattr(sys, "argv", ["pool_diagram.py"])
    pool_diagram.main()
    assert "<!-- =cooldown_seconds -->60<!-- / -->" in page.read_text()


def test_the_diagram_has_every_move() -> None:
    drawn = pool_diagram.diagram()
    for state, row in TRANSITIONS.items():
        for after in row.values():
            if after is not STAYS and after is not state:
                assert f"{state} --> {after}:" in drawn


def test_a_page_without_a_part_or_with_an_unknown_number_is_refused() -> None:
    page = pool_diagram.PAGE.read_text()
    with pytest.raises(pool_diagram.PageError, match="causes"):
        pool_diagram.written(page.replace("<!-- begin: causes -->", ""))
    with pytest.raises(pool_diagram.PageError, match="no number nonsense"):
        pool_diagram.written(page + "<!-- =nonsense -->1<!-- / -->")
