"""Named points are where anatomy has them, however the face lies in the photo."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vision.measured_faces import laid, mirrored
from vision import special_points as module
from vision.special_points import BROW_PEAKS, SOURCES, farthest, special_points

MIDLINE = (
    "glabella",
    "sellion",
    "pronasale",
    "subnasale",
    "labrale_superius",
    "stomion",
    "labrale_inferius",
    "menton",
)
"""From above."""


def test_the_midline_runs_down_and_sides_are_the_subjects() -> None:
    at = special_points(laid())
    assert [at[name].y_px for name in MIDLINE if name != "pronasale"] == sorted(
        at[name].y_px for name in MIDLINE if name != "pronasale"
    )
    for name in at:
        if name.startswith("left_"):
            assert at[name].x_px > at[f"right_{name.removeprefix('left_')}"].x_px, name


def test_every_point_has_its_counterpart() -> None:
    names = set(special_points(laid()))
    assert {name.replace("left_", "right_") for name in names if name.startswith("left_")} == {
        name for name in names if name.startswith("right_")
    }
    assert names == {*SOURCES, *BROW_PEAKS}
    assert not {"trichion", "left_tragion"} & names, "the mesh does not know them"


def test_every_point_stands_in_the_table_with_its_source() -> None:
    table = module.__doc__ or ""
    for name, indices in {**SOURCES, **BROW_PEAKS}.items():
        stem = name.removeprefix("left_").removeprefix("right_").removeprefix("palpebrale_")
        rows = [row for row in table.splitlines() if row.startswith("|") and stem in row]
        assert any(all(str(index) in row for index in indices) for row in rows), name


def test_order_around_the_eyes_and_brows() -> None:
    at = special_points(laid())
    for side, outwards in (("left", 1), ("right", -1)):
        inner, pupil, outer = (at[f"{side}_{name}"] for name in ("endocanthion", "pupil", "exocanthion"))
        assert outwards * inner.x_px < outwards * pupil.x_px < outwards * outer.x_px
        upper, lower = at[f"{side}_palpebrale_superius"], at[f"{side}_palpebrale_inferius"]
        assert upper.y_px < lower.y_px
        head, peak, tail = (at[f"{side}_brow_{name}"] for name in ("head", "peak", "tail"))
        assert outwards * head.x_px < outwards * peak.x_px < outwards * tail.x_px
        assert peak.y_px < min(head.y_px, tail.y_px)


@settings(max_examples=25)
@given(
    size=st.floats(0.2, 3.0),
    roll_deg=st.floats(-30, 30),
    x=st.floats(-500, 3000),
    y=st.floats(-500, 3000),
)
def test_they_move_with_the_face(size: float, roll_deg: float, x: float, y: float) -> None:
    base, moved = special_points(laid()), special_points(laid(size, roll_deg, (x, y)))
    angle = np.radians(roll_deg)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for name, point in base.items():
        expected = size * rotation @ (np.array([point.x_px, point.y_px]) - 1000.0) + (x, y)
        assert np.allclose((moved[name].x_px, moved[name].y_px), expected, atol=1e-6 * max(1.0, size * 1000)), name


def test_a_mirror_changes_the_sides() -> None:
    face = laid()
    at, swapped = special_points(face), special_points(mirrored(face))
    for name in ("exocanthion", "zygion", "gonion", "alare", "cheilion", "pupil"):
        assert swapped[f"left_{name}"].x_px == pytest.approx(2000.0 - at[f"right_{name}"].x_px)


def test_the_farthest_point_from_a_line() -> None:
    candidates = np.array([[1.0, 1.0], [2.0, 3.0], [3.0, -2.0]])
    chosen = farthest(candidates, np.array([0.0, 0.0]), np.array([4.0, 0.0]))
    assert chosen.tolist() == [2.0, 3.0]
