"""The canvas and the jobs: everything stays where it was in the photo, and only what is bare skin has to grow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vision.conftest import photo_of
from tests.vision.growth.painted_heads import SIDE_PX, hairline_y, lowered, painted_facts, parsing_of
from vision.calls import DEFAULT_DENSITY_PER_CM2, HairlineDesign, Style
from vision.growth.backend import GrowthReason, GrowthUnavailableError
from vision.growth.region_raster import coverage
from vision.growth.scene import (
    FACE_OPENINGS,
    free_borders,
    growable,
    hair,
    job_for_design,
    job_for_region,
    landmarks_of,
    on_canvas,
    other_borders,
    px_per_mm,
    scene_of,
)
from vision.types import Facts, Label, Measurement, Points


def design_of(facts: Facts, by_px: float) -> HairlineDesign:
    front, region = lowered(facts, by_px)
    middle, right, left = (tuple(front[at].tolist()) for at in (len(front) // 2, 0, -1))
    return HairlineDesign(
        style=Style.ROUND,
        curve=front,
        mid_point=middle,
        left_temple_point=left,
        right_temple_point=right,
        height=Measurement(),
        area_cm2=None,
        area_interval_cm2=None,
        grafts=None,
        density_per_cm2=DEFAULT_DENSITY_PER_CM2,
        rules=(),
        regions=(region,) if by_px else (),
    )


@given(x=st.integers(50, 700), y=st.integers(50, 700), side=st.integers(150, 900))
@settings(max_examples=25, deadline=None)
def test_what_is_seen_in_the_photo_is_found_at_its_place_on_the_canvas(x: int, y: int, side: int) -> None:
    facts = painted_facts(hair=False)
    rgb = np.zeros_like(facts.photo.rgb)
    rgb[y : y + 20, x : x + 20] = 255
    scene = scene_of(replace(facts, photo=photo_of(rgb)), side)
    light = scene.rgb[..., 0].astype(float)
    rows, columns = np.indices(light.shape)
    seen = np.array([(columns * light).sum(), (rows * light).sum()]) / light.sum()
    factor = max(scene.rgb.shape) / SIDE_PX
    assert np.allclose(seen, on_canvas(np.array([x + 9.5, y + 9.5]), factor), atol=0.06)  # pixels of 8 bits


def test_all_that_is_known_moves_with_the_photo() -> None:
    facts = painted_facts()
    whole, half = scene_of(facts, 4000), scene_of(facts, SIDE_PX // 2)
    assert whole.scale == 1
    assert np.array_equal(whole.rgb, facts.photo.rgb)
    assert half.rgb.shape == (SIDE_PX // 2, SIDE_PX // 2, 3)
    assert half.mm_per_px == pytest.approx(2 * (whole.mm_per_px or 0))
    assert whole.hairline is not None
    assert half.hairline is not None
    assert np.allclose(half.hairline, on_canvas(whole.hairline, 0.5))
    assert np.allclose(landmarks_of(half).points, on_canvas(facts.landmarks.points, 0.5))
    # The parser's border between skin and hair lies at the hairline on both canvases.
    for scene in (whole, half):
        x = scene.rgb.shape[1] // 2
        border = np.argmax(hair(scene)[:, x][::-1] > 0.5)
        expected = on_canvas(np.array([0, hairline_y(facts, np.array([SIDE_PX // 2]))[0]]), scene.scale)[1]
        assert scene.rgb.shape[0] - 1 - border == pytest.approx(expected, abs=1.5)


def test_hair_is_weighed_against_skin_alone() -> None:
    """Deep in hair the parser is sure of no more than 0.85; its cells at a hat's border say neither."""
    facts = painted_facts()
    probabilities = facts.parsing.probabilities * 0.85
    probabilities[Label.CLOTH] += 0.15
    unsure = replace(facts, parsing=replace(facts.parsing, probabilities=probabilities))
    assert hair(scene_of(unsure, SIDE_PX)).max() > 0.99
    hat = replace(facts, parsing=parsing_of(np.full((SIDE_PX, SIDE_PX), Label.HAT)))
    assert hair(scene_of(hat, SIDE_PX)).max() == 0


def test_a_job_for_a_design_fills_the_bare_part_of_its_region() -> None:
    facts = painted_facts()
    scene = scene_of(facts, SIDE_PX)
    design = design_of(facts, 40)
    job = job_for_design(scene, design, seed=4, timeout_s=3.0)
    assert (job.seed, job.timeout_s) == (4, 3.0)
    assert job.front is not None
    assert np.allclose(job.front, design.curve)
    inside = coverage(list(design.regions), job.region.shape) / 255
    assert (job.region <= inside + 1e-6).all()
    x = SIDE_PX // 2
    line = round(float(hairline_y(facts, np.array([x]))[0]))
    assert job.region[line + 8 : line + 36, x].min() > 0.99
    assert job.region[: line - 8, x].max() == 0, "own hair stays"


def test_a_design_that_the_present_hair_reaches_leaves_nothing_to_grow() -> None:
    facts = painted_facts()
    scene = scene_of(facts, SIDE_PX)
    with pytest.raises(GrowthUnavailableError) as refused:
        job_for_design(scene, design_of(facts, 0), 1, None)
    assert refused.value.reason is GrowthReason.NOTHING_TO_GROW


def mask_of(polygon: Points) -> np.typing.NDArray[np.uint8]:
    return coverage([polygon], (SIDE_PX, SIDE_PX))


