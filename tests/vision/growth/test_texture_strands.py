"""Signed numbers about strands: each goes the way that its fake goes, and real hair stays near zero."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.vision.growth.painted_heads import combed
from vision.growth.texture_copy import copied
from vision.growth.texture_strands import Floats, Strands, strands

HEIGHT, WIDTH, PX_PER_MM = 240, 320, 4.0
OWN = np.zeros((HEIGHT, WIDTH), dtype=np.float32)
OWN[:140] = 1
GROWN = 1 - OWN


def hair(seed: int = 3, angle_deg: float = 0.0) -> Floats:
    """Strands, and locks eight times as wide."""
    strand, lock = combed(HEIGHT, WIDTH, angle_deg, seed), combed(HEIGHT, WIDTH, angle_deg, seed + 50)
    wide = cv2.GaussianBlur(lock, (0, 0), 5)
    return np.asarray(30 + 5 * strand + 5 * wide / wide.std(), dtype=np.float32)


def found(grown: NDArray[np.floating]) -> Strands:
    return strands(hair(), grown.astype(np.float32), GROWN, OWN, PX_PER_MM)


@given(seed=st.integers(4, 40))
@settings(max_examples=8, deadline=None)
def test_more_of_the_same_hair_is_the_same(seed: int) -> None:
    same = found(hair(seed))
    assert abs(same.fineness) < 0.15  # of these seeds the farthest is 0.11 away
    assert abs(same.contrast) < 0.2
    assert abs(same.locks) < 0.4
    assert same.coherence == pytest.approx(1, abs=0.15)
    assert abs(same.turned_deg) < 8


@given(sigma_px=st.floats(1.5, 4))
@settings(max_examples=8, deadline=None)
def test_blur_is_less_fine_and_leaves_the_locks(sigma_px: float) -> None:
    blurred = found(np.asarray(cv2.GaussianBlur(hair(9), (0, 0), sigma_px), dtype=np.float32))
    assert blurred.fineness < -0.25
    assert blurred.contrast < -0.2
    assert blurred.locks > -0.4


def test_noise_has_no_direction_and_no_locks() -> None:
    grain = cv2.GaussianBlur(np.random.default_rng(1).standard_normal((HEIGHT, WIDTH)), (0, 0), 1.2)
    noise = found(30 + 6 * grain / grain.std())
    assert noise.coherence < 0.4
    assert noise.locks < -1
    assert noise.turned_deg > 20


def test_flat_paint_has_no_contrast() -> None:
    flat = found(np.full((HEIGHT, WIDTH), 30.0))
    assert flat.contrast < -3
    assert flat.locks < -3


@given(angle_deg=st.floats(30, 150))
@settings(max_examples=8, deadline=None)
def test_strands_across_the_flow_are_turned_by_as_much(angle_deg: float) -> None:
    expected = min(angle_deg, 180 - angle_deg)
    assert found(hair(9, angle_deg)).turned_deg == pytest.approx(expected, abs=15)


def test_a_shifted_photo_is_a_copy_and_new_hair_is_none() -> None:
    grown, own = GROWN > 0, OWN > 0
    for shift_mm in (8, 20, 30):
        shifted = np.roll(hair(), round(shift_mm * PX_PER_MM), axis=0)
        assert copied(hair(), shifted, grown, own, PX_PER_MM) > 0.85
    assert copied(hair(), hair(9), grown, own, PX_PER_MM) < 0.6


def test_where_nothing_has_grown_nothing_is_copied() -> None:
    nowhere = np.zeros((HEIGHT, WIDTH), dtype=bool)
    assert copied(hair(), hair(), nowhere, OWN > 0, PX_PER_MM) == 0
