"""The picture of a design: thin lines on the face, all words below it, nothing else changed."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.conftest import studio_portrait
from tests.vision.annotate_faces import invented_facts
from tests.vision.conftest import photo_of, resized
from vision import labels
from vision.calls import DesignOptions, HairlineDesign, HairlineHeight, Sex, Style
from vision.designs import design_hairlines, draw_design
from vision.designs.draw import plan_design
from vision.drawing import Dot, Picture, Plate, Rect, Stroke, Text, Wash, render
from vision.sheet import TEAL, WHITE
from vision.types import Facts, HairlineState, Label, Lang, MeasureOptions, NoProgress, RgbImage

if TYPE_CHECKING:
    from vision.pipeline import Pipeline  # tests of drawing alone do not load the models' runtimes

LOW = DesignOptions(sex=Sex.FEMALE, height=HairlineHeight.LOW)


def designed(facts: Facts, style: Style = Style.ROUND, options: DesignOptions = LOW) -> HairlineDesign:
    (design,) = design_hairlines(facts, replace(options, styles=(style,)))
    return design


def texts(picture: Picture) -> list[str]:
    return [mark.text for mark in picture.marks if isinstance(mark, Text)]


def strip(picture: Picture) -> Rect:
    (found,) = [mark.rect for mark in picture.marks if isinstance(mark, Plate)]
    return found


def curves(picture: Picture) -> list[Stroke]:
    """The pieces of the design, without the strip's legend."""
    top = strip(picture).y
    strokes = [mark for mark in picture.marks if isinstance(mark, Stroke) and mark.colour == WHITE]
    return [stroke for stroke in strokes if stroke.points[:, 1].max() < top]


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(200, 1400),
    shape=st.floats(0.7, 1.5),
    face_width=st.floats(0.15, 0.7),
    y=st.floats(0.4, 0.6),
    roll_deg=st.floats(-30, 30),
    hidden=st.sampled_from([None, None, HairlineState.OCCLUDED, HairlineState.HAT, HairlineState.NONE]),
    with_scale=st.booleans(),
    lang=st.sampled_from(Lang),
    max_side_px=st.sampled_from([256, 1024, 2048]),
    style=st.sampled_from(Style),
)
def test_words_stand_below_the_face_and_inside_the_picture(
    width: int,
    shape: float,
    face_width: float,
    y: float,
    roll_deg: float,
    hidden: HairlineState | None,
    with_scale: bool,
    lang: Lang,
    max_side_px: int,
    style: Style,
) -> None:
    facts = invented_facts(
        width,
        round(width * shape),
        face_width=face_width,
        centre=(0.5, y),
        roll_deg=roll_deg,
        hidden=hidden,
        with_scale=with_scale,
        warnings=("CHILD", "PERSPECTIVE"),
    )
    picture = plan_design(facts, designed(facts, style), lang, max_side_px)
    assert max(picture.width_px, picture.height_px) <= max_side_px
    canvas = Rect(0, 0, picture.width_px, picture.height_px).grown(1)
    below = strip(picture)
    assert canvas.holds(below)
    assert canvas.holds(picture.photo)
    assert all(below.holds(mark.rect) for mark in picture.marks if isinstance(mark, Text))
    rects = [mark.rect for mark in picture.marks if isinstance(mark, Text)]
    assert not any(a.overlaps(b) for a, b in pairwise(rects))
    mesh = (facts.landmarks.points[:, 1] + 0.5) * (picture.photo.h / facts.photo.height_px) + picture.photo.y
    assert below.y >= mesh.max() - 1


