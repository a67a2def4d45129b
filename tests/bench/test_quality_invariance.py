"""Variants of a picture, and what counts as having moved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.portraits.invariance import apart, movements, widest
from bench.portraits.numbers import CALLS, Call, moved_pct
from bench.portraits.variants import MIRROR, VARIANTS, mirrored_name
from tests.vision.measured_faces import hairline_of, laid, scale_of
from tests.vision.painted_forehead import paint
from vision.anthropometry import measure_face
from vision.hairline import find_hairline
from vision.types import Box, Facts, Interval, Measurement


def measurement(mm: float | None, half_mm: float = 1.0) -> Measurement:
    if mm is None:
        return Measurement(unavailable_reason="HAIRLINE_OCCLUDED")
    return Measurement(mm=mm, interval_same_person_mm=Interval(mm - half_mm, mm + half_mm))


def test_a_value_is_outside_when_it_moves_further_than_its_interval() -> None:
    before = {"a": measurement(50), "b": measurement(50), "c": measurement(None), "d": measurement(50)}
    after = {"a": measurement(50.9), "b": measurement(48.9), "c": measurement(50), "d": measurement(None)}
    moved, gone = movements(before, after)
    assert {movement.name: movement.outside for movement in moved} == {"a": False, "b": True}
    assert [movement.pct for movement in moved] == pytest.approx([1.8, 2.2])
    assert gone == ["d"]


def test_two_photos_of_one_person_may_differ_by_what_both_intervals_allow() -> None:
    first = {"a": measurement(50, 3), "b": measurement(50, 3), "c": measurement(None), "d": measurement(50)}
    second = {"a": measurement(54.9, 4), "b": measurement(44.9, 4), "c": measurement(50), "d": measurement(None)}
    assert apart(first, second) == {"a": False, "b": True}


def test_values_near_nil_do_not_move_by_hundreds_of_percent() -> None:
    (moved,), _ = movements({"a": measurement(0.1)}, {"a": measurement(0.6)})
    assert moved.pct == pytest.approx(5)


def test_the_widest_interval_is_told_of_every_value_and_says_what_is_left_out() -> None:
    near_nil = Measurement(mm=0.5, interval_mm=Interval(0, 2.5))
    short = Measurement(mm=20, interval_mm=Interval(16, 24))
    long = [Measurement(mm=130, interval_mm=Interval(130 - half, 130 + half)) for half in (13, 6.5)]
    hidden = Measurement(unavailable_reason="HAIRLINE_OCCLUDED")
    found = widest(
        {"face_width": width, "fifths.left_outer": short, "temple_recession.left": near_nil, "face_height": hidden}
        for width in long
    )
    assert list(found) == ["fifths.left_outer", "face_width", "temple_recession.left"]
    assert [width.pct for width in found.values()] == pytest.approx([20, 10, 0])
    assert [width.mm for width in found.values()] == pytest.approx([4, 13, 2])
    assert [width.left_out for width in found.values()] == [True, False, True]


def test_every_name_has_its_twin_in_the_mirror() -> None:
    face = laid()
    names = set(measure_face(face, hairline_of(face), scale_of()))
    assert {mirrored_name(name) for name in names} == names
    assert mirrored_name("fifths.left_outer") == "fifths.right_outer"
    assert mirrored_name("brow_to_hairline.right") == "brow_to_hairline.left"
    assert mirrored_name("thirds.upper") == "thirds.upper"


@pytest.mark.parametrize("name", list(VARIANTS))
def test_variants_keep_the_face_in_the_picture(name: str) -> None:
    rgb = np.zeros((800, 900, 3), dtype=np.uint8)
    box = Box(300, 250, 300, 380)
    rgb[250:630, 300:600] = 200
    changed = VARIANTS[name](rgb, box)
    share = (changed > 100).mean() * changed.shape[0] * changed.shape[1]
    whole = 300 * 380 / (4 if name == "half size" else 1)
    assert share == pytest.approx(whole, rel=0.02)


def test_the_mirror_is_a_mirror() -> None:
    rgb = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert (VARIANTS[MIRROR](rgb, Box(0, 0, 1, 1))[:, ::-1] == rgb).all()


def test_numbers_move_in_percent_of_themselves_but_not_near_nil() -> None:
    call = Call(lambda _facts: {}, near_zero=10.0)
    moved = moved_pct(call, {"a": 50.0, "b": 1.0, "gone": 3.0}, {"a": 51.0, "b": 2.0, "new": 1.0}, mirrored=False)
    assert moved == pytest.approx({"a": 2.0, "b": 10.0})


def test_in_the_mirror_a_number_is_compared_with_that_of_the_other_side() -> None:
    call = Call(lambda _facts: {})
    before = {"fifths.left_outer": 20.0, "fifths.right_outer": 40.0}
    after = {"fifths.left_outer": 40.0, "fifths.right_outer": 20.0}
    assert set(moved_pct(call, before, after, mirrored=True).values()) == {0.0}
    assert set(moved_pct(call, before, after, mirrored=False).values()) == {100.0, 50.0}


def test_the_numbers_of_every_call_are_there() -> None:
    forehead = paint()
    parsing = replace(forehead.parsing, probabilities=forehead.parsing.probabilities[:, :248, :248])
    hairline = find_hairline(forehead.photo, forehead.landmarks, forehead.parsing)
    scale = scale_of()
    measurements = measure_face(forehead.landmarks, hairline, scale)
    facts = Facts(forehead.photo, forehead.landmarks, parsing, hairline, scale, measurements, None)
    numbers = {name: call.numbers(facts) for name, call in CALLS.items()}
    assert all(numbers.values()), {name: len(found) for name, found in numbers.items()}
    assert numbers["measure, mm"]["face_width"] == pytest.approx(measurements["face_width"].mm)
    assert numbers["masks, areas"]["forehead"] > 1000
