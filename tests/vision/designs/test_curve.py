"""The curves of the catalogue: smooth, symmetric, in order, and each recognisable as its style."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vision.calls import Style
from vision.designs.catalogue import SHAPES
from vision.designs.curve import TempleEnd, design_curve
from vision.designs.fit import END_SHARE, END_WIDTH_LIMITS
from vision.designs.forehead import polar
from vision.types import Points

FRONT = 1.4
fronts = st.floats(0.85, 2.2)
end_widths = st.floats(*END_WIDTH_LIMITS)
styles = st.sampled_from(Style)


def curve_of(style: Style, front: float = FRONT, end_width: float = 1.3) -> Points:
    end = TempleEnd(end_width, END_SHARE * front)
    return design_curve(SHAPES[style], front - SHAPES[style].peak_depth, end, end)


def height_at(curve: Points, width: float) -> float:
    return float(np.interp(width, curve[:, 0], curve[:, 1]))


@given(style=styles, front=fronts, end_width=end_widths)
def test_it_runs_from_temple_to_temple_through_the_point_asked_for(
    style: Style, front: float, end_width: float
) -> None:
    curve = curve_of(style, front, end_width)
    np.testing.assert_allclose(curve[len(curve) // 2], (0.0, front - SHAPES[style].peak_depth), atol=1e-12)
    np.testing.assert_allclose(curve[[0, -1]], [(-end_width, END_SHARE * front), (end_width, END_SHARE * front)])


@given(style=styles, front=fronts, end_width=end_widths)
def test_it_is_symmetric(style: Style, front: float, end_width: float) -> None:
    curve = curve_of(style, front, end_width)
    np.testing.assert_allclose(curve, curve[::-1] * (-1, 1), atol=1e-12)


@given(style=styles, front=fronts, end_width=end_widths)
def test_it_leads_from_the_subjects_right_to_the_left_and_never_back(
    style: Style, front: float, end_width: float
) -> None:
    curve = curve_of(style, front, end_width)
    assert (np.diff(curve[:, 0]) > 0).all()
    angle_deg, _ = polar(curve)
    assert (np.diff(angle_deg) > 0).all()  # every ray from the glabella meets it once


@given(style=styles, front=fronts, end_width=end_widths)
def test_it_has_no_corner(style: Style, front: float, end_width: float) -> None:
    """Between neighbouring pieces the direction hardly changes, at the joints of the spline as elsewhere."""
    curve = curve_of(style, front, end_width)
    steps = np.diff(curve, axis=0)
    heading = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    assert np.degrees(np.abs(np.diff(heading))).max() < 9.0
    # No joint of the spline turns otherwise than its neighbours do.
    turning = np.diff(heading) / ((np.hypot(*steps.T)[1:] + np.hypot(*steps.T)[:-1]) / 2)
    assert np.abs(np.diff(turning)).max() < 4.0


@pytest.mark.parametrize(("one", "other"), list(combinations(Style, 2)))
def test_no_two_styles_look_alike(one: Style, other: Style) -> None:
    """Somewhere on the forehead they lie 2.5 mm apart or more, on one of usual size."""
    widths = np.linspace(0, 1.2, 100)
    gaps = [abs(height_at(curve_of(one), w) - height_at(curve_of(other), w)) for w in widths]
    assert max(gaps) * 43 > 2.5


def test_round_falls_ever_more_steeply() -> None:
    half = curve_of(Style.ROUND)
    half = half[len(half) // 2 :]
    slope = np.diff(half[:, 1]) / np.diff(half[:, 0])
    assert (np.diff(slope) < 1e-9).all()


def test_m_recedes_at_both_temples() -> None:
    curve = curve_of(Style.M)
    assert height_at(curve, 0.85) > height_at(curve, 0.0) + 0.05
    assert height_at(curve, 0.3) < height_at(curve, 0.0) + 0.02


def test_a_widows_peak_dips_in_the_middle_alone() -> None:
    curve = curve_of(Style.WIDOWS_PEAK)
    half = curve[len(curve) // 2 :]
    top = int(np.argmax(half[:, 1]))
    assert 0.3 < half[top, 0] < 0.6
    assert half[top, 1] - half[0, 1] > 0.1
    assert (np.diff(half[top:, 1]) < 0).all()


def test_straight_and_rectangular_have_a_level_front() -> None:
    for style, reach in ((Style.STRAIGHT, 0.8), (Style.RECTANGULAR, 0.6)):
        curve = curve_of(style)
        assert abs(height_at(curve, reach) - height_at(curve, 0.0)) < 0.02
    # The rectangle's corners are wider and rounder.
    assert height_at(curve_of(Style.RECTANGULAR), 1.2) > height_at(curve_of(Style.STRAIGHT), 1.2)


def test_triangular_has_straight_slopes() -> None:
    curve = curve_of(Style.TRIANGULAR)
    inner, middle, outer = (height_at(curve, width) for width in (0.3, 0.6, 0.9))
    assert abs(middle - (inner + outer) / 2) < 0.02
    assert height_at(curve, 0.0) - outer > 0.25


def test_a_bell_flares_out() -> None:
    """Only the bell is hollow on its way down to the temple."""

    def hollow(style: Style) -> bool:
        half = curve_of(style)
        outer = half[half[:, 0] > 0.7]
        slope = np.diff(outer[:, 1]) / np.diff(outer[:, 0])
        return bool(np.diff(slope).max() > 0.02)

    assert hollow(Style.BELL)
    assert not any(hollow(style) for style in (Style.ROUND, Style.TRIANGULAR, Style.RECTANGULAR))
