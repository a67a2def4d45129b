"""An environment with one wheel in it and what that wheel asks for, and nothing else: made without asking an index.

What it asks for is copied from the environment of the tests, file by file as each distribution lists them: so a
dependency that the wheel does not name is not there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where its packages lie."""
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    @property
    def distributions(self) -> dict[str, metadata.Distribution]:
        """What is installed, by name."""
        found = metadata.distributions(path=[str(self.site_packages)])
        return {canonicalize_name(each.name): each for each in found}

    def copy(self, name: str) -> None:
        """Put a distribution of the tests' own environment in, and what it needs."""
        if canonicalize_name(name) in self.distributions:
            return
        distribution = metadata.distribution(name)
        for file in distribution.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                place = self.site_packages / file
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(distribution.locate_file(file)), place)
        for needed in needs(distribution):
            self.copy(needed)


def needs(distribution: metadata.Distribution) -> Iterator[str]:
    """Names of what it asks for here, without extras."""
    for requirement in map(Requirement, distribution.requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


def environment_of(wheel: Path, folder: Path) -> Environment:
    """One with this wheel."""
    venv.create(folder, with_pip=False, symlinks=True)
    environment = Environment(folder)
    pip = [sys.executable, "-m", "pip", "--python", str(environment.python), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    (installed,) = environment.distributions.values()
    for name in needs(installed):
        environment.copy(name)
    return environment