def test_the_front_of_a_marked_region_is_where_it_borders_on_skin() -> None:
    facts = painted_facts()
    scene = scene_of(facts, SIDE_PX)
    front, region = lowered(facts, 40)
    job = job_for_region(scene, mask_of(region), 1, None)
    assert job.front is not None
    assert job.front[0, 0] < job.front[-1, 0]
    inner = (front[:, 0] > 340) & (front[:, 0] < 460)
    for point in front[inner]:
        assert np.linalg.norm(job.front - point, axis=1).min() < 2.5


def marked_below_the_hairline(facts: Facts, gap_px: float) -> Points:
    """A patch on the forehead that follows the hairline from `gap_px` below it on."""
    x = np.linspace(360, 440, 20)
    line = hairline_y(facts, x)
    return np.vstack([np.column_stack([x, line + gap_px]), np.column_stack([x, line + gap_px + 30])[::-1]])


def test_a_narrow_bare_strip_between_the_mark_and_the_hair_is_grown_over() -> None:
    facts = painted_facts()
    scene = scene_of(facts, SIDE_PX)
    gap_px = 5 * px_per_mm(scene)
    job = job_for_region(scene, mask_of(marked_below_the_hairline(facts, gap_px)), 1, None)
    line = round(float(hairline_y(facts, np.array([400]))[0]))
    assert job.region[line + 4 : line + 20, 400].min() > 0.99
    assert job.region[:, 340].max() == 0, "not beside it"
    assert job.front is not None
    assert job.front[:, 1].max() == pytest.approx(line + gap_px + 30, abs=2)
    assert len(free_borders(scene, job.region)) == 1


def test_a_patch_far_below_the_hair_stays_as_it_was_marked() -> None:
    facts = painted_facts()
    scene = scene_of(facts, SIDE_PX)
    mask = mask_of(marked_below_the_hairline(facts, 14 * px_per_mm(scene)))
    job = job_for_region(scene, mask, 1, None)
    assert float(job.region.sum()) == pytest.approx(float(mask.sum()) / 255, rel=0.01)
    (whole,) = free_borders(scene, job.region)
    assert np.allclose(whole[0], whole[-1]), "free all around"


def test_next_to_nothing_everywhere_is_nothing_to_grow() -> None:
    facts = painted_facts()
    scene = scene_of(facts, SIDE_PX)
    _, region = lowered(facts, 40)
    thin = (mask_of(region).astype(float) * 0.4).astype(np.uint8)
    with pytest.raises(GrowthUnavailableError) as refused:
        job_for_region(scene, thin, 1, None)
    assert refused.value.reason is GrowthReason.NOTHING_TO_GROW


def test_borders_beside_the_front_are_those_apart_from_it() -> None:
    facts = painted_facts()
    scene = scene_of(facts, SIDE_PX)
    job = job_for_region(scene, mask_of(lowered(facts, 40)[1]), 1, None)
    assert other_borders(job) == []
    (border,) = other_borders(replace(job, front=None))
    assert job.front is not None
    assert len(border) == pytest.approx(len(job.front), rel=0.2)


def test_a_bare_spot_amid_hair_has_no_front_and_hair_leaves_nothing_to_grow() -> None:
    facts = painted_facts()
    spot = np.array([[380, 130], [420, 130], [420, 165], [380, 165]], dtype=np.float64)
    full = scene_of(facts, SIDE_PX)
    with pytest.raises(GrowthUnavailableError) as refused:
        job_for_region(full, mask_of(spot), 1, None)
    assert refused.value.reason is GrowthReason.NOTHING_TO_GROW

    labels = np.where(mask_of(spot) > 127, Label.SKIN, np.where(hair(full) > 0.5, Label.HAIR, Label.SKIN))
    bare = scene_of(replace(facts, parsing=parsing_of(labels)), SIDE_PX)
    job = job_for_region(bare, mask_of(spot), 1, None)
    assert job.front is None
    assert job.region[140:155, 390:410].min() > 0.99


def test_nothing_grows_on_eyes_brows_nose_lips_or_beyond_the_head() -> None:
    scene = scene_of(painted_facts(), SIDE_PX)
    ground = growable(scene)
    for opening in FACE_OPENINGS:
        inside = coverage([scene.landmarks[list(opening)]], ground.shape) == 255
        assert inside.any()
        assert ground[inside].max() == 0
    assert ground[:, :150].max() == 0, "the background"
    assert ground[250, 400] == 1, "the forehead"
    everywhere = np.full((SIDE_PX, SIDE_PX), 255, dtype=np.uint8)
    region = job_for_region(scene, everywhere, 1, None).region
    assert (region <= ground).all()


def test_without_a_scale_widths_go_by_the_distance_of_the_pupils() -> None:
    scene = scene_of(painted_facts(with_scale=False), SIDE_PX)
    apart = float(np.linalg.norm(scene.landmarks[473] - scene.landmarks[468]))
    assert scene.mm_per_px is None
    assert px_per_mm(scene) == pytest.approx(apart / 63)


def test_planes_are_found_once_for_a_scene_and_anew_for_another() -> None:
    scene = scene_of(painted_facts(), SIDE_PX)
    assert hair(scene) is hair(scene)
    assert growable(scene) is growable(scene)
    bald = replace(scene, parsing=parsing_of(np.full((SIDE_PX, SIDE_PX), Label.SKIN)))
    assert hair(bald).max() == 0
    assert hair(scene).max() > 0.9
    with pytest.raises(ValueError, match="read-only"):
        hair(scene)[0, 0] = 1
