"""docs/limits.md says what the code does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edge.settings import Limits
from scripts import limits_table
from tests.edge.rest import MEASURE, Rest


def test_the_page_is_current(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["limits_table.py", "--check"])
    limits_table.main()
    stale = tmp_path / "limits.md"
    page = limits_table.PAGE.read_text()
    stale.write_text(page.replace("2 MiB", "3 MiB"))
    monkeypatch.setattr(limits_table, "PAGE", stale)
    monkeypatch.setattr(limits_table, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="is stale"):
        limits_table.main()
    monkeypatch.setattr(sys, "argv", ["limits_table.py"])
    limits_table.main()
    assert stale.read_text() == page


def test_every_limit_that_can_be_set_is_in_it() -> None:
    keys = {row.key for rows in limits_table.TABLES.values() for row in rows}
    assert {f"limits.{name}" for name in Limits.model_fields} <= keys


@pytest.mark.parametrize("header", ["X: a\r\n" * 9, f"X: {'a' * 5000}\r\n"], ids=["many", "long"])
async def test_headers_of_a_part_are_bounded_by_the_parser(rest: Rest, header: str) -> None:
    part = f'--b\r\nContent-Disposition: form-data; name="image"; filename="p"\r\n{header}\r\nx\r\n--b--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    refused = await rest.client.post(MEASURE, content=part.encode(), headers=headers)
    assert (refused.status_code, refused.json()["data"]["reason"]) == (400, "BAD_MULTIPART")
