"""The bench of growth on one person: its fakes fail, the person's own hair passes, and its figures are there."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench import growth

pytestmark = pytest.mark.models


def test_one_person_grown_and_proved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, model_files: object
) -> None:
    monkeypatch.setattr(growth, "STYLES", 1)
    monkeypatch.setattr(sys, "argv", ["growth", "P002", "--keep", str(tmp_path)])
    growth.main()
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["pictures"] == 1
    assert figures["controls"] == 3
    assert figures["controls_passed"] == figures["moved_failed"] == figures["outside_changed_pixels"] == 0
    assert figures["hair_share_min"] == figures["hair_share_mean"] > 0.6
    assert figures["edge_mm_median"] < 4
    assert figures["seconds_p50"] > 0
    (whole,) = tmp_path.glob("P002_*.png")
    sheet = np.asarray(Image.open(io.BytesIO((tmp_path / "P002.png").read_bytes())))
    before, after = np.hsplit(sheet, 2)
    assert (before != after).any(), "before and after side by side"
    with Image.open(whole) as picture:
        assert picture.size == (growth.SIDE_PX, growth.SIDE_PX)
