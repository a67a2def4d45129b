"""The page of licences names the models, the font and every package that asks for more than its name."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from vision.models import MANIFEST

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "licences.md").read_text()
STRICT = re.compile(r"\b[AL]?GPL|\bMPL\b|Mozilla Public|General Public|EUPL|CDDL|SSPL")


def installed() -> set[str]:
    """What is pinned and is here: some packages are for other systems."""
    here: set[str] = {canonicalize_name(each.name) for each in metadata.distributions()}
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return here & {canonicalize_name(Requirement(line).name) for line in lines if "==" in line}


def licence(name: str) -> str:
    """What a package says of itself, and of what its wheel holds besides."""
    distribution = metadata.distribution(name)
    told = distribution.metadata
    said = [told[key].partition("\n")[0] for key in ("License-Expression", "License") if key in told][:1]
    said += [each for each in told.get_all("Classifier") or [] if each.startswith("License")]
    bundled = [file for file in distribution.files or [] if re.search(r"bundled|3rd-?party", file.name, re.I)]
    return "\n".join([*said, *(Path(str(file.locate())).read_text(errors="replace") for file in bundled)])


def test_strict_packages_are_named() -> None:
    strict = {name for name in installed() if STRICT.search(licence(name))}
    assert {"pillow-heif", "orjson"} <= strict
    assert sorted(name for name in strict if f"`{name}`" not in PAGE) == []


def test_models_and_font_are_named_as_the_code_has_them() -> None:
    for spec in MANIFEST:
        assert f"| `{spec.name}` | {spec.what} | {spec.licence} |" in PAGE
    for font in (ROOT / "vision" / "fonts").glob("*.otf"):
        assert f"`vision/fonts/{font.name}`" in PAGE
