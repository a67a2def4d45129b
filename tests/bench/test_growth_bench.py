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
from bench.growth_controls import FAKES
from tests.vision.growth.test_proof import job as painted_job
from vision.calls import DesignOptions, Style


@pytest.mark.models
@pytest.mark.timeout(600)
def test_one_person_grown_and_proved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, model_files: object
) -> None:
    monkeypatch.setattr(growth, "STYLES", 1)
    monkeypatch.setattr(growth, "SIDE_PX", 1024)  # half the pixels, half the time
    monkeypatch.setattr(growth, "DEFAULT", DesignOptions(styles=(Style.BELL,)))
    monkeypatch.setattr(sys, "argv", ["growth", "P002", "--keep", str(tmp_path)])
    growth.main()
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["pictures"] == 2, "the widest low design, and the default call"
    assert figures["controls"] == 3 * len(FAKES)
    assert figures["controls_held_out"] == len(FAKES), "the selfie"
    assert figures["outside_changed_pixels"] == 0
    # How many of the fakes pass, and what growth reaches, are the bench's figures, not this test's.
    assert 0 <= figures["controls_passed"] < figures["controls"]
    assert 0 < figures["hair_share_min"] <= figures["hair_share_mean"] <= 1
    assert 0 < figures["edge_mm_median"] < 10
    assert figures["seconds_p50"] > 0
    assert {path.name for path in tmp_path.glob("P002_*.png")} == {"P002_triangular_low.png", "P002_bell.png"}
    sheet = np.asarray(Image.open(io.BytesIO((tmp_path / "P002.png").read_bytes())))
    half = sheet.shape[1] // 2
    before, after = sheet[: len(sheet) // 2, :half], sheet[: len(sheet) // 2, half:]
    assert (before != after).any(), "before and after side by side"
    with Image.open(tmp_path / "P002_bell.png") as picture:
        assert picture.size == (growth.SIDE_PX, growth.SIDE_PX)


def test_held_out_are_selfies() -> None:
    assert (
        growth.held_out(["P001 bell low", "P002 selfie m low", "P010 selfie round low: noise", "P005 m receded"]) == 2
    )


def test_a_pixel_far_from_the_region_that_changed_is_counted_in_the_answer() -> None:
    asked = painted_job()
    sent = asked.scene.rgb.copy()
    sent[asked.region > 0] = 0
    assert growth.changed_outside(asked, sent) == 0
    assert asked.region[0, 0] == 0
    sent[0, 0] += 1
    assert growth.changed_outside(asked, sent) == 1
