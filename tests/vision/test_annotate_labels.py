"""Words of the pictures and the font that draws them."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

import numpy as np
import pytest
from fontTools.ttLib import TTFont
from google.protobuf.descriptor import Descriptor
from hair.analysis.v1 import measure_pb2

from vision import labels
from vision.drawing import FONT_FILE, LINE_HEIGHT, Picture, Rect, Text, render, text_width
from vision.types import HairlineState, IntervalCauses, Lang, Scale, ScaleSource


@pytest.fixture(scope="module")
def drawable() -> set[str]:
    with as_file(files("vision") / "fonts" / FONT_FILE) as path, TTFont(path) as font:
        return {chr(code) for code in font.getBestCmap()}


def dotted_names(message: Descriptor) -> set[str]:
    """Names of all quantities in the answer of the measure call."""
    names = set()
    for field in message.fields:
        inner = field.message_type
        assert inner is not None
        names |= (
            {field.name} if inner.name == "Measurement" else {f"{field.name}.{name}" for name in dotted_names(inner)}
        )
    return names


def test_every_quantity_of_the_answer_has_a_name_in_both_languages() -> None:
    assert set(labels.MEASUREMENT) == dotted_names(measure_pb2.Measurements.DESCRIPTOR)
    for words in labels.MEASUREMENT.values():
        assert words.zh
        assert words.en
    assert len({words.zh for words in labels.MEASUREMENT.values()}) == len(labels.MEASUREMENT)


def test_the_font_has_every_character_and_no_more(drawable: set[str]) -> None:
    assert drawable == labels.characters(), "run scripts/subset_font.py"


def test_the_font_brings_its_licence() -> None:
    fonts = files("vision") / "fonts"
    assert "SIL OPEN FONT LICENSE Version 1.1" in (fonts / "OFL.txt").read_text(encoding="utf-8")
    with as_file(fonts / FONT_FILE) as path, TTFont(path) as font:
        assert "SIL Open Font License" in font["name"].getDebugName(13)
        assert path.stat().st_size < 60_000


def test_hidden_hairlines_all_have_a_note() -> None:
    assert set(labels.HAIRLINE_NOTE) == set(HairlineState) - {HairlineState.OBSERVED}


def test_numbers() -> None:
    assert labels.mm(58.349) == "58.3 mm"
    assert labels.share(0.3149) == "31%"
    assert labels.times(0.8) == "0.80"
    scale = Scale(0.2, ScaleSource.IRIS, IntervalCauses(6.4, 2.0, 1.5), None, None)
    assert labels.scale(scale, Lang.ZH) == "比例尺：虹膜 ±6.9%（95%）"
    assert labels.scale(scale, Lang.EN) == "Scale: iris ±6.9% (95%)"
    assert "%" not in labels.scale(replace(scale, mm_per_px=None, source=None), Lang.EN)


def test_text_width_is_proportional() -> None:
    assert text_width("上庭") == pytest.approx(2.0, abs=0.02)
    assert 0.4 < text_width("0") < 0.7


@pytest.mark.parametrize("size_px", [13.9, 21.3, 24.5, 33.0])
@pytest.mark.parametrize("words", list(labels.WARNING.values()), ids=list(labels.WARNING))
def test_long_lines_keep_their_last_letters(words: labels.Words, size_px: float) -> None:
    for text in words:
        width = round(text_width(text) * size_px)
        line = Text(text, Rect(20, 20, width, LINE_HEIGHT * size_px), size_px, (255, 255, 255))
        inked = []
        for shown in (line, replace(line, rect=line.rect._replace(w=width + 90))):  # room changes nothing
            picture = Picture(width + 120, 80, Rect(0, 0, width + 120, 80), (shown,))
            inked.append(render(np.zeros((80, width + 120, 3), dtype=np.uint8), picture))
        np.testing.assert_array_equal(inked[0], inked[1])
        last = int(np.flatnonzero(inked[0].any(axis=(0, 2)))[-1])
        assert last == pytest.approx(20 + width, abs=0.04 * width + size_px)
