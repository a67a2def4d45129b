"""Numbers about hair: they tell real strands from the fakes that a parser takes for hair."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.vision.growth.painted_heads import combed
from vision.growth.strands.strokes import strand_noise
from vision.growth.texture import Floats, Likeness, likeness, repetition
from vision.growth.texture_colour import DEPTHS_MM, Depths, ciede2000, colour_distance, lab_of

HEIGHT, WIDTH, CELL_PX, PX_PER_MM = 160, 480, 32, 4.0
GROWN = np.zeros((HEIGHT, WIDTH), dtype=bool)
GROWN[96:] = True
OWN = np.zeros_like(GROWN)
OWN[:96] = True


def hair(angle_deg: float = 0.0, seed: int = 3) -> Floats:
    """Lightness of combed strands."""
    return (30 + 6 * combed(HEIGHT, WIDTH, angle_deg, seed)).astype(np.float32)


def found(grown: NDArray[np.floating]) -> Likeness:
    like = likeness(hair(), grown.astype(np.float32), GROWN, OWN, CELL_PX)
    assert like is not None
    return like


def test_more_of_the_same_hair_is_as_near_as_the_hair_is_to_itself() -> None:
    like = found(hair(seed=9))
    assert like.orientation_ratio == pytest.approx(1, abs=0.35)
    assert like.gradient_ratio == pytest.approx(1, abs=0.35)


@given(angle_deg=st.floats(25, 155))
@settings(max_examples=10, deadline=None)
def test_strands_across_the_persons_own_are_far(angle_deg: float) -> None:
    assert found(hair(angle_deg, seed=9)).orientation_ratio > 2.5


@pytest.mark.parametrize(
    "fake",
    [
        np.full((HEIGHT, WIDTH), 30.0),
        cv2.GaussianBlur(hair(seed=9), (0, 0), 4),
        30 + 6 * np.random.default_rng(1).normal(size=(HEIGHT, WIDTH)),
        30 + 3 * (hair(seed=9) - 30),
    ],
    ids=["flat", "blurred", "noise", "harsh"],
)
def test_what_is_too_smooth_or_too_rough_is_far(fake: NDArray[np.floating]) -> None:
    assert found(fake).gradient_ratio > 2.5


def test_each_side_is_compared_with_the_hair_beside_it() -> None:
    """Parted in the middle: the left half leans one way, the right half the other."""
    parted = np.where(np.arange(WIDTH) < WIDTH // 2, hair(30), hair(-30)).astype(np.float32)
    again = np.where(np.arange(WIDTH) < WIDTH // 2, hair(30, 9), hair(-30, 9)).astype(np.float32)
    crossed = again[:, ::-1].copy()
    right, wrong = (likeness(parted, grown, GROWN, OWN, CELL_PX) for grown in (again, crossed))
    assert right is not None
    assert wrong is not None
    mirrored = likeness(parted, np.roll(again, WIDTH // 2, axis=1), GROWN, OWN, CELL_PX)
    assert mirrored is not None
    assert mirrored.orientation > 1.8 * right.orientation


def turning(seed: int) -> Floats:
    """Lightness of hair whose direction turns by 70 degrees down the picture and by 40 across it."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    angle = np.radians(70 * y / HEIGHT + 40 * x / WIDTH)
    field = np.dstack([np.sin(angle), np.cos(angle)]).astype(np.float32)
    return (30 + 6 * strand_noise(field, 24.0, 0.8, np.random.default_rng(seed))).astype(np.float32)


@pytest.mark.parametrize("lowest", [106, 128, 160], ids=["a thin strip", "one cell deep", "two cells deep"])
def test_hair_that_goes_on_as_the_own_does_is_as_near_as_it_in_regions_of_every_depth(lowest: int) -> None:
    """The region's cells lie further from own hair than own cells from each other, and are not full."""
    grown = GROWN & (np.arange(HEIGHT) < lowest)[:, None]
    ratios = []
    for seed in range(3):
        like = likeness(turning(seed), turning(seed + 50), grown, OWN, CELL_PX)
        assert like is not None
        ratios.append((like.orientation_ratio, like.gradient_ratio))
    assert np.mean(ratios, axis=0) == pytest.approx([1, 1], abs=0.4)


