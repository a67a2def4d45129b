"""What other teams take, built once."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NODE_MODULES = ROOT / "protos" / "typescript" / "node_modules"


@dataclass(frozen=True, slots=True)
class Artefacts:
    """What `make stubs` puts into `dist`."""

    wheel: Path
    sdist: Path
    package: Path
    descriptors: Path


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Artefacts:
    """As a release has them."""
    if not NODE_MODULES.is_dir():
        pytest.skip("needs the packages of protos/typescript/package-lock.json: `make setup` with the npm registry")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([ROOT / "scripts" / "stubs.sh", folder], check=True, capture_output=True)
    found = {path.suffix: path for path in folder.iterdir()}
    assert len(found) == 4
    return Artefacts(found[".whl"], found[".gz"], found[".tgz"], found[".binpb"])
