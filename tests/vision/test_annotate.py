"""The annotated picture: what it says, and that no label lies on another, on the face or outside the canvas."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.conftest import SHARED_PORTRAITS, selfie, studio_portrait
from tests.vision.annotate_faces import invented_facts
from tests.vision.conftest import photo_of, resized
from vision.annotate import annotate, plan
from vision.drawing import PLATE, Colour, Picture, Plate, Rect, Stroke, Text, render
from vision.label_layout import crosses
from vision.labels import HAIRLINE_NOTE, LESS_CERTAIN, WARNING
from vision.sheet import AMBER, BLUE, PLATE_ALPHA, SOFT, TEAL, WHITE
from vision.types import (
    Facts,
    HairlineState,
    Interval,
    Lang,
    Measurement,
    MeasureOptions,
    NoProgress,
    Points,
    RgbImage,
)

if TYPE_CHECKING:
    from vision.pipeline import Pipeline  # tests of drawing alone do not load the models' runtimes


def plates(picture: Picture) -> list[Rect]:
    """Of the labels, without the caption's strip."""
    return [mark.rect for mark in picture.marks if isinstance(mark, Plate) and mark.radius_px > 0]


def strip(picture: Picture) -> Rect:
    (found,) = [mark.rect for mark in picture.marks if isinstance(mark, Plate) and mark.radius_px == 0]
    return found


def texts(picture: Picture) -> list[str]:
    return [mark.text for mark in picture.marks if isinstance(mark, Text)]


def on_canvas(picture: Picture, facts: Facts, points: Points) -> Points:
    scale = picture.photo.w / facts.photo.width_px
    placed = (points + 0.5) * scale - 0.5 + (picture.photo.x, picture.photo.y)
    return np.asarray(placed, dtype=np.float64)


def outline(picture: Picture, facts: Facts) -> Points:
    """Convex outline of the mesh and the observed hairline, on the canvas."""
    line = [(p.x_px, p.y_px) for p in facts.hairline.points if p.state is HairlineState.OBSERVED]
    points = np.vstack([facts.landmarks.points, *([line] if line else [])])
    hull = cv2.convexHull(on_canvas(picture, facts, points).astype(np.float32))
    return np.asarray(hull.reshape(-1, 2), dtype=np.float64)


def covers(rect: Rect, polygon: Points) -> bool:
    corners = [(rect.x, rect.y), (rect.right, rect.y), (rect.right, rect.bottom), (rect.x, rect.bottom)]
    area, _ = cv2.intersectConvexConvex(np.array(corners, dtype=np.float32), polygon.astype(np.float32))
    return bool(area > 0)


def check_layout(facts: Facts, lang: Lang, max_side_px: int) -> Picture:
    picture = plan(facts, lang, max_side_px)
    assert max(picture.width_px, picture.height_px) <= max_side_px
    assert picture.photo.w <= facts.photo.width_px
    assert picture.photo.h <= facts.photo.height_px
    canvas = Rect(0, 0, picture.width_px, picture.height_px).grown(1)
    assert canvas.holds(picture.photo)
    labels = [*plates(picture), strip(picture)]
    assert all(canvas.holds(label) for label in labels)
    assert all(any(label.holds(mark.rect) for label in labels) for mark in picture.marks if isinstance(mark, Text))
    assert not any(a.overlaps(b) for a, b in combinations(labels, 2))
    face = outline(picture, facts)
    assert not any(covers(label, face) for label in labels)
    return picture


@settings(max_examples=120, deadline=None)
@given(
    width=st.integers(200, 1400),
    shape=st.floats(0.7, 1.5),
    face_width=st.floats(0.15, 0.7),
    x=st.floats(0.4, 0.6),
    y=st.floats(0.4, 0.55),
    roll_deg=st.floats(-30, 30),
    hidden=st.sampled_from([None, None, HairlineState.OCCLUDED, HairlineState.HAT, HairlineState.NONE]),
    with_scale=st.booleans(),
    lang=st.sampled_from(Lang),
    max_side_px=st.sampled_from([256, 1024, 2048]),
)
def test_labels_never_touch_each_other_or_the_face(
    width: int,
    shape: float,
    face_width: float,
    x: float,
    y: float,
    roll_deg: float,
    hidden: HairlineState | None,
    with_scale: bool,
    lang: Lang,
    max_side_px: int,
) -> None:
    facts = invented_facts(
        width,
        round(width * shape),
        face_width=face_width,
        centre=(x, y),
        roll_deg=roll_deg,
        hidden=hidden,
        with_scale=with_scale,
        warnings=("CHILD", "PERSPECTIVE"),
    )
    check_layout(facts, lang, max_side_px)


@pytest.mark.parametrize("roll_deg", [-25.0, -8.0, 0.0, 8.0, 25.0])
def test_no_label_lies_on_a_court_line(roll_deg: float) -> None:
    picture = plan(invented_facts(1200, 1200, roll_deg=roll_deg), Lang.ZH, 2048)
    white = [m for m in picture.marks if isinstance(m, Stroke) and m.colour == (255, 255, 255)]
    long_lines = [m.points for m in white if np.linalg.norm(m.points[1] - m.points[0]) > 100]
    assert len(long_lines) == 5  # four courts' lines and their ruler
    assert not any(crosses(plate, line) for plate in plates(picture) for line in long_lines)


