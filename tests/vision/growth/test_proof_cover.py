"""A hole behind the front: seen where hair was before and skin is now, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vision.growth.proof_cover import bared_mm2
from vision.growth.texture_colour import Lab

SIDE, PX_PER_MM = 200, 5.0
SKIN, HAIR = (70.0, 12.0, 18.0), (20.0, 3.0, 5.0)
UPPER = np.zeros((SIDE, SIDE), dtype=bool)
UPPER[:100] = True


def head(hair: tuple[float, float, float] = HAIR) -> Lab:
    """Hair above, skin below."""
    lab = np.where(UPPER[..., None], hair, SKIN) + np.random.default_rng(2).normal(0, 2, (SIDE, SIDE, 3))
    return np.asarray(lab, dtype=np.float32)


def found(after: Lab, before: Lab | None = None) -> float | None:
    return bared_mm2(head() if before is None else before, after, ~UPPER, UPPER, UPPER, px_per_mm=PX_PER_MM)


@given(side_mm=st.floats(7, 14))
@settings(max_examples=8, deadline=None)
def test_a_hole_is_as_large_as_it_is(side_mm: float) -> None:
    side = round(side_mm * PX_PER_MM)
    holed = head()
    holed[20 : 20 + side, 60 : 60 + side] = SKIN
    assert found(holed) == pytest.approx((side / PX_PER_MM) ** 2, rel=0.2)


def test_more_hair_and_gaps_between_strands_are_no_hole() -> None:
    grown = head()
    grown[100:140] = HAIR
    grown[::12, :] = SKIN
    assert found(grown) == 0


def test_a_parting_that_goes_on_is_no_hole() -> None:
    parted = head()
    parted[:100, 95:108] = SKIN
    assert found(parted) == 0


def test_the_background_seen_through_hair_is_a_hole() -> None:
    holed = head()
    holed[20:60, 60:100] = (60.0, -4.0, -8.0)
    assert found(holed) == pytest.approx(64, rel=0.2)


def test_what_was_bare_before_is_not_bared() -> None:
    parted = head()
    parted[:100, 90:110] = SKIN
    assert found(parted, before=parted) == 0


def test_nothing_is_told_where_colours_or_areas_do_not() -> None:
    white = head((72.0, 10.0, 15.0))
    assert found(white, before=white) is None
    assert bared_mm2(head(), head(), np.zeros_like(UPPER), UPPER, UPPER, px_per_mm=PX_PER_MM) is None
