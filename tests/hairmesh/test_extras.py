"""A program whose packages are not installed says in a line which extra brings them, and that extra is enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hairmesh.extras import brought, run_with

NOBODY = "127.0.0.1:9"
TAKES = [
    ("hairmesh-edge", ["--version"], "edge", 0),
    ("hairmesh-worker", ["--version"], "worker", 0),
    ("hairmesh", ["certs", "dev", "--out", "certs"], "edge", 0),
    ("hairmesh", ["config", "explain", "listen"], "edge", 0),
    ("hairmesh", ["config", "schema"], "edge", 0),
    ("hairmesh", ["health", NOBODY], "edge", 3),
    ("hairmesh", ["watch", "worker", NOBODY, "--once", "--start-grace", "0", "--interval", "0.05"], "edge", 1),
    ("hairmesh", ["models", "fetch", "--dir", "file/below"], "edge-vision", 1),
]
"""Program, arguments, the extra it takes, its exit status with that: of what it does then, not of what it lacks."""


@pytest.mark.parametrize(("program", "arguments", "extra", "status"), TAKES, ids=str)
def test_the_extra_that_is_named_is_enough(
    program: str, arguments: list[str], extra: str, status: int, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    without = run_with("", program, *arguments, folder=tmp_path)
    assert (without.returncode, without.stdout) == (2, "")
    (told,) = without.stderr.splitlines()
    assert told.startswith(f"{program}: this takes the package ")
    assert told.endswith(f", which is not installed: install hairmesh[{extra}]")
    there = run_with(extra, program, *arguments, folder=tmp_path)
    assert there.returncode == status, there.stderr
    assert "not installed" not in there.stderr


@pytest.mark.parametrize(
    ("there", "program", "arguments", "extra"),
    [
        ("edge-vision", "hairmesh-worker", ["--config", "c.json"], "worker"),
        ("edge", "hairmesh", ["models", "fetch"], "edge-vision"),
        ("worker", "hairmesh", ["serve", "--workers", "1"], "demo"),
    ],
)
def test_another_extra_is_not(there: str, program: str, arguments: list[str], extra: str, tmp_path: Path) -> None:
    result = run_with(there, program, *arguments, folder=tmp_path)
    assert result.returncode == 2
    (told,) = result.stderr.splitlines()
    assert told.endswith(f"install hairmesh[{extra}]")


@pytest.mark.parametrize("arguments", [["version"], ["models", "list"], ["analyze", ".", "--url", f"http://{NOBODY}"]])
def test_what_takes_no_extra(arguments: list[str], tmp_path: Path) -> None:
    assert "not installed" not in run_with("", "hairmesh", *arguments, folder=tmp_path).stderr


def test_a_module_of_ours_that_is_missing_is_a_fault_and_shown_as_one(tmp_path: Path) -> None:
    (tmp_path / "hair").mkdir()
    (tmp_path / "hair" / "__init__.py").write_text("")
    result = run_with("edge", "hairmesh-edge", "--version", folder=tmp_path)
    assert "No module named 'hair." in result.stderr
    assert "install hairmesh[" not in result.stderr


def test_an_edge_carries_nothing_heavy() -> None:
    assert not {"torch", "onnx", "mediapipe", "numpy"} & brought("edge")
    assert not {"torch", "onnx"} & brought("edge-vision")
