"""Answers set-up's question whether there is anything to install; standard library only.

`installed.py packages` exits 0 when this interpreter has every pin of requirements.lock; `installed.py project` when it
has our two distributions from this very checkout, installed since their metadata last changed (`--record` notes that
they now are). Otherwise it exits 1 and says what differs.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMP = Path(sys.prefix, "hairmesh-installed.json")
DISTRIBUTIONS = {"hairmesh": ROOT, "hairmesh-protos": ROOT / "protos"}


def differing_pins() -> list[str]:
    """Pins of requirements.lock that are not installed; a local version (`2.13.0+cpu`) counts as its release."""
    installed = {_normalized(str(dist.name)): dist.version for dist in metadata.distributions()}
    differing = []
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        pin = line.split("#")[0].strip()
        if not pin:
            continue
        name, version = pin.split("==")
        present = installed.get(_normalized(name))
        if present is None or present.split("+")[0] != version:
            differing.append(pin)
    return differing


def _normalized(name: str) -> str:
    """A distribution's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def project_state() -> dict[str, object]:
    """Where each distribution must be installed from, and a fingerprint of what its metadata is made of."""
    made_of: list[object] = [(ROOT / "hairmesh" / "__init__.py").read_text()]
    for folder in DISTRIBUTIONS.values():
        content = tomllib.loads((folder / "pyproject.toml").read_text())
        made_of += [content["build-system"], content["project"], content["tool"]["setuptools"]]
    fingerprint = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()
    return {"metadata": fingerprint, **{name: folder.as_uri() for name, folder in DISTRIBUTIONS.items()}}


def installed_from(name: str) -> str | None:
    """The folder's URL when the distribution is an editable install, else None."""
    try:
        record = metadata.distribution(name).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    return str(json.loads(record)["url"]) if record else None


def project_differs() -> bool:
    """Whether one of our distributions is missing, comes from elsewhere, or has changed metadata."""
    if any(installed_from(name) != folder.as_uri() for name, folder in DISTRIBUTIONS.items()):
        return True
    return not STAMP.exists() or json.loads(STAMP.read_text()) != project_state()


def main(arguments: list[str]) -> int:
    """Exit status: 0 nothing to do, 1 something to install, 2 wrong usage."""
    match arguments:
        case ["packages"]:
            differing = differing_pins()
            if differing:
                more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
                sys.stdout.write(f"setup: not in .venv yet: {', '.join(differing[:3])}{more}\n")
            return 1 if differing else 0
        case ["project"]:
            return 1 if project_differs() else 0
        case ["--record", "project"]:
            STAMP.write_text(json.dumps(project_state(), indent=1))
            return 0
    sys.stderr.write(__doc__ or "")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
