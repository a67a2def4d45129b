"""Directions and slowly varying things, continued from where they are known to where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vision.growth.painted_heads import lowered, painted_facts
from tests.vision.growth.test_local import GivesUp, strand_axis_deg
from vision.errors import CancelledCallError
from vision.growth.backend import GrowthJob
from vision.growth.region_raster import coverage
from vision.growth.scene import scene_of
from vision.growth.strands.field import growth_field, spread
from vision.growth.strands.looks import Looks
from vision.growth.strands.own_hair import look_at_hair
from vision.growth.strands.plot import Coarse, Frame, survey
from vision.growth.strands.quilt import Quilt
from vision.growth.strands.strokes import draw_strands, strand_noise
from vision.types import NoProgress, Points


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
        field = growth_field(coarse, look_at_hair(job.scene.rgb, coarse, Looks.of(coarse)))
        assert np.allclose(np.linalg.norm(field, axis=-1), 1, atol=1e-3)
        x = coarse.frame.from_canvas(np.array([[400.0, 0.0]]))[0, 0]
        in_region = np.argwhere(coarse.region > 0.9)
        middle = in_region[np.abs(in_region[:, 1] - x) < 20]
        mean = field[middle[:, 0], middle[:, 1]].mean(axis=0)
        found_deg = np.degrees(np.arctan2(mean[0], -mean[1]))
        assert mean[1] < 0
        assert abs(found_deg + angle_deg) < 15  # `combed` turns strands the other way round


@pytest.mark.parametrize("wanted_deg", [-70.0, 0.0, 45.0])
def test_patches_are_turned_into_the_growth_field(wanted_deg: float) -> None:
    """From hair that stands upright, whatever way it is to lie."""
    _, job = surveyed(0.0)
    coarse, plot = survey(job)
    rng = np.random.default_rng(1)
    direction = np.array([np.sin(np.radians(wanted_deg)), -np.cos(np.radians(wanted_deg))], dtype=np.float32)
    quilt = Quilt(job.scene.rgb, coarse, plot, look_at_hair(job.scene.rgb, coarse, Looks.of(coarse)), rng)
    on_coarse = np.broadcast_to(direction, (*coarse.hair.shape, 2))
    on_plot = np.ascontiguousarray(np.broadcast_to(direction, (*plot.region.shape, 2)))
    wanted = plot.region > 0.5
    cover = quilt.cover(wanted, on_coarse, strand_noise(on_plot, 6.0, 0.7, rng), rng, NoProgress())
    found = strand_axis_deg(np.rint(cover * 255).astype(np.uint8), wanted)
    assert abs((found - wanted_deg + 90) % 180 - 90) < 12


def test_drawing_strands_stops_when_nobody_waits() -> None:
    plot = survey(surveyed(0.0)[1])[1]
    field = np.zeros((*plot.region.shape, 2), dtype=np.float32)
    field[..., 1] = -1
    with pytest.raises(CancelledCallError):
        draw_strands(
            plot,
            field,
            plot.region,
            length_mm=5.0,
            curliness=0.0,
            blur_px=0.7,
            rng=np.random.default_rng(1),
            progress=GivesUp(after=1),
        )
