"""What v1 promises: a change of the protos that breaks a program is refused, one that breaks none is not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hairmesh

ROOT = Path(__file__).parents[2]
BUF = Path(sys.executable).parent / "buf"
RELEASED = ROOT / "protos" / "released"
ANALYSIS, WORKER = "hair/analysis/v1", "hair/worker/v1"

BREAKING = {
    "a field that goes away": (f"{ANALYSIS}/common.proto", "  bytes data = 1;\n", ""),
    "another number": (f"{ANALYSIS}/common.proto", "string media_type = 2;", "string media_type = 7;"),
    "another name": (f"{ANALYSIS}/common.proto", "string media_type = 2;", "string mime_type = 2;"),
    "another type": (f"{ANALYSIS}/common.proto", "float x_px = 1;\n", "double x_px = 1;\n"),
    "many instead of one": (f"{ANALYSIS}/growth.proto", "  string style = 1;", "  repeated string style = 1;"),
    "a value that goes away": (f"{ANALYSIS}/common.proto", "  LANGUAGE_EN = 2;\n", ""),
    "an RPC that goes away": (
        f"{WORKER}/worker_service.proto",
        "  rpc Drain(DrainRequest) returns (DrainResponse);\n",
        "",
    ),
    "an RPC that streams now": (
        f"{ANALYSIS}/analyze_service.proto",
        "returns (MeasureResponse)",
        "returns (stream MeasureResponse)",
    ),
    "another package": (f"{WORKER}/worker_service.proto", "package hair.worker.v1;", "package hair.worker.v2;"),
}
HARMLESS = {
    "a new field": (f"{ANALYSIS}/common.proto", "  bytes data = 1;\n", "  bytes data = 1;\n  string name = 9;\n"),
    "a new value": (f"{ANALYSIS}/common.proto", "  LANGUAGE_EN = 2;\n", "  LANGUAGE_EN = 2;\n  LANGUAGE_FR = 3;\n"),
    "a new RPC": (
        f"{WORKER}/worker_service.proto",
        "  rpc Drain(",
        "  rpc Undrain(DrainRequest) returns (DrainResponse);\n  rpc Drain(",
    ),
    "deprecation": (f"{ANALYSIS}/common.proto", "string media_type = 2;", "string media_type = 2 [deprecated = true];"),
}


def compare(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts" / "breaking.sh"],
        env={**os.environ, "BUF": str(BUF)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Another checkout, as far as protos go."""
    for name in ("protos/hair", "protos/released"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("buf.yaml", "scripts/breaking.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def change(checkout: Path, file: str, before: str, after: str) -> None:
    path = checkout / "protos" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def test_nothing_that_was_released_is_broken() -> None:
    done = compare(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", BREAKING)
def test_a_change_that_breaks_programs_is_refused(checkout: Path, name: str) -> None:
    file, before, after = BREAKING[name]
    change(checkout, file, before, after)
    done = compare(checkout)
    assert done.returncode != 0
    assert file.rpartition("/")[0] in done.stdout
    assert "docs/stubs.md" in done.stderr


def test_changes_that_break_none_are_not(checkout: Path) -> None:
    for file, before, after in HARMLESS.values():
        change(checkout, file, before, after)
    done = compare(checkout)
    assert done.returncode == 0, done.stdout


def test_ci_compares() -> None:
    planned = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "scripts/breaking.sh" in planned
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_every_release_is_promised() -> None:
    """And nothing else, but for the version that is next."""
    released = set(re.findall(r"^## \[(\d+\.\d+\.\d+)\] - ", (ROOT / "CHANGELOG.md").read_text(), re.M))
    kept = {path.stem for path in RELEASED.glob("*.binpb")}
    assert kept, "without one, nothing is compared"
    assert released <= kept <= released | {hairmesh.__version__}
