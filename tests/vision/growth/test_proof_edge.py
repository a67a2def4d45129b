"""The edge of hair along a line: found where it was painted, as wide as it was painted."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vision.growth.proof_edge import SEARCH_MM, FrontEdge, front_edge
from vision.growth.texture_colour import Lab
from vision.types import Points

SIDE, PX_PER_MM = 400, 6.0
SKIN, HAIR = np.array([70.0, 12.0, 18.0]), np.array([20.0, 3.0, 5.0])
WIDTH_OF_SIGMA = 2 * 0.6745, 2 * 1.2816
"""Of a blurred edge, from a quarter to three quarters and from a tenth to nine tenths, in its standard deviations."""


def arc() -> Points:
    """A front, curved as hairlines are."""
    x = np.linspace(60, 340, 60)
    return np.column_stack([x, 220 + 0.0015 * (x - 200) ** 2])


def painted(offset_mm: float, sigma_mm: float, hair: np.typing.NDArray[np.float64] = HAIR) -> Lab:
    """Skin below the arc and hair above it, the edge moved by `offset_mm` into the hair."""
    y, x = np.mgrid[:SIDE, :SIDE]
    above_mm = (220 + 0.0015 * (x - 200) ** 2 - y) / np.hypot(1, 0.003 * (x - 200)) / PX_PER_MM
    share = np.vectorize(lambda t: 0.5 + 0.5 * erf(t / np.sqrt(2)))((above_mm - offset_mm) / sigma_mm)
    grain = np.random.default_rng(2).normal(0, 1.5, (SIDE, SIDE, 3))
    return np.asarray(SKIN + share[..., None] * (hair - SKIN) + grain, dtype=np.float32)


WANTED = (painted(0, 0.01)[..., 0] < 45).astype(np.float32)
NO_PARSER = np.zeros((SIDE, SIDE), dtype=np.float32)


def edge(lab: Lab, parsed: np.typing.NDArray[np.float32] = NO_PARSER, line: Points | None = None) -> FrontEdge:
    found = front_edge(lab, parsed, WANTED, arc() if line is None else line, PX_PER_MM)
    assert found is not None
    return found


@given(offset_mm=st.floats(-2.5, 2.5), sigma_mm=st.floats(0.3, 1.2))
@settings(max_examples=12, deadline=None)
def test_place_and_width_are_those_that_were_painted(offset_mm: float, sigma_mm: float) -> None:
    found = edge(painted(offset_mm, sigma_mm))
    assert found.distance_mm == pytest.approx(abs(offset_mm), abs=0.25)
    assert found.width_mm == pytest.approx(WIDTH_OF_SIGMA[0] * sigma_mm, abs=0.3)
    assert found.whole_width_mm == pytest.approx(WIDTH_OF_SIGMA[1] * sigma_mm, abs=0.5)


def test_the_line_may_run_either_way() -> None:
    lab = painted(1.0, 0.8)
    assert edge(lab, line=arc()[::-1]).distance_mm == pytest.approx(edge(lab).distance_mm, abs=0.05)


def test_single_strands_before_the_edge_are_no_edge() -> None:
    lab = painted(0.0, 0.5)
    strands = painted(-6.0, 0.01)
    lab[:, 100:300:12] = strands[:, 100:300:12]
    assert edge(lab).distance_mm < 0.8


def test_without_an_edge_it_counts_as_far_as_was_looked() -> None:
    skin = painted(-100, 0.5)
    skin[:] = SKIN
    found = edge(skin)
    assert (found.distance_mm, found.width_mm, found.whole_width_mm) == (SEARCH_MM, None, None)


def test_white_hair_on_pale_skin_is_told_by_the_parser() -> None:
    pale = painted(0.0, 0.5, SKIN + np.array([3.0, 0.0, -3.0]))
    parsed = (painted(1.5, 0.01)[..., 0] < 45).astype(np.float32)
    assert edge(pale).distance_mm == SEARCH_MM
    assert edge(pale, parsed).distance_mm == pytest.approx(1.5, abs=0.3)


def test_only_the_stretch_counts_along_which_hair_is_wanted() -> None:
    lab = painted(0.0, 0.5)
    lab[:, :200] = painted(3.0, 0.5)[:, :200]
    right_half = WANTED.copy()
    right_half[:, :215] = 0
    found = front_edge(lab, NO_PARSER, right_half, arc(), PX_PER_MM)
    assert found is not None
    assert found.distance_mm < 0.3
    assert front_edge(lab, NO_PARSER, np.zeros_like(WANTED), arc(), PX_PER_MM) is None


def with_strands(sigma_mm: float, length_mm: float) -> Lab:
    """An edge before which and behind which single strands end, a third of a millimetre wide, up to so far from it."""
    ends = np.random.default_rng(3).uniform(-length_mm, length_mm, SIDE // 2).repeat(2)
    smooth = painted(0.0, sigma_mm)
    columns = [np.roll(smooth[:, at], -round(end * PX_PER_MM), axis=0) for at, end in enumerate(ends)]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def ragged_mm(lab: Lab) -> float:
    found = edge(lab).ragged_mm
    assert found is not None
    return found


def test_single_strands_make_an_edge_ragged_and_softness_does_not() -> None:
    smooth = [ragged_mm(painted(0.0, sigma_mm)) for sigma_mm in (0.2, 1.0)]
    ragged = [ragged_mm(with_strands(0.3, length_mm)) for length_mm in (0.8, 1.6)]
    assert max(smooth) < 0.15 < min(ragged)
    assert ragged[1] > 1.3 * ragged[0]