@given(down=st.integers(-200, 200), across=st.integers(-500, 500))
@settings(max_examples=10, deadline=None)
def test_likeness_does_not_depend_on_where_in_the_picture_all_of_it_lies(down: int, across: int) -> None:
    def placed(values: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.pad(values, ((200 + down, 200 - down), (500 + across, 500 - across)), mode="edge")

    def mask(values: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.pad(values, ((200 + down, 200 - down), (500 + across, 500 - across)))

    like = likeness(placed(hair()), placed(hair(seed=9)), mask(GROWN), mask(OWN), CELL_PX)
    assert like is not None
    assert like.orientation_ratio == pytest.approx(1, abs=0.5)
    assert like.gradient_ratio == pytest.approx(1, abs=0.5)


def test_without_own_hair_there_is_nothing_to_compare_with() -> None:
    few = np.zeros_like(OWN)
    few[:CELL_PX, :CELL_PX] = True
    assert likeness(hair(), hair(), GROWN, few, CELL_PX) is None
    assert likeness(hair(), hair(), GROWN, np.zeros_like(OWN), CELL_PX) is None


def test_a_region_narrower_than_a_cell_is_looked_at_as_well() -> None:
    narrow = np.zeros_like(GROWN)
    narrow[98:104, 40:400] = True
    like = likeness(hair(), np.full((HEIGHT, WIDTH), 30, np.float32), narrow, OWN, CELL_PX)
    assert like is not None
    assert like.gradient_ratio > 2


@pytest.mark.parametrize("side_px", [12, 20, 40])
def test_a_tile_repeats(side_px: int) -> None:
    piece = hair()[:side_px, :side_px]
    tiled = np.tile(piece, (HEIGHT // side_px + 1, WIDTH // side_px + 1))[:HEIGHT, :WIDTH]
    assert repetition(tiled, GROWN, PX_PER_MM) > 0.9


@given(angle_deg=st.floats(0, 180), seed=st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_strands_do_not_repeat_however_straight_and_long(angle_deg: float, seed: int) -> None:
    assert repetition(hair(angle_deg, seed), GROWN, PX_PER_MM) < 0.6


def test_what_has_no_detail_or_no_area_does_not_repeat() -> None:
    shaded = np.broadcast_to(np.linspace(20, 60, WIDTH, dtype=np.float32), (HEIGHT, WIDTH)).copy()
    assert repetition(np.full((HEIGHT, WIDTH), 30, np.float32), GROWN, PX_PER_MM) < 0.05
    assert repetition(shaded, GROWN, PX_PER_MM) < 0.6
    assert repetition(hair(), np.zeros_like(GROWN), PX_PER_MM) == 0
    speck = np.zeros_like(GROWN)
    speck[100:110, 100:110] = True
    assert repetition(hair(), speck, PX_PER_MM) == 0


def test_the_colour_is_that_of_the_hair_beside_it_at_the_same_depth() -> None:
    """Grey on the left and black on the right, both darker near the edge: each side is judged by its own."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    side = np.where(x < WIDTH // 2, 60.0, 20.0)

    def picture(depth_mm: NDArray[np.floating], light: NDArray[np.floating]) -> Depths:
        lab = np.dstack([light - 10 * np.exp(-depth_mm / 4), np.zeros_like(light), np.zeros_like(light)])
        return Depths(lab.astype(np.float32), OWN, depth_mm.astype(np.float32))

    own = picture((95 - y) / PX_PER_MM, side)
    left = GROWN & (x < WIDTH // 4)
    shallow = (HEIGHT - y) / PX_PER_MM

    def found(light: NDArray[np.floating], where: NDArray[np.bool_]) -> float:
        return colour_distance(replace(picture(shallow, light), hair=where), own, PX_PER_MM)

    assert found(side, left) < 1.5
    assert found(side, GROWN) < 1.5
    assert found(side[:, ::-1], left) > 15
    assert found(side - 12, left) > 5


def test_a_band_of_another_colour_is_not_lost_in_the_mean() -> None:
    """As the old hairline, where it goes on shining through."""
    lab = np.full((HEIGHT, WIDTH, 3), (20.0, 0.0, 0.0), np.float32)
    y = np.mgrid[:HEIGHT, :WIDTH][0]
    depth = ((HEIGHT - y) / PX_PER_MM).astype(np.float32)
    own_depth = ((np.flatnonzero(OWN.any(axis=1)).max() - y) / PX_PER_MM).astype(np.float32)
    band = (depth >= DEPTHS_MM[0]) & (depth < DEPTHS_MM[1])
    banded = np.where(band[..., None], lab + np.array([20, 6, 6], np.float32), lab)
    own = Depths(lab, OWN, own_depth)
    assert colour_distance(Depths(lab, GROWN, depth), own, PX_PER_MM) == pytest.approx(0, abs=0.01)
    assert (GROWN & band).sum() < 0.3 * GROWN.sum()
    assert colour_distance(Depths(banded, GROWN, depth), own, PX_PER_MM) > 12


def test_hair_of_a_depth_that_is_nowhere_near_is_compared_with_all_there_is() -> None:
    lab = np.full((HEIGHT, WIDTH, 3), (40.0, 0.0, 0.0), np.float32)
    deep, shallow = np.full(OWN.shape, 20.0, np.float32), np.full(OWN.shape, 1.0, np.float32)
    assert colour_distance(Depths(lab, GROWN, deep), Depths(lab, OWN, shallow), PX_PER_MM) == pytest.approx(0, abs=0.01)
    assert colour_distance(Depths(lab + 20, GROWN, deep), Depths(lab, OWN, shallow), PX_PER_MM) > 10


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # From table 1 of Sharma, Wu, Dalal (2005): among them those on either side of a jump of the hue's mean.
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0000),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, 2.4900, -0.0010), (50.0, -2.4900, 0.0009), 7.1792),
        ((50.0, 2.4900, -0.0010), (50.0, -2.4900, 0.0011), 7.2195),
        ((50.0, -0.0010, 2.4900), (50.0, 0.0009, -2.4900), 4.8045),
        ((50.0, -0.0010, 2.4900), (50.0, 0.0011, -2.4900), 4.7461),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (50.0, 3.2592, 0.3350), 1.0000),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((63.0109, -31.0961, -5.8663), (62.8187, -29.7946, -4.0864), 1.2630),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_ciede2000_gives_the_published_values(
    first: tuple[float, float, float], second: tuple[float, float, float], expected: float
) -> None:
    for one, other in ((first, second), (second, first)):
        assert ciede2000(np.array(one), np.array(other)) == pytest.approx(expected, abs=1e-4)


def test_lab_of_white_black_and_red() -> None:
    lab = lab_of(np.array([[[255, 255, 255], [0, 0, 0], [255, 0, 0]]], dtype=np.uint8))
    assert lab[0] == pytest.approx(np.array([[100, 0, 0], [0, 0, 0], [53.24, 80.09, 67.20]]), abs=0.1)
