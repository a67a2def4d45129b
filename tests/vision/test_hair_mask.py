"""The hair's border: strands that the parser's cells cannot hold, and what must not be taken for hair."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conftest import studio_portrait
from tests.vision.conftest import photo_of, resized
from vision.hair_mask import HairMatte, hair_alpha, hair_matte
from vision.landmarks import LandmarkDetector
from vision.parsing import parse
from vision.runtime import OnnxParser
from vision.types import Label, ParsingMap, RgbImage

SIDE_PX = 376
"""Of the raster, which is two mesh heights wide."""
FINER = 2
"""Pixels of the photo per pixel of the raster."""
DARK, PALE = (45, 35, 30), (190, 185, 180)
TO_PHOTO = np.array([[FINER, 0, (FINER - 1) / 2], [0, FINER, (FINER - 1) / 2]])

Mask = NDArray[np.bool_]


def believed(hair: Mask, *, cells: int = 20) -> ParsingMap:
    """What a parser with cells of so many photo pixels makes of true hair (H, W)."""
    coarse = cv2.resize(hair.astype(np.float32), None, fx=1 / cells, fy=1 / cells, interpolation=cv2.INTER_AREA)
    share = cv2.resize(coarse, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_LINEAR)
    probabilities = np.zeros((19, SIDE_PX, SIDE_PX), dtype=np.float32)
    probabilities[Label.HAIR] = share
    probabilities[Label.BACKGROUND] = 1 - share
    return ParsingMap(probabilities, TO_PHOTO)


def painted(
    hair: Mask, of_hair: tuple[int, int, int] = DARK, elsewhere: tuple[int, int, int] = PALE, noise: float = 8
) -> RgbImage:
    """Hair (H, W) of one colour on another, with grain."""
    grain = np.random.default_rng(5).normal(0, noise, (*hair.shape, 1))
    return np.clip(np.where(hair[..., None], of_hair, elsewhere) + grain, 0, 255).astype(np.uint8)


def head_of_hair() -> Mask:
    """A ball with single strands of 3 px that stick out of it."""
    canvas = np.zeros((SIDE_PX * FINER, SIDE_PX * FINER), dtype=np.uint8)
    cv2.circle(canvas, (376, 376), 200, 1, cv2.FILLED)
    for angle in np.radians(np.arange(0, 360, 9)):
        far = (376 + 214 * np.cos(angle), 376 + 214 * np.sin(angle))
        cv2.line(canvas, (376, 376), (round(far[0]), round(far[1])), 1, 3)
    return canvas > 0


def overlap(first: Mask, second: Mask) -> float:
    return float((first & second).sum() / (first | second).sum())


def test_strands_are_found_that_the_parser_does_not_hold() -> None:
    hair = head_of_hair()
    parsing = believed(hair)
    ring = np.zeros(hair.shape, dtype=np.uint8)
    cv2.circle(ring, (376, 376), 206, 1, 8)
    parsers = cv2.warpAffine(parsing.probabilities[Label.HAIR], TO_PHOTO, hair.shape) > 0.5
    found = hair_alpha(painted(hair), parsing) > 0.5
    outside = ring > 0
    assert overlap(found & outside, hair & outside) > 0.65
    assert overlap(parsers & outside, hair & outside) < 0.4, "otherwise this shows nothing"


def test_where_colours_say_nothing_the_parser_decides() -> None:
    """Dark hair before a dark wall: no hole, no fraying."""
    hair = head_of_hair()
    parsing = believed(hair)
    parsers = cv2.warpAffine(parsing.probabilities[Label.HAIR], TO_PHOTO, hair.shape) > 0.5
    assert overlap(hair_alpha(painted(hair, DARK, DARK), parsing) > 0.5, parsers) > 0.97


def test_the_parsers_border_may_be_off() -> None:
    """It draws the hair 3 % of the face too large, and the photo shows otherwise."""
    hair = head_of_hair()
    grown = cv2.dilate(hair.astype(np.uint8), cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (23, 23))) > 0
    assert overlap(hair_alpha(painted(hair), believed(grown)) > 0.5, hair) > 0.89
    assert overlap(grown, hair) < 0.85, "otherwise this shows nothing"


def test_the_background_far_from_hair_may_have_its_colour() -> None:
    hair = head_of_hair()
    rgb = painted(hair)
    rgb[:120, :120] = DARK
    assert hair_alpha(rgb, believed(hair))[:120, :120].max() == 0


def test_a_brow_near_the_hair_is_not_taken_for_it() -> None:
    hair = np.zeros((SIDE_PX * FINER, SIDE_PX * FINER), dtype=np.bool_)
    hair[:300] = True
    rgb = painted(hair)
    rgb[312:324, 300:460] = DARK
    parsing = believed(hair)
    brow = parsing.probabilities[:, 156:162, 150:230]
    brow[:] = 0
    brow[Label.LEFT_BROW] = 1
    assert hair_alpha(rgb, parsing)[314:322, 304:456].max() < 0.05


def test_a_mask_of_a_smaller_picture_is_the_mask_made_smaller() -> None:
    hair = head_of_hair()
    rgb = painted(hair)
    matte = hair_matte(rgb, believed(hair))
    full = matte.on(rgb, TO_PHOTO)
    smaller = matte.on(resized(rgb, SIDE_PX), np.eye(2, 3))
    reduced = cv2.resize(full, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_AREA)
    assert np.abs(smaller - reduced).mean() < 0.01
    assert smaller.sum() == pytest.approx(reduced.sum(), rel=0.01)


def test_a_part_of_the_picture_has_that_part_of_the_mask() -> None:
    """Rows are computed by bands: no seam between them, and none is shifted."""
    hair = head_of_hair()
    rgb = painted(hair)
    matte = hair_matte(rgb, believed(hair))
    below = TO_PHOTO - [[0, 0, 0], [0, 0, 200]]
    assert np.allclose(matte.on(rgb[200:500], below), matte.on(rgb, TO_PHOTO)[200:500], atol=1e-3)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_nothing_but_hair_and_no_hair_at_all(share: float) -> None:
    hair = np.full((SIDE_PX * FINER, SIDE_PX * FINER), bool(share))
    assert (hair_alpha(painted(hair), believed(hair)) == share).all()


def test_a_speck_is_no_hair() -> None:
    hair = np.zeros((SIDE_PX * FINER, SIDE_PX * FINER), dtype=np.bool_)
    hair[300:316, 300:316] = True
    assert hair_alpha(painted(hair), believed(hair, cells=4)).max() == 0


def test_nothing_lies_beyond_the_raster() -> None:
    everywhere = np.zeros((10, 10, 4), dtype=np.float32)
    everywhere[..., 3] = 1
    hair = HairMatte(everywhere).on(np.zeros((40, 40, 3), dtype=np.uint8), np.array([[1.0, 0, 20], [0, 1.0, 20]]))
    assert hair[20:30, 20:30].min() == 1
    assert hair[:19].max() == 0
    assert hair[:, 31:].max() == 0


@pytest.mark.models
def test_a_studio_portraits_curls_are_dark_and_what_is_left_is_not(
    detector: LandmarkDetector, parser: OnnxParser, studio_rgb: RgbImage
) -> None:
    """The picture is of black curls before a grey wall: full hair is dark, and just outside of it nothing dark is
    left, which the parser alone does not achieve.
    """
    photo = photo_of(studio_rgb)
    landmarks = detector.find(photo.rgb)[0]
    parsing = parse(photo, landmarks, parser, lambda: None)
    hair = hair_alpha(photo.rgb, parsing)
    parsers = cv2.warpAffine(parsing.probabilities[Label.HAIR], parsing.photo_from_map, (1024, 1024)) > 0.5
    top = slice(0, int(landmarks.points[10, 1] - 60))
    dark = photo.rgb[top].max(axis=2) < 75

    def missed(mask: Mask) -> float:
        return float((mask ^ dark).sum() / dark.sum())

    assert missed(hair[top] > 0.5) < 0.6 * missed(parsers[top])


JAW = (132, 58, 172, 136, 150, 149, 176, 148, 152, 377, 400, 378, 379, 365, 397, 288, 361)
"""Points of the mesh along the jaw, from ear lobe to ear lobe."""


@pytest.mark.models
@pytest.mark.parametrize("person", [2, 3, 8, 9])
def test_a_lit_cheek_is_no_hair(
    person: int, detector: LandmarkDetector, parser: OnnxParser, read_rgb: Callable[[Path], RgbImage]
) -> None:
    """Hair hangs beside the jaw, which is in shade there and as dark as hair in the light."""
    photo = photo_of(resized(read_rgb(studio_portrait(person)), 1024))
    landmarks = detector.find(photo.rgb)[0]
    hair = hair_alpha(photo.rgb, parse(photo, landmarks, parser, lambda: None))
    jaw = landmarks.points[list(JAW)]
    below_the_ears = cv2.fillPoly(np.zeros(hair.shape, np.uint8), [np.rint(jaw).astype(np.int32)], 1) > 0
    grey = cv2.cvtColor(photo.rgb, cv2.COLOR_RGB2GRAY)
    cheek_x, cheek_y = np.rint(landmarks.points[[205, 425]]).astype(int).T
    lit = grey > grey[cheek_y, cheek_x].min() / 2
    assert (hair[below_the_ears & lit] > 0.25).mean() < 0.008
