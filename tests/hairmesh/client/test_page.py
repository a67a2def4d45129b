"""docs/client.md: its code runs, its commands run, and its tables are those of the code."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PIL.ExifTags import Base

from edge import errors as edge_errors
from hairmesh import client
from hairmesh.client import errors
from hairmesh.client.errors import Again
from hairmesh.client.patience import OF_SLOW_CALLS, UNREACHABLE_S
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
    on_its_side = Image.Exif()
    on_its_side[Base.Orientation] = 6
    Image.new("RGB", (4000, 3000)).save(tmp_path / "faces/large.jpg", exif=on_its_side)

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
    with Image.open(tmp_path / "small/large.jpg") as small:
        assert (small.size, dict(small.getexif())) == ((1536, 2048), {})
    assert "no answer" not in said
    assert said.endswith("\n1\n1.0\n")  # pictures removed; the scale in the package's own example


def test_its_code_is_typed(tmp_path: Path) -> None:
    """As one program, for a type checker that is as strict as it can be."""
    given = 'ADMIN_TOKEN = "token"\nkey = "key"\n'
    (tmp_path / "page.py").write_text("\n".join([given, *blocks("python"), in_the_package()]))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", "page.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


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
    """Row by row: which reasons, for how long, and whether slow calls too."""
    (table,) = re.findall(r"^\| what came back .*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.strip().splitlines()[2:]]
    order = (Again.AS_TOLD, Again.UNKEPT, Again.NO_EDGE, Again.PERHAPS_NO_EDGE, Again.LOST, Again.NEVER)
    assert set(order) == set(Again)
    for kind, (came_back, _of_it, fast, slow) in zip(order, rows, strict=True):
        reasons = {reason for reason, row in errors.TABLE.items() if row.again is kind}
        named = set(re.findall(r"`([A-Z_]+)`", came_back))
        assert named == reasons if kind is not Again.NEVER else named <= reasons, kind
        assert (fast == "no") == (kind is Again.NEVER), kind
        assert (slow == "no") == (kind not in OF_SLOW_CALLS), kind
    assert rows[2][2].startswith(f"for {UNREACHABLE_S:.0f} s")


def test_what_it_says_to_other_languages_is_what_ours_does() -> None:
    (told,) = re.findall(r"^\*\*In another language\*\*.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    once = {reason for reason in re.findall(r"`([A-Z_]+)`", told) if reason in errors.TABLE}
    later = {reason for reason, row in edge_errors.TABLE.items() if row.code == edge_errors.SYSTEM}
    assert all(edge_errors.TABLE[reason].retry_after_s for reason in later)
    by_us = {reason for reason in later if errors.TABLE[reason].again in {Again.NEVER, Again.LOST}}
    assert once == {reason for reason in by_us if not reason.startswith("LOCAL_")}
