"""Words of the pictures and the font that draws them."""

from __future__ import annotations

from importlib.resources import as_file, files

import pytest
from fontTools.ttLib import TTFont
from google.protobuf.descriptor import Descriptor
from hair.analysis.v1 import measure_pb2

from vision import labels
from vision.drawing import FONT_FILE, text_width
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
    assert labels.interval(scale, Lang.ZH) == "95% 区间 ±6.9%"
    assert labels.interval(scale, Lang.EN) == "95% interval ±6.9%"


def test_text_width_is_proportional() -> None:
    assert text_width("上庭") == pytest.approx(2.0, abs=0.02)
    assert 0.4 < text_width("0") < 0.7
