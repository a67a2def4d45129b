"""Compositing: what lies outside the feathered region is the input's, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.vision.growth.painted_heads import SIDE_PX, lowered, painted_facts
from vision.growth.backend import GrowthJob
from vision.growth.composite import INTO_HAIR_MM, INTO_SKIN_MM, composite, reach
from vision.growth.region_raster import coverage
from vision.growth.scene import growable, hair, job_for_region, px_per_mm, scene_of
from vision.types import RgbImage

PICTURES = arrays.arrays(np.uint8, (9, 11, 3))
WEIGHTS = arrays.arrays(
    np.float32, (9, 11), elements=st.sampled_from([0.0, 0.0, 0.0, 1e-6, 0.25, 0.5, 1 - 2**-20, 1.0])
)


@given(canvas=PICTURES, grown=PICTURES, weights=WEIGHTS)
@settings(max_examples=200)
def test_each_pixel_lies_between_both_and_is_one_of_them_at_the_ends(
    canvas: RgbImage, grown: RgbImage, weights: np.typing.NDArray[np.float32]
) -> None:
    before = canvas.copy()
    finished = composite(canvas, grown, weights)
    assert finished.dtype == np.uint8
    assert np.array_equal(canvas, before), "the input is not written to"
    assert np.array_equal(finished[weights == 0], canvas[weights == 0])
    assert np.array_equal(finished[weights == 1], grown[weights == 1])
    assert (finished >= np.minimum(canvas, grown)).all()
    assert (finished <= np.maximum(canvas, grown)).all()


def test_pictures_of_another_size_are_no_growth() -> None:
    canvas = np.zeros((8, 8, 3), dtype=np.uint8)
    with pytest.raises(ValueError, match="canvas"):
        composite(canvas, np.zeros((8, 9, 3), dtype=np.uint8), np.zeros((8, 8), dtype=np.float32))


def job(by_px: float = 40) -> GrowthJob:
    facts = painted_facts()
    _, region = lowered(facts, by_px)
    return job_for_region(scene_of(facts, SIDE_PX), coverage([region], (SIDE_PX, SIDE_PX)), 1, None)


def test_reach_is_one_in_the_region_and_nothing_a_few_millimetres_off() -> None:
    asked = job()
    weights = reach(asked)
    ground = growable(asked.scene)
    inside = (asked.region >= 0.5) & (ground == 1)
    assert weights[inside].min() == 1
    outside = (asked.region < 0.5).astype(np.uint8)
    away_mm = np.asarray(cv2.distanceTransform(outside, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)) / px_per_mm(asked.scene)
    assert weights[away_mm > INTO_HAIR_MM].max() == 0
    bare = hair(asked.scene) == 0
    assert weights[bare & (away_mm > INTO_SKIN_MM)].max() == 0
    full = (hair(asked.scene) == 1) & (ground == 1)
    assert weights[full & (away_mm > 4.5) & (away_mm < 5.5)].min() > 0, "wider into hair"
    assert 0 < weights[bare & (ground == 1) & (away_mm > 1) & (away_mm < INTO_SKIN_MM - 1)].min() < 1


def test_reach_spares_brows_and_background_beside_and_inside_the_region() -> None:
    asked = job()
    brows = np.zeros_like(asked.region)
    brows[250:420, 190:610] = 1
    weights = reach(replace(asked, region=brows))
    ground = growable(asked.scene)
    assert weights[ground == 0].max() == 0
    assert weights[(ground == 1) & (brows == 1)].min() == 1


def test_reach_of_nothing_is_nothing() -> None:
    asked = job()
    assert not reach(replace(asked, region=np.zeros_like(asked.region))).any()