@pytest.mark.parametrize("lang", list(Lang))
def test_what_it_says(lang: Lang) -> None:
    facts = invented_facts()
    said = texts(plan(facts, lang, 2048))
    upper = facts.measurements["thirds.upper"]
    assert upper.mm is not None
    assert upper.ratio is not None
    name = {Lang.ZH: "上庭", Lang.EN: "Upper third"}[lang]
    assert f"{name} {100 * upper.ratio:.0f}%" in " ".join(said)
    assert f"{upper.mm:.1f} mm" in said
    for name in ("right_outer", "right_eye", "middle", "left_eye", "left_outer"):
        fifth = facts.measurements[f"fifths.{name}"]
        assert f"{fifth.mm:.1f}" in said
    right = facts.measurements["brow_to_hairline.right"]
    assert {Lang.ZH: "右", Lang.EN: "R"}[lang] + f" {right.mm:.1f} mm" in said
    assert {Lang.ZH: "比例尺：虹膜 ±6.9%（95%）", Lang.EN: "Scale: iris ±6.9% (95%)"}[lang] in said


def test_what_it_says_of_its_certainty_holds_for_every_value() -> None:
    """The interval named is the scale's; no value's own is narrower, and the picture says that they are wider."""
    facts = invented_facts()
    assert LESS_CERTAIN.en in texts(plan(facts, Lang.EN, 2048))
    for found in facts.measurements.values():
        if found.mm is not None and found.interval_mm is not None and found.interval_mm.low > 0:
            half_pct = 50 * (found.interval_mm.high - found.interval_mm.low) / found.mm
            assert half_pct >= facts.scale.causes.total_pct - 0.01


def test_fifths_stand_in_the_order_of_the_photo() -> None:
    facts = invented_facts()
    picture = plan(facts, Lang.ZH, 2048)
    place = {mark.text: mark.rect.x for mark in picture.marks if isinstance(mark, Text)}
    outer_right, outer_left = (facts.measurements[f"fifths.{side}_outer"] for side in ("right", "left"))
    # The subject's right is the viewer's left.
    assert place[f"{outer_right.mm:.1f}"] < place[f"{outer_left.mm:.1f}"]


@pytest.mark.parametrize("state", [HairlineState.OCCLUDED, HairlineState.HAT, HairlineState.NONE])
@pytest.mark.parametrize("lang", list(Lang))
def test_a_hairline_that_was_not_seen_is_not_drawn_but_noted(state: HairlineState, lang: Lang) -> None:
    picture = plan(invented_facts(hidden=state), lang, 2048)
    said = texts(picture)
    assert HAIRLINE_NOTE[state](lang) in said
    assert not any(text.startswith(("上庭", "Upper")) for text in said)
    assert any(text in {"中庭", "Middle third"} for text in said)
    assert not any(text.endswith("%") for text in said)  # no shares without the whole
    assert not [mark for mark in picture.marks if isinstance(mark, Stroke) and mark.colour == TEAL]


def test_the_hairline_is_drawn_where_it_was_seen() -> None:
    facts = invented_facts()
    states = [HairlineState.OBSERVED] * 41
    states[:5] = [HairlineState.OCCLUDED] * 5
    states[10:14] = [HairlineState.OCCLUDED] * 4
    states[30:33] = [HairlineState.HAT] * 3
    line = tuple(replace(p, state=state) for p, state in zip(facts.hairline.points, states, strict=True))
    facts = replace(facts, hairline=replace(facts.hairline, points=line))
    marks = plan(facts, Lang.ZH, 2048).marks
    curves = [mark for mark in marks if isinstance(mark, Stroke) and mark.colour == TEAL and len(mark.points) > 2]
    assert [len(curve.points) for curve in curves] == [5, 16, 8]


def test_a_temple_recession_that_may_be_none_is_not_drawn() -> None:
    facts = invented_facts()
    assert any("额角退缩" in text for text in texts(plan(facts, Lang.ZH, 2048)))
    none = {f"temple_recession.{side}": Measurement(mm=0.4, interval_mm=Interval(0, 2.4)) for side in ("left", "right")}
    facts = replace(facts, measurements={**facts.measurements, **none})
    assert not any("额角退缩" in text for text in texts(plan(facts, Lang.ZH, 2048)))


def test_warnings_stand_on_the_picture() -> None:
    said = texts(plan(invented_facts(warnings=("CHILD", "SOMETHING_FOR_MACHINES")), Lang.ZH, 2048))
    assert WARNING["CHILD"].zh in said
    assert not any("SOMETHING" in text for text in said)


