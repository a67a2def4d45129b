"""The first pages: the Chinese one says what the English one says, and no page of the documentation is left out."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from hairmesh.stack import free_ports

ROOT = Path(__file__).parent.parent
ENGLISH, CHINESE = ((ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md"))
INDEX = (ROOT / "docs" / "README.md").read_text()
WORDS_MAX = 600
"""Of the first page without its code: what is read in two minutes."""


def code(page: str) -> list[str]:
    """Lines of its blocks, without remarks."""
    return [re.sub(r"\s+# .*", "", line) for line in page.splitlines() if line.startswith("    ")]


def outline(page: str) -> list[str]:
    """What its lines begin: headings, tables, lists, code, pictures, paragraphs; each run of them once."""
    kinds = [
        next((kind for kind in ("# ", "## ", "| ", "|--", "- ", "    ", "![") if line.startswith(kind)), "text")
        for line in page.splitlines()
        if (line and not line.startswith("  ")) or line.startswith("    ")
    ]
    return [kind for number, kind in enumerate(kinds) if kind != "text" or kinds[number - 1 : number] != ["text"]]


def links(page: str) -> list[str]:
    """Where it leads, but for pictures and the other language."""
    found = re.findall(r"(?<!!)\[[^\]]*(?:\[[^\]]*\])?[^\]]*\]\(([^)\s]+)\)", page)
    return [target for target in found if not target.startswith("README")]


def test_both_have_the_same_commands() -> None:
    assert code(CHINESE) == code(ENGLISH)
    assert len(code(ENGLISH)) > 10


def test_both_have_the_same_parts() -> None:
    assert outline(CHINESE) == outline(ENGLISH)


def test_both_lead_to_the_same_places_and_to_each_other() -> None:
    assert links(CHINESE) == links(ENGLISH)
    assert "](README.zh-CN.md)" in ENGLISH
    assert "](README.md)" in CHINESE


def test_both_name_the_same_things() -> None:
    """Names of settings, routes and files are the same in any language."""
    named = [set(re.findall(r"`([^`]+)`", re.sub(r"\s+# .*", "", page))) for page in (ENGLISH, CHINESE)]
    assert named[0] == named[1]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_every_page_is_in_the_index(page: Path) -> None:
    assert page.name == "README.md" or f"]({page.name})" in INDEX


def test_it_is_read_in_two_minutes() -> None:
    text = re.sub(r"^    .*$", "", ENGLISH, flags=re.MULTILINE)
    assert len(re.sub(r"\]\([^)]*\)", "]", text).split()) <= WORDS_MAX
    assert ENGLISH.index("![") < ENGLISH.index("    make demo") < ENGLISH.index("    make test") < 1_000


def test_the_picture_of_each_is_there() -> None:
    for page in (ENGLISH, CHINESE):
        (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page)
        assert (ROOT / picture).stat().st_size > 10_000


@pytest.mark.models
@pytest.mark.skipif(shutil.which("openssl") is None, reason="a line is for openssl")
def test_running_it_line_by_line(tmp_path: Path) -> None:
    """From an empty folder to a worker that is online, by the lines of the index of all pages alone."""
    section = INDEX.partition("## Running it")[2].partition("\n## ")[0]
    first, _ = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
    lines = [line.strip() for line in code(first)]
    for port, free in zip(("28187", "8080"), ports := free_ports(2), strict=True):
        lines = [line.replace(port, str(free)) for line in lines]
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    *before, worker, edge = lines
    subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(before)], cwd=tmp_path, check=True, timeout=60)
    environment = {**os.environ, "HEALTH_MIN_FREE_GB": "0"}  # what is free here is no matter of the page
    started = [
        subprocess.Popen(shlex.split(line), cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
        for line in (worker, edge)
    ]
    try:
        until_s = time.monotonic() + 120
        while monitored(ports[1]) != 1:
            ended = [each.communicate()[1].decode() for each in started if each.poll() is not None]
            assert not ended
            assert time.monotonic() < until_s
            time.sleep(0.2)
    finally:
        for each in reversed(started):
            each.terminate()
            each.communicate(timeout=60)


def monitored(port: int) -> int | None:
    """How many workers are online by an edge; None while it does not answer."""
    try:
        return int(httpx.get(f"http://127.0.0.1:{port}/monitor", trust_env=False).json()["workers_healthy"])
    except httpx.TransportError:
        return None