@pytest.mark.parametrize("lang", list(Lang))
def test_what_it_says(lang: Lang) -> None:
    facts = invented_facts()
    design = designed(facts)
    said = texts(plan_design(facts, design, lang, 2048))
    assert design.height.mm is not None
    assert design.area_cm2 is not None
    assert design.area_interval_cm2 is not None
    assert design.grafts is not None
    low, high = design.area_interval_cm2.low, design.area_interval_cm2.high
    assert {Lang.ZH: "圆形", Lang.EN: "Round"}[lang] in said
    name = {Lang.ZH: "额正中高", Lang.EN: "Mid-frontal height"}[lang]
    assert f"{name} {design.height.mm:.1f} mm" in said
    area = {Lang.ZH: "待种植 {} cm²（{}–{}）", Lang.EN: "To fill {} cm² ({}–{})"}[lang]
    assert area.format(f"{design.area_cm2:.1f}", f"{low:.1f}", f"{high:.1f}") in said
    # More digits would claim to be known.
    rounded = round(design.grafts, -1) if design.grafts >= 100 else design.grafts
    assert {Lang.ZH: f"约 {rounded} 单位（40/cm²）", Lang.EN: f"about {rounded} grafts (40 per cm²)"}[lang] in said
    assert labels.DESIGN(lang) in said
    assert labels.PRESENT_HAIRLINE(lang) in said


def test_broken_rules_stand_on_the_picture_by_name() -> None:
    facts = invented_facts()
    design = designed(facts, options=DesignOptions(sex=Sex.MALE))
    broken = [labels.RULE[rule.name].en for rule in design.rules if not rule.kept]
    assert broken
    assert f"Not kept: {', '.join(broken)}" in texts(plan_design(facts, design, Lang.EN, 2048))
    kept = replace(design, rules=tuple(rule for rule in design.rules if rule.kept))
    assert not any("Not kept" in text for text in texts(plan_design(facts, kept, Lang.EN, 2048)))


@pytest.mark.parametrize("state", [HairlineState.OCCLUDED, HairlineState.HAT, HairlineState.NONE])
def test_a_hidden_hairline_is_said_and_not_drawn(state: HairlineState) -> None:
    facts = invented_facts(hidden=state)
    picture = plan_design(facts, designed(facts), Lang.ZH, 2048)
    said = texts(picture)
    assert labels.NO_AREA[state].zh in said
    assert labels.PRESENT_HAIRLINE.zh not in said
    assert not any("cm²" in text for text in said)
    assert not [mark for mark in picture.marks if isinstance(mark, Stroke) and mark.colour == TEAL]
    assert curves(picture)


def test_without_a_scale_no_millimetres() -> None:
    facts = invented_facts(with_scale=False)
    said = texts(plan_design(facts, designed(facts), Lang.EN, 2048))
    assert "Round" in said
    assert not any("mm" in text.split() or "cm²" in text for text in said)


def test_a_design_inside_the_present_hair_is_dashed_there() -> None:
    facts = invented_facts()
    high = designed(facts, Style.STRAIGHT, DesignOptions(sex=Sex.MALE, height=HairlineHeight.HIGH))
    picture = plan_design(facts, high, Lang.EN, 2048)
    assert any(curve.dash_px for curve in curves(picture))
    assert labels.DESIGN_ON_HAIR.en in texts(picture)
    bald = invented_facts(hidden=HairlineState.NONE)
    before = plan_design(bald, designed(bald, Style.STRAIGHT), Lang.EN, 2048)
    assert not any(curve.dash_px for curve in curves(before))
    assert labels.DESIGN_ON_HAIR.en not in texts(before)


def test_the_curve_lies_where_the_design_does() -> None:
    facts = invented_facts(1000, 1000)
    design = designed(facts)
    for max_side_px in (1000, 500):
        picture = plan_design(facts, design, Lang.ZH, max_side_px)
        scale = picture.photo.h / 1000
        expected = (design.curve + 0.5) * scale - 0.5 + (picture.photo.x, picture.photo.y)
        drawn = np.vstack([curve.points for curve in curves(picture)])
        assert np.hypot(*(drawn[:, None] - expected[None]).transpose(2, 0, 1)).min(axis=0).max() < 0.5
        dots = np.array([mark.centre for mark in picture.marks if isinstance(mark, Dot)])
        for point in (design.mid_point, design.left_temple_point, design.right_temple_point):
            marked = (np.array(point) + 0.5) * scale - 0.5 + (picture.photo.x, picture.photo.y)
            assert np.hypot(*(dots - marked).T).min() < 1


