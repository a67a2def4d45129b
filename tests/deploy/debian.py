"""Debian systems made of its packages in a folder, and what a build of the images finds there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.monitoring import ROOT

ALLOWED: Final = (ROOT / ".dockerignore").read_text().splitlines()
SOURCE: Final = (
    ".dockerignore",
    "deploy/docker",
    *(rule[1:] for rule in ALLOWED if rule.startswith("!") and "docker" not in rule),
)
"""What the images are built of."""
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def skip_without(*programs: str, package: str) -> None:
    """Skip the test where there is no root, or one of them is missing."""
    if os.geteuid() != 0:
        pytest.skip("a root of its own takes root")
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here: apt-get install {package}")


def install(release: str, root: Path, *packages: str) -> None:
    """Debian in `root`, as small as it gets, and these packages."""
    more = [f"--include={','.join(packages)}"] if packages else []
    command = ["debootstrap", "--variant=minbase", *more, release, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def trust_whom_this_machine_trusts(root: Path) -> None:
    """Where a proxy has a certificate of its own, builds have to know it."""
    if _CERTIFICATES.exists():
        (own := root / "usr" / "local" / "share" / "ca-certificates").mkdir(parents=True)
        shutil.copy(_CERTIFICATES, own / "here.crt")


def pip_settings() -> str:
    """This machine's own settings of pip, for builds that have no others."""
    kept = ("cert", "find-links", "index-url")
    lines = [line.partition("=") for line in _pip("config", "list").splitlines()]
    values = {name.rpartition(".")[2]: value.strip("'") for name, _, value in lines if name.startswith("global.")}
    return "[global]\n" + "".join(f"{key} = {values[key]}\n" for key in kept if key in values)


def wheel_folders() -> list[str]:
    """Folders of this machine that its pip finds wheels in."""
    return [place for place in pip_settings().split() if place.startswith("/") and Path(place).is_dir()]


def copy_source(folder: Path, *more: str) -> None:
    """What the images are built of, and `more` of the checkout, where nobody changes it meanwhile."""
    for name in (*SOURCE, *more):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(ROOT / name, place, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / name, place)


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