def test_without_a_scale_only_proportions_are_said() -> None:
    picture = plan(invented_facts(with_scale=False, warnings=("SCALE_UNCERTAIN",)), Lang.EN, 2048)
    said = texts(picture)
    assert "No scale: proportions only" in said
    assert WARNING["SCALE_UNCERTAIN"].en in said
    assert LESS_CERTAIN.en not in said
    assert not any("width" in text or "Brow" in text for text in said)
    strokes = [mark for mark in picture.marks if isinstance(mark, Stroke)]
    assert len([mark for mark in strokes if mark.colour == TEAL]) == 2  # the hairline and its sign in the caption
    assert len([mark for mark in strokes if mark.colour == BLUE]) == 6 * 3 + 1  # the fifths: three to each end, a ruler
    assert not any("mm" in text.split() or "±" in text for text in said)
    assert any(text.startswith("Upper third ") for text in said)


def test_a_roomy_photo_keeps_its_size_and_a_tight_one_gets_panels() -> None:
    roomy = plan(invented_facts(1600, 1600, face_width=0.3, centre=(0.5, 0.4)), Lang.ZH, 2048)
    assert (roomy.width_px, roomy.height_px) == (1600, 1600)
    tight = plan(invented_facts(600, 700, face_width=0.85), Lang.ZH, 2048)
    assert tight.width_px > 600
    assert (tight.photo.w, tight.photo.h) == (600, 700)


def test_text_is_legible_at_half_size() -> None:
    for side in (250, 900, 2048):
        picture = plan(invented_facts(side, side), Lang.ZH, 2048)
        smallest = min(mark.size_px for mark in picture.marks if isinstance(mark, Text))
        assert smallest / 2 >= 6
        assert smallest / max(picture.width_px, picture.height_px) >= 0.012


def luminance(colour: NDArray[np.float64]) -> float:
    """WCAG's relative luminance of an sRGB colour, 0 to 255 a channel."""
    share = colour / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


@pytest.mark.parametrize(("colour", "least"), [(WHITE, 4.5), (SOFT, 3.0), (TEAL, 3.0), (BLUE, 3.0), (AMBER, 3.0)])
def test_text_is_readable_in_front_of_a_white_wall(colour: Colour, least: float) -> None:
    plate = 255 * (1 - PLATE_ALPHA) + np.array(PLATE) * PLATE_ALPHA
    assert (luminance(np.array(colour, dtype=np.float64)) + 0.05) / (luminance(plate) + 0.05) >= least


def chunks(png: bytes) -> list[bytes]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, names = 8, []
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        names.append(png[at + 4 : at + 8])
        at += 12 + length
    return names


def test_the_png_holds_the_drawing_and_nothing_else() -> None:
    facts = invented_facts(700, 640)
    image = annotate(facts, Lang.ZH, 2048)
    assert set(chunks(image.data)) == {b"IHDR", b"IDAT", b"IEND"}
    assert image.media_type == "image/png"
    decoded = np.asarray(cv2.imdecode(np.frombuffer(image.data, dtype=np.uint8), cv2.IMREAD_COLOR_RGB))
    assert decoded.shape == (image.height_px, image.width_px, 3)
    np.testing.assert_array_equal(decoded, render(facts.photo.rgb, plan(facts, Lang.ZH, 2048)))
    assert annotate(facts, Lang.ZH, 2048).data == image.data


def test_the_photo_shows_through_unchanged_where_nothing_is_drawn() -> None:
    facts = invented_facts(1000, 1000)
    picture = plan(facts, Lang.ZH, 2048)
    before = facts.photo.rgb.copy()
    canvas = render(facts.photo.rgb, picture)
    np.testing.assert_array_equal(facts.photo.rgb, before)
    assert (picture.width_px, picture.height_px) == (1000, 1000)
    changed = (canvas != before).any(axis=2)
    assert 0.01 < changed.mean() < 0.25
    for eye in (468, 473):  # the pupils stay free
        x, y = np.rint(facts.landmarks.points[eye]).astype(int)
        assert not changed[y - 8 : y + 9, x - 8 : x + 9].any()


def test_a_large_photo_is_reduced() -> None:
    image = annotate(invented_facts(3000, 2000), Lang.EN, 1024)
    assert max(image.width_px, image.height_px) == 1024


REAL = [
    *((studio_portrait(number), 1024) for number in (2, 4, 9)),
    (studio_portrait(6), 300),
    (selfie(4), 848),
    *((SHARED_PORTRAITS / f"synthetic_{number:02}.jpg", 600) for number in (2, 4, 9, 11, 12)),
]
"""Curly hair, cut hair, long hair; small; tilted; long hair, an infant, glasses, shaved, bangs."""


@pytest.mark.models
@pytest.mark.parametrize(("path", "width_px"), REAL, ids=lambda value: getattr(value, "stem", value))
def test_real_portraits(path: Path, width_px: int, pipeline: Pipeline, read_rgb: Callable[[Path], RgbImage]) -> None:
    if not path.is_file():
        pytest.skip("the shared test portraits are not here")
    facts = pipeline.facts(photo_of(resized(read_rgb(path), width_px)), MeasureOptions(), NoProgress())
    for lang in Lang:
        said = texts(check_layout(facts, lang, 2048))
        if facts.hairline.trichion is None:
            assert HAIRLINE_NOTE[facts.hairline.status](lang) in said
