"""Polygons as pixels, and back."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from vision.growth import region_raster
from vision.growth.region_raster import border_px, coverage, outlines
from vision.types import Points


def star(centre: tuple[float, float], radii: list[float]) -> Points:
    angles = np.linspace(0, 2 * np.pi, len(radii), endpoint=False)
    unit = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.asarray(unit * np.array(radii)[:, None] + centre)


def area_of(polygon: Points) -> float:
    x, y = polygon.T
    return abs(float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())) / 2


@given(
    centre=st.tuples(st.floats(40, 60), st.floats(280, 320)),
    radii=st.lists(st.floats(8, 38), min_size=3, max_size=12),
)
@settings(max_examples=50, deadline=None)
def test_covered_pixels_add_up_to_the_area_about_the_same_middle(
    centre: tuple[float, float], radii: list[float]
) -> None:
    """Higher than one band of rows, so that bands meet inside of it."""
    polygon = star(centre, radii) * (1.0, 2.0) - (0.0, centre[1])
    covered = coverage([polygon], (640, 100)) / 255
    border = float(np.hypot(*np.diff(np.vstack([polygon, polygon[:1]]), axis=0).T).sum())
    # Each border pixel is wrong by an eighth at most, outwards.
    assert -0.05 * border <= covered.sum() - area_of(polygon) <= 0.2 * border


def test_a_pixel_is_covered_by_the_part_that_lies_in_the_polygon() -> None:
    left_half = np.array([[-0.5, -0.5], [1.0, -0.5], [1.0, 3.5], [-0.5, 3.5]])
    covered = coverage([left_half], (4, 4)) / 255
    assert covered[0] == pytest.approx([1, 0.5, 0, 0], abs=0.26)
    assert (covered == covered[0]).all()


def test_polygons_unite_and_may_reach_beyond_the_canvas() -> None:
    one = np.array([[-9, -9], [4, -9], [4, 4], [-9, 4]], dtype=np.float64)
    other = np.array([[2, 2], [30, 2], [30, 30], [2, 30]], dtype=np.float64)
    covered = coverage([one, other], (10, 10))
    assert covered[0, 0] == covered[3, 3] == covered[9, 9] == 255
    assert covered[0, 9] == covered[9, 0] == 0
    assert not coverage([one - 100], (10, 10)).any()
    assert not coverage([], (10, 10)).any()


def test_an_outline_has_no_stair_steps() -> None:
    y, x = np.mgrid[:120, :120]
    ring = np.hypot(x - 60, y - 60)
    mask = np.where((ring < 50) & (ring > 20), 255, 0).astype(np.uint8)
    outer, inner = outlines(mask)
    for border, radius in ((outer, 49.6), (inner, 20.4)):
        distance = np.hypot(*(border - 60).T)
        assert distance.mean() == pytest.approx(radius, abs=0.6)
        assert distance.std() < 0.25


def test_outlines_come_longest_first_and_no_more_are_made_than_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a mask with thousands of parts a few hundred are drawn."""
    mask = np.zeros((300, 300), dtype=np.uint8)
    mask[::4, ::4] = 255
    mask[100:140, 100:200] = 255
    mask[200:220, 50:90] = 255
    made: list[Points] = []
    smoothed = region_raster._smoothed

    def counted(closed: Points) -> Points:
        made.append(closed)
        return smoothed(closed)

    monkeypatch.setattr(region_raster, "_smoothed", counted)
    first, second, *_rest = islice(outlines(mask), 5)
    assert len(made) == 5
    assert len(first) > len(second) > 90
    assert first.mean(axis=0) == pytest.approx((149.5, 119.5), abs=2)


@given(arrays(np.uint8, (9, 7), elements=st.sampled_from([0, 255])))
def test_the_length_of_borders_is_the_number_of_sides_between_inside_and_outside(mask: NDArray[np.uint8]) -> None:
    height, width = mask.shape
    right = sum(mask[y, x] != mask[y, x + 1] for y in range(height) for x in range(width - 1))
    down = sum(mask[y, x] != mask[y + 1, x] for y in range(height - 1) for x in range(width))
    assert border_px(mask) == right + down
