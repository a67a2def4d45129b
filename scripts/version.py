"""The version in every place where it has to stand: `version.py` compares, `version.py 1.2.3` writes it.

Exit status 1: places differ, each is named; or the version is none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "hairmesh/__init__.py"
PLACES: Mapping[str, str] = {
    SOURCE: r'__version__ = "(.+)"',
    "pyproject.toml": r'"hairmesh-protos==(.+?)"',
    "protos/pyproject.toml": r'^version = "(.+)"',
    "protos/typescript/package.json": r'^  "version": "(.+)"',
    "protos/typescript/package-lock.json": r'"name": "@hairmesh/protos",\s+"version": "(.+?)"',
    "deploy/kubernetes/base/kustomization.yaml": r"newTag: ([^\s}]+)",
    "docs/install.md": r"^VERSION=(\d\S*)",
    "docs/stubs.md": r"hairmesh[-_]protos-(\d+\.\d+\.\d+\w*)",
    "docs/by-hand.md": r"hairmesh-protos-(\d+\.\d+\.\d+\w*)",
}
"""By file: what surrounds it. Each place of a file counts, and there is one at least."""
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
"""Of PEP 440 what semantic versioning knows too, but for the spelling of what comes before a release."""


def current(root: Path = ROOT) -> str:
    """The version of the checkout."""
    found: list[str] = re.findall(PLACES[SOURCE], (root / SOURCE).read_text(), re.M)
    return found[0]


def differing(root: Path = ROOT) -> Iterator[str]:
    """Places that say something else, as `file: what it says`."""
    wanted = current(root)
    for name, pattern in PLACES.items():
        said = re.findall(pattern, (root / name).read_text(), re.M)
        yield from (f"{name}: {each}" for each in said if each != wanted)
        if not said:
            yield f"{name}: no version where one is looked for"


def write(version: str, root: Path = ROOT) -> None:
    """Put it into every place."""
    for name, pattern in PLACES.items():
        path = root / name
        path.write_text(re.sub(pattern, lambda found: _with(found, version), path.read_text(), flags=re.M))


def _with(found: re.Match[str], version: str) -> str:
    begin, end = found.start(1) - found.start(), found.end(1) - found.start()
    return f"{found[0][:begin]}{version}{found[0][end:]}"


def main(arguments: list[str]) -> None:
    """See the module."""
    if arguments:
        if not VERSION.fullmatch(arguments[0]):
            sys.exit(f"{arguments[0]} is no version such as 1.2.3 or 1.2.3rc1")
        write(arguments[0])
    if wrong := list(differing()):
        sys.exit("\n".join([f"{SOURCE} says {current()}, but:", *wrong]))
    sys.stdout.write(f"{current()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
