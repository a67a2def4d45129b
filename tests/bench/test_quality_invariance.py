"""Variants of a picture, and what counts as having moved."""

from __future__ import annotations

import numpy as np
import pytest

from bench.portraits.invariance import apart, movements, widest
from bench.portraits.variants import MIRROR, VARIANTS, mirrored_name
from tests.vision.measured_faces import hairline_of, laid, scale_of
from vision.anthropometry import measure_face
from vision.types import Box, Interval, Measurement


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
