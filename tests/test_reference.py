"""The contract's page is what the code says, and the handbook has a word for operators on each of its reasons."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from edge.errors import TABLE
from scripts import reference
from tests.test_docs import rows, words
from vision.types import Stage


def test_page_is_out_of_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["reference.py", "--check"])
    reference.main()
    page = reference.PAGE.read_text()
    stale = tmp_path / "reference.md"
    stale.write_text(page.replace("`NO_FACE` | 400", "`NO_FACE` | 404"))
    monkeypatch.setattr(reference, "PAGE", stale)
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="stale"):
        reference.main()
    monkeypatch.setattr(sys, "argv", ["reference.py"])
    reference.main()
    assert stale.read_text() == page


def test_page_has_every_route_reason_and_answer() -> None:
    page, whole = reference.PAGE.read_text(), reference.document()
    for path, operations in whole["paths"].items():
        for method in operations:
            assert f"| `{method.upper()} {path}` |" in page
    headings = set(re.findall(r"^### (\w+)$", page, re.M))
    assert headings >= set(whole["components"]["schemas"])
    assert [reason for reason in TABLE if f"| `{reason}` | {TABLE[reason].http_status} |" not in page] == []
    assert set(reference.CODES) == {row.code for row in TABLE.values()}


def test_page_has_every_parameter_as_json_names_it() -> None:
    sections = dict(re.findall(r"^## POST (/api/\S+)\n(.*?)(?=^## )", reference.PAGE.read_text(), re.M | re.S))
    for path, operations in reference.document()["paths"].items():
        bodies = operations.get("post", {}).get("requestBody", {}).get("content", {})
        if "multipart/form-data" not in bodies:
            continue
        first_cells = "".join(row.split("|")[1] for row in sections[path].splitlines() if row.startswith("|"))
        named = set(re.findall(r"`(\w+)`", first_cells))
        assert named == {name for body in bodies.values() for name in body["schema"]["properties"]}, path


def test_page_has_every_stage() -> None:
    (rows_of_stages,) = re.findall(r"^### Stages of a call.*?\n\n(.*?)\n\n", reference.PAGE.read_text(), re.M | re.S)
    assert re.findall(r"^\| `(\w+)`", rows_of_stages, re.M) == list(Stage)


def test_handbook_says_of_every_reason_what_an_operator_does() -> None:
    told = [reason for row in rows("Reasons") for reason in sorted(words(row[0]))]
    assert sorted(told) == sorted(TABLE)
