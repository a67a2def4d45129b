"""Directions and slowly varying things, continued from where they are known to where they are not."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vision.growth.painted_heads import lowered, painted_facts
from vision.growth.backend import GrowthJob
from vision.growth.region_raster import coverage
from vision.growth.scene import scene_of
from vision.growth.strands.field import growth_field, spread
from vision.growth.strands.own_hair import look_at_hair
from vision.growth.strands.plot import Coarse, Frame, survey
from vision.types import Points


def surveyed(angle_deg: float) -> tuple[Coarse, GrowthJob]:
    facts = painted_facts(angle_deg=angle_deg)
    scene = scene_of(facts, 800)
    front, polygon = lowered(facts, 60.0)
    region = (coverage([polygon], scene.rgb.shape[:2]) / np.float32(255)).astype(np.float32)
    job = GrowthJob(scene, region, front, 1, None)
    return survey(job)[0], job


@settings(max_examples=40, deadline=None)
@given(
    origin=st.tuples(st.floats(-50, 50), st.floats(-50, 50)),
    step=st.floats(0.5, 8),
    points=st.lists(st.tuples(st.floats(-500, 500), st.floats(-500, 500)), min_size=1, max_size=5),
)
def test_a_frame_leads_there_and_back(
    origin: tuple[float, float], step: float, points: list[tuple[float, float]]
) -> None:
    frame = Frame(origin, step, 10, 10)
    there: Points = np.array(points)
    assert np.allclose(frame.to_canvas(frame.from_canvas(there)), there, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    cell_mm=st.floats(0.3, 2.0),
    share=st.floats(0.002, 0.9),
    low=st.floats(-1, 1),
    wide=st.floats(0, 2),
)
def test_what_is_continued_stays_between_the_known_values(
    seed: int, cell_mm: float, share: float, low: float, wide: float
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.uniform(low, low + wide, (40, 60, 2)).astype(np.float32)
    weight = (rng.uniform(size=(40, 60)) < share).astype(np.float32)
    weight[3, 7] = 1
    filled = spread(values, weight, cell_mm)
    assert np.isfinite(filled).all()
    known = values[weight > 0]
    assert filled.min() >= known.min() - 1e-3
    assert filled.max() <= known.max() + 1e-3


def test_the_nearest_known_values_count_most() -> None:
    values = np.zeros((40, 200, 1), dtype=np.float32)
    values[:, 150:] = 1
    weight = np.zeros((40, 200), dtype=np.float32)
    weight[:, :20] = weight[:, -20:] = 1
    filled = spread(values, weight, 0.5)[20, :, 0]
    assert filled[30] < 0.2
    assert filled[170] > 0.8


def test_hair_grows_outward_along_the_axis_of_the_own_hair() -> None:
    """A strand of a painted photo has no root: of its two directions the one away from the face is meant."""
    for angle_deg in (-30.0, 0.0, 30.0):
        coarse, job = surveyed(angle_deg)
        field = growth_field(coarse, look_at_hair(job.scene.rgb, coarse))
        assert np.allclose(np.linalg.norm(field, axis=-1), 1, atol=1e-3)
        x = coarse.frame.from_canvas(np.array([[400.0, 0.0]]))[0, 0]
        in_region = np.argwhere(coarse.region > 0.9)
        middle = in_region[np.abs(in_region[:, 1] - x) < 20]
        mean = field[middle[:, 0], middle[:, 1]].mean(axis=0)
        found_deg = np.degrees(np.arctan2(mean[0], -mean[1]))
        assert mean[1] < 0
        assert abs(found_deg + angle_deg) < 15  # `combed` turns strands the other way round
