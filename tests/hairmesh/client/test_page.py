"""docs/client.md: its code runs, its commands run, and its tables are those of the code."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from hairmesh import client
from hairmesh.client import errors
from hairmesh.client.patience import PAUSES_S
from tests.edge.documented import ADMIN_TOKEN, talkative_edge
from tests.edge.rest import PHOTO, Rest

PAGE = (Path(__file__).parents[3] / "docs" / "client.md").read_text()
BIN = Path(sys.executable).parent


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def in_the_package() -> str:
    """The example in the docstring of `hairmesh.client`."""
    lines = str(client.__doc__).splitlines()
    return textwrap.dedent("\n".join(line for line in lines if not line or line.startswith("    ")))


@pytest.fixture
async def rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faces").mkdir()
    for name in ("faces/anna.jpg", "portrait.jpg"):
        (tmp_path / name).write_bytes(PHOTO)
    async with talkative_edge(tmp_path) as rest:
        yield rest


async def test_its_code_runs(rest: Rest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{rest.port}"

    def run() -> None:
        names: dict[str, Any] = {"__name__": "page", "ADMIN_TOKEN": ADMIN_TOKEN, "key": "any"}
        for number, block in enumerate([*blocks("python"), in_the_package()]):
            code = compile(block.replace("https://face.example", url), f"client.md, block {number}", "exec")
            exec(code, names)

    await asyncio.to_thread(run)
    said = capsys.readouterr().out
    assert "{'annotated': PosixPath('out/annotated.png')}" in said
    assert (tmp_path / "out/annotated.png").is_file()
    assert "{'hair': 'http" in said
    assert "no answer" not in said
    assert said.endswith("\n1\n1.0\n")  # pictures removed; the scale in the package's own example


async def test_its_commands_run(rest: Rest, tmp_path: Path) -> None:
    script = "\n".join(blocks("sh")).replace("https://face.example", f"http://127.0.0.1:{rest.port}")
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert said.decode().count("1 photo: 1 answered") == script.count("hairmesh analyze ")
    there = {str(path.relative_to("out/analysis")) for path in Path("out/analysis").rglob("*.*")}
    (listing,) = re.findall(r"^For `faces/anna.jpg`.*?\n\n(.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    named = {line.split()[0] for line in listing.splitlines()}
    assert named - there == {"failures.measure.json"}
    assert (tmp_path / "anna.jsonl").read_text().count("\n") == 1


def test_its_table_names_every_exception() -> None:
    table = set(re.findall(r"`(\w+Error)`", "".join(line for line in PAGE.splitlines() if line.startswith("|"))))
    public = {
        name
        for name in client.__all__
        if isinstance(getattr(client, name), type) and issubclass(getattr(client, name), Exception)
    }
    assert table == public
    assert {row.error.__name__ for row in errors.TABLE.values()} <= public


def test_it_says_what_is_asked_again() -> None:
    (told,) = re.findall(r"time alone mends it: (.*?), after", PAGE, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", told)) == {reason for reason, row in errors.TABLE.items() if row.again}
    pauses_s = PAUSES_S[client.UnreachableError]
    assert f"tried {['no', 'one', 'two', 'three', 'four'][len(pauses_s)]} times more within 8 s" in PAGE
    assert 7 < sum(pauses_s) < 8
