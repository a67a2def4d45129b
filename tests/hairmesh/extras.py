"""Python as it is where nothing but one extra is installed: what else there is cannot be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
ENTRY_POINTS: Mapping[str, str] = {
    "hairmesh": "hairmesh.cli",
    "hairmesh-edge": "edge.__main__",
    "hairmesh-worker": "worker.__main__",
}
STUBS = "hairmesh-protos"
BEGINS = """
import json, sys
absent, module, sys.argv = json.loads(sys.stdin.read())
sys.modules.update(dict.fromkeys(absent))
__import__(module, fromlist=["main"]).main()
"""


def run_with(
    extra: str, program: str, *arguments: str | Path, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program of ours as if `hairmesh[extra]` had been installed, and nothing else; "": no extra at all."""
    given = json.dumps([absent(extra), ENTRY_POINTS[program], [program, *map(str, arguments)]])
    return subprocess.run(
        [sys.executable, "-c", BEGINS],
        cwd=folder,
        env=os.environ | environment,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@cache
def absent(extra: str) -> tuple[str, ...]:
    """Modules that are here and would not be there."""
    there = brought(extra)
    owners = {module: set(map(canonicalize_name, names)) for module, names in metadata.packages_distributions().items()}
    ours = {"edge", "hairmesh", "vision", "worker"}
    owners |= {"hair": {canonicalize_name(STUBS)}}  # an editable install does not tell
    return tuple(sorted(module for module, names in owners.items() if module not in ours and not names & there))


@cache
def brought(extra: str) -> frozenset[str]:
    """Every distribution that pip installs for `hairmesh[extra]`, from pyproject.toml on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    wanted = [(Requirement(f"hairmesh[{extra}]" if extra else "hairmesh"))]
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        found.add(name)
        for of in ("", *requirement.extras):
            if (name, of) in seen:
                continue
            seen.add((name, of))
            if name == "hairmesh":
                lines = project["optional-dependencies"][of] if of else project["dependencies"]
            else:
                lines = metadata.requires(name) or []
            each = map(Requirement, lines)
            wanted += [one for one in each if one.marker is None or one.marker.evaluate({"extra": of})]
    return frozenset(found)