def test_regions_are_washed() -> None:
    facts = invented_facts()
    design = designed(facts)
    assert design.regions
    washes = [mark for mark in plan_design(facts, design, Lang.ZH, 2048).marks if isinstance(mark, Wash)]
    for wash, region in zip(washes, design.regions, strict=True):
        np.testing.assert_allclose(wash.points, region, atol=1e-6)


def test_a_wash_tints_and_hatches_its_polygon_and_nothing_else() -> None:
    rgb = np.full((120, 160, 3), 90, dtype=np.uint8)
    corners = np.array([(30.0, 20.0), (130.0, 20.0), (130.0, 90.0), (30.0, 90.0)])
    wash = Wash(corners, TEAL, 0.2, 12.0, 0.6)
    canvas = render(rgb, Picture(160, 120, Rect(0, 0, 160, 120), (wash,)))
    inside = canvas[24:86, 34:126, 1].astype(int)
    assert inside.min() > 90
    assert inside.max() > inside.min() + 50  # lines on a lighter ground
    assert 0.03 < (inside > (inside.max() + inside.min()) / 2).mean() < 0.4
    canvas[18:93, 28:133] = 90
    np.testing.assert_array_equal(canvas, rgb)


def chunks(png: bytes) -> set[bytes]:
    at, names = 8, set()
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        names.add(png[at + 4 : at + 8])
        at += 12 + length
    return names


def decoded(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR_RGB), dtype=np.uint8)


def test_the_png_holds_the_drawing_and_nothing_else() -> None:
    facts = invented_facts(700, 640)
    design = designed(facts)
    image = draw_design(facts, design, Lang.ZH, 2048)
    assert chunks(image.data) == {b"IHDR", b"IDAT", b"IEND"}
    assert decoded(image.data).shape == (image.height_px, image.width_px, 3)
    np.testing.assert_array_equal(
        decoded(image.data), render(facts.photo.rgb, plan_design(facts, design, Lang.ZH, 2048))
    )


def test_the_face_below_the_brows_is_left_alone() -> None:
    facts = invented_facts(1000, 1000)
    before = facts.photo.rgb.copy()
    picture = plan_design(facts, designed(facts), Lang.ZH, 2048)
    canvas = render(facts.photo.rgb, picture)
    np.testing.assert_array_equal(facts.photo.rgb, before)
    brows = int(facts.landmarks.points[9, 1]) + 12
    chin = int(facts.landmarks.points[152, 1])
    x, y = round(picture.photo.x), round(picture.photo.y)
    np.testing.assert_array_equal(canvas[y + brows : y + chin, x : x + 1000], before[brows:chin])
    assert (canvas[y : y + brows, x : x + 1000] != before[:brows]).any(axis=2).mean() > 0.01


@pytest.mark.models
def test_a_receded_man_gets_his_temples_filled(pipeline: Pipeline, read_rgb: Callable[[Path], RgbImage]) -> None:
    photo = photo_of(resized(read_rgb(studio_portrait(5)), 1000))
    facts = pipeline.facts(photo, MeasureOptions(), NoProgress())
    face = facts.parsing.probabilities[Label.SKIN]
    to_map = facts.parsing.map_from_photo
    for design in design_hairlines(facts, DesignOptions(sex=Sex.MALE)):
        assert design.area_cm2 is not None
        assert 1 < design.area_cm2 < 40
        # What is to be filled is skin, not hair or background.
        region = np.zeros(face.shape, dtype=np.uint8)
        for outline in design.regions:
            cv2.fillPoly(region, [np.rint(outline @ to_map[:, :2].T + to_map[:, 2]).astype(np.int32)], 1)
        assert face[region == 1].mean() > 0.5
        image = draw_design(facts, design, Lang.ZH, 2048)
        assert (image.width_px, image.height_px) == (1000, 1000)
