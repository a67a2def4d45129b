"""The pure geometry under the labels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vision.drawing import Picture, Rect, Stroke, dashes, render
from vision.label_layout import Detail, FaceFrame, crosses, spread

places = st.floats(-1e3, 1e3)
items = st.lists(st.tuples(places, st.floats(1, 200)), min_size=1, max_size=7)


@given(items, st.floats(0, 20), st.one_of(st.just(-np.inf), places))
def test_spread_keeps_order_distance_and_limit(found: list[tuple[float, float]], gap: float, low: float) -> None:
    wanted, sizes = [place for place, _ in found], [size for _, size in found]
    centres = spread(wanted, sizes, gap, low)
    order = sorted(range(len(found)), key=lambda i: wanted[i])
    for above, below in pairwise(order):
        room = centres[below] - sizes[below] / 2 - (centres[above] + sizes[above] / 2)
        assert room >= gap - 1e-6
    assert min(centre - size / 2 for centre, size in zip(centres, sizes, strict=True)) >= low - 1e-6


@given(items, st.floats(0, 20), places, st.integers(0, 2**32 - 1))
def test_no_other_allowed_places_are_nearer_to_the_wanted_ones(
    found: list[tuple[float, float]], gap: float, low: float, seed: int
) -> None:
    wanted, sizes = [place for place, _ in found], [size for _, size in found]
    centres = spread(wanted, sizes, gap, low)
    rng = np.random.default_rng(seed)
    order = sorted(range(len(found)), key=lambda i: wanted[i])
    ours = sum((a - b) ** 2 for a, b in zip(centres, wanted, strict=True))
    for _ in range(20):
        other, floor = [0.0] * len(found), low
        for i in order:
            other[i] = max(centres[i] + float(rng.normal(0, 20)), floor + sizes[i] / 2)
            floor = other[i] + sizes[i] / 2 + gap
        assert ours <= sum((a - b) ** 2 for a, b in zip(other, wanted, strict=True)) + 1e-6


def test_spread_leaves_alone_what_does_not_overlap() -> None:
    assert spread([300.0, 100.0], [50.0, 50.0], 10.0) == [300.0, 100.0]


def test_spread_parts_equals_evenly() -> None:
    assert spread([100.0, 100.0], [40.0, 40.0], 10.0) == [75.0, 125.0]


points = st.tuples(st.floats(-50, 50), st.floats(-50, 50))


@given(points, points)
@example((0.0, 0.0), (0.0, 1.11e-308))
@example((-50.0, 0.0), (50.0, 5e-324))
@example((-20.0, -10.0), (-20.0, -10.0 + 2e-15))
def test_crosses_agrees_with_points_along_the_line(start: tuple[float, float], end: tuple[float, float]) -> None:
    rect = Rect(-20, -10, 40, 20)
    along = np.linspace(0, 1, 2001)[:, None]
    line = np.array([start, end])
    walk = line[0] + along * (line[1] - line[0])
    inside = ((walk > (rect.x + 0.1, rect.y + 0.1)) & (walk < (rect.right - 0.1, rect.bottom - 0.1))).all(axis=1)
    if inside.any():
        assert crosses(rect, line)
    if crosses(rect, line):
        near = ((walk > (rect.x - 0.1, rect.y - 0.1)) & (walk < (rect.right + 0.1, rect.bottom + 0.1))).all(axis=1)
        assert near.any()


@given(st.floats(-40, 40), places, places)
def test_face_axes_there_and_back(roll_deg: float, u: float, v: float) -> None:
    frame = FaceFrame(np.array([120.0, 80.0]), roll_deg)
    np.testing.assert_allclose(frame.uv(frame.xy(u, v)[None])[0], (u, v), atol=1e-6)
    meets = frame.along_u_to(v, 500.0)
    assert meets[0] == 500.0
    assert frame.uv(meets[None])[0, 1] == pytest.approx(v, abs=1e-6)
    meets = frame.along_v_to(u, -40.0)
    assert meets[1] == -40.0
    assert frame.uv(meets[None])[0, 0] == pytest.approx(u, abs=1e-6)


def test_a_head_that_leans_to_the_right_of_the_photo_has_its_top_there() -> None:
    frame = FaceFrame(np.zeros(2), 20.0)
    x, y = frame.xy(0.0, -100.0)
    assert x > 0 > y


def test_detail_tells_plain_ground_from_a_busy_one() -> None:
    photo = np.full((600, 800, 3), 128, dtype=np.uint8)
    photo[:, 400:] = np.random.default_rng(1).integers(0, 256, (600, 400, 1))
    detail = Detail(photo, scale=0.5)  # half as many layout pixels
    assert detail.mean(Rect(0, 0, 190, 300)) < 1
    assert detail.mean(Rect(210, 0, 190, 300)) > 50
    assert detail.mean(Rect(500, 0, 50, 50)) == 0


def test_dashes_cover_their_share_of_the_line() -> None:
    line = np.array([[0.0, 0.0], [30.0, 0.0], [30.0, 40.0]])
    pieces = dashes(line, 5.0, 5.0)
    assert len(pieces) == 7
    drawn = sum(float(np.hypot(*np.diff(piece, axis=0).T).sum()) for piece in pieces)
    assert drawn == pytest.approx(35.0)
    corner = next(piece for piece in pieces if len(piece) > 2 or (piece == (30.0, 0.0)).all(axis=1).any())
    assert (corner == (30.0, 0.0)).all(axis=1).any()


@given(st.lists(points, min_size=1, max_size=5), st.floats(0.5, 20), st.floats(0, 20))
@example([(0.0, 0.0), (0.0, 1.11e-308)], 5.0, 5.0)
@example([(3.0, 4.0), (3.0, 4.0)], 5.0, 5.0)
@example([(0.0, 0.0), (0.0, 5e-324), (5e-324, 5e-324)], 5.0, 5.0)
def test_lines_of_any_length_are_dashed_and_painted(line: list[tuple[float, float]], on: float, off: float) -> None:
    placed = np.array(line) + 60.0
    for piece in (*dashes(np.array(line), on, off), *dashes(placed, on, off)):
        assert np.isfinite(piece).all()
        assert np.abs(piece).max() <= 110.0 + 1e-6
    photo = np.zeros((120, 120, 3), dtype=np.uint8)
    for dash_px in (None, (on, off)):
        render(photo, Picture(120, 120, Rect(0, 0, 120, 120), (Stroke(placed, (255, 255, 255), 2.0, dash_px=dash_px),)))
