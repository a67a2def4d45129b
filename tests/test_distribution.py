"""What is released: wheels that run where no checkout is, the same bytes each time, one version in every place."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

import pytest

import hairmesh
from scripts import reference, version

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PACKAGES = ("edge", "hairmesh", "vision", "worker")

# What needs files beside the code, where it is installed: the contract, the console, the font of pictures.
NEEDS_FILES = """
import json, hairmesh
from importlib.resources import files
from edge.app import create_app
from vision.drawing import text_width
from edge.settings import parse
from edge.upstream.driver import Driver
settings = parse(json.dumps({"workers": ["127.0.0.1:1"], "shared_password": "x", "static": {"dir": "p"}}).encode())
paths = create_app(settings, Driver(settings.pool(), "x", settings.worker_tls)).openapi()["paths"]
assert text_width("发际线") > text_width("i")
print(hairmesh.__file__, len(paths), len([*files("edge").joinpath("console/web").iterdir()]))
"""


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Standard output of a command that does well, in a folder that is no checkout and with no hint of one."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        command, cwd=folder, env=kept | environment, capture_output=True, text=True, check=False, timeout=1500
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def tracked(*folders: str) -> set[str]:
    """Files of the checkout that git has, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}


def empty_environment(folder: Path) -> Path:
    """An environment of Python alone; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of service and stubs, built of a copy, so that nothing is left beside the code."""
    folder = tmp_path_factory.mktemp("wheels")
    copy = folder / "tree"
    for name in tracked(*PACKAGES, "protos/python") | {
        *("pyproject.toml", "LICENSE", "README.md", "MANIFEST.in"),
        *(f"protos/{name}" for name in ("pyproject.toml", "LICENSE", "README.md")),
    }:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    build = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder)
    run(*build, copy, copy / "protos", folder=folder)
    return sorted(folder.glob("*.whl"))


def test_wheel_holds_every_file_of_the_packages_and_no_other(wheels: list[Path]) -> None:
    service, stubs = wheels
    with zipfile.ZipFile(service) as archive:
        names = set(archive.namelist())
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("dist-info/METADATA"))
    assert {name for name in names if ".dist-info/" not in name} == tracked(*PACKAGES)
    assert {"LICENSE", "OFL.txt"} <= {Path(name).name for name in names if "/licenses/" in name}
    assert f"Version: {hairmesh.__version__}\n" in metadata
    assert "License-Expression: Apache-2.0\n" in metadata
    with zipfile.ZipFile(stubs) as archive:
        modules = {f"protos/python/{name}" for name in archive.namelist() if ".dist-info/" not in name}
    assert modules == {name for name in tracked("protos/python") if name.endswith((".py", ".pyi", "py.typed"))}


def test_wheels_run_where_there_is_no_checkout(wheels: list[Path], tmp_path: Path) -> None:
    """With the packages of this environment, but not its editable install."""
    python = empty_environment(tmp_path / "venv")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index")
    run(*pip, *wheels, folder=tmp_path)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for program in ("hairmesh", "hairmesh-edge", "hairmesh-worker"):
        assert run(python.parent / program, "--version", folder=folder).strip() == hairmesh.__version__
    for name, placeholder in (("edge_config", "change-me"), ("worker_config", "replace-me")):
        example = (ROOT / f"{name}.example.json").read_text()
        (folder / f"{name}.json").write_text(example.replace(placeholder, "our-own-secret"))
        run(python.parent / "hairmesh", "config", "check", f"{name}.json", folder=folder)
    where, routes, console = run(python, "-c", NEEDS_FILES, folder=folder).split()
    assert Path(where).is_relative_to(site)
    assert int(routes) > 15
    assert int(console) == len(tracked("edge/console/web"))


def test_one_version_in_every_place(tmp_path: Path) -> None:
    assert list(version.differing()) == []
    for name in version.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    version.write("7.8.9rc1", tmp_path)
    assert list(version.differing(tmp_path)) == []
    for name, pattern in version.PLACES.items():
        before, after = ((root / name).read_text() for root in (ROOT, tmp_path))
        assert set(re.findall(pattern, after, re.M)) == {"7.8.9rc1"}, name
        assert after.replace("7.8.9rc1", hairmesh.__version__) == before, name
    other = tmp_path / "protos" / "pyproject.toml"
    other.write_text(other.read_text().replace('"7.8.9rc1"', '"7.8.8"'))
    assert list(version.differing(tmp_path)) == ["protos/pyproject.toml: 7.8.8"]


def test_openapi_document_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    """In whatever order sets are walked; a team generates its types of it without a running edge."""
    for seed in ("1", "2"):
        run(sys.executable, "-m", "scripts.openapi", tmp_path / seed, folder=ROOT, PYTHONHASHSEED=seed)
    written = (tmp_path / "1").read_bytes()
    assert written == (tmp_path / "2").read_bytes()
    document = json.loads(written)
    assert document == reference.document()
    assert document["info"]["version"] == hairmesh.__version__
    assert tempfile.gettempdir().encode() not in written


def test_changelog_begins_with_what_is_to_come_or_with_this_version() -> None:
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] in {("Unreleased", ""), (hairmesh.__version__, headings[0][1])}
    assert all(date for name, date in headings if name != "Unreleased")
