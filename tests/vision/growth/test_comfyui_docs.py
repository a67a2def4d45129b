"""The page about diffusion servers says what the code does."""

from __future__ import annotations

import re

from tests.vision.growth.comfyui_jobs import ROOT
from vision.growth.comfyui_mishaps import CONSEQUENCES
from vision.growth.comfyui_workflow import Placeholder

PAGE = (ROOT / "docs" / "comfyui.md").read_text()


def test_every_mishap_and_what_becomes_of_it() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| .+ \| `([A-Z_]+)` \| (once )?\|$", PAGE, re.MULTILINE)
    told = {mishap: (reason, bool(again)) for mishap, reason, again in rows}
    assert told == {mishap.value: (each.reason.value, each.again) for mishap, each in CONSEQUENCES.items()}


def test_every_placeholder() -> None:
    table = PAGE.partition("| placeholder |")[2].partition("\n\n")[0]
    assert set(re.findall(r"%[a-z_]+%", table)) == {placeholder.value for placeholder in Placeholder}
