"""Pieces of new hair against the likest own pieces near by: hair is like hair, and noise of its spectrum is not."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from vision.growth.texture_own import Floats, Mask, foreign

HEIGHT, WIDTH, PX_PER_MM = 260, 320, 4.0
OWN = np.zeros((HEIGHT, WIDTH), dtype=bool)
OWN[:160] = True
GROWN = np.zeros_like(OWN)
GROWN[170:230, 60:260] = True
NOWHERE = np.zeros_like(OWN)
STRANDS_PER_PX2 = 0.02


def strands(seed: int, lean: float = 0.25) -> Floats:
    """Lightness of dark hair: light strands, each for itself, that lean by `lean` and curve a little."""
    rng = np.random.default_rng(seed)
    lightness = np.full((HEIGHT, WIDTH), 8.0, dtype=np.float32)
    down = np.linspace(0, 1, 12)
    for _ in range(round(STRANDS_PER_PX2 * HEIGHT * WIDTH)):
        start, length, bend = rng.uniform((-40, 0), (HEIGHT, WIDTH)), rng.uniform(20, 70), rng.normal(0, 6)
        x = start[1] + lean * length * down + bend * down**2
        line = np.column_stack([x, start[0] + length * down]) * 16
        shade = float(rng.gamma(1.2, 9.0))
        cv2.polylines(lightness, [np.rint(line).astype(np.int32)], False, shade, 1, cv2.LINE_AA, 4)
    return np.asarray(cv2.GaussianBlur(lightness, (0, 0), 0.5), dtype=np.float32)


def noise_like(hair: Floats) -> Floats:
    """Its spectrum, mean and strength with phases by chance."""
    spectrum = np.abs(np.fft.rfft2(hair - hair.mean()))
    phases = np.angle(np.fft.rfft2(np.random.default_rng(5).standard_normal(hair.shape)))
    return np.asarray(hair.mean() + np.fft.irfft2(spectrum * np.exp(1j * phases), hair.shape), dtype=np.float32)


HAIR = strands(1)


def found(after: Floats, own: Mask = OWN, grown: Mask = GROWN) -> float:
    value = foreign(HAIR, after, grown, own, PX_PER_MM)
    assert value is not None
    return value


def test_other_strands_of_the_same_hair_are_as_like_as_its_own() -> None:
    assert found(strands(2)) == pytest.approx(1.0, abs=0.15)


def test_noise_of_the_same_spectrum_is_foreign() -> None:
    assert found(noise_like(HAIR)) > 1.25 > found(strands(3))


@pytest.mark.parametrize(
    "made",
    [
        np.full_like(HAIR, HAIR.mean()),
        cv2.GaussianBlur(HAIR, (0, 0), 1.5),
        np.broadcast_to(HAIR[100], HAIR.shape),
    ],
    ids=["paint", "blur", "barcode"],
)
def test_what_is_no_strand_is_foreign(made: Floats) -> None:
    assert found(np.ascontiguousarray(made, dtype=np.float32)) > 1.25


def test_it_is_compared_with_what_lies_near() -> None:
    """Smooth hair at one side allows no smooth hair at the other."""
    smooth = np.asarray(cv2.GaussianBlur(HAIR, (0, 0), 2.0), dtype=np.float32)
    near_left = np.arange(WIDTH) < WIDTH / 2
    before = np.where(near_left, smooth, HAIR).astype(np.float32)
    left, right = GROWN & (np.arange(WIDTH) < 110), GROWN & (np.arange(WIDTH) > 210)
    same, other = (foreign(before, smooth, grown, OWN, PX_PER_MM) for grown in (left, right))
    assert same is not None
    assert other is not None
    assert other > 2 * same


def test_pieces_far_from_any_own_hair_are_compared_with_the_nearest() -> None:
    far = np.zeros_like(OWN)
    far[:90] = True
    assert found(strands(2), own=far) == pytest.approx(1.0, abs=0.2)


def test_a_strip_narrower_than_a_piece_is_looked_at() -> None:
    strip = np.zeros_like(OWN)
    strip[170:178] = True
    assert found(strands(2), grown=strip) < 1.3 < found(np.full_like(HAIR, HAIR.mean()), grown=strip)


SPOT = np.zeros_like(OWN)
SPOT[170:190, 100:120] = True


@pytest.mark.parametrize(("own", "grown"), [(NOWHERE, GROWN), (SPOT, GROWN), (OWN, NOWHERE), (OWN, SPOT)])
def test_nothing_is_told_of_too_little_hair(own: Mask, grown: Mask) -> None:
    assert foreign(HAIR, noise_like(HAIR), grown, own, PX_PER_MM) is None


def test_hair_that_is_everywhere_the_same_is_no_division_by_nothing() -> None:
    flat = np.full_like(HAIR, 10.0)
    assert foreign(flat, flat, GROWN, OWN, PX_PER_MM) == 0
    value = foreign(flat, HAIR, GROWN, OWN, PX_PER_MM)
    assert value is not None
    assert np.isfinite(value)
