"""The person's own front, moved onto the new one: what comes along with it, and where it cannot be had."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.vision.growth.painted_heads import hairline_y, lowered, painted_facts
from tests.vision.growth.test_local import (
    CANVAS_PX,
    deep,
    front_profile,
    grown,
    hairiness,
    job_on,
    region_of,
    strand_axis_deg,
)
from vision.growth.backend import GrowthJob
from vision.growth.composite import composite, reach
from vision.growth.scene import px_per_mm
from vision.growth.strands.looks import Looks
from vision.growth.strands.plot import survey
from vision.growth.strands.rays import RAYS, STEEPEST, Rays
from vision.growth.texture_colour import lab_of
from vision.types import Label, RgbImage

BY_PX = 30.0
"""15 mm."""
RED = (200, 20, 20)


def behind_mm(job: GrowthJob, by_px: float = 0.0) -> NDArray[np.float64]:
    """(H, W), how far behind the old hairline, or behind one that lies lower in the middle."""
    y, x = np.mgrid[:CANVAS_PX, :CANVAS_PX]
    return np.asarray((hairline_y(painted_facts(), x) + by_px - y) / px_per_mm(job.scene), dtype=np.float64)


def middle(job: GrowthJob) -> NDArray[np.bool_]:
    """(H, W), columns where the painted hairline is level."""
    _, x = np.mgrid[:CANVAS_PX, :CANVAS_PX]
    return np.asarray(np.abs(x - CANVAS_PX / 2) < 20, dtype=np.bool_)


def on_photo(job: GrowthJob, rgb: NDArray[np.number]) -> GrowthJob:
    return replace(job, scene=replace(job.scene, rgb=np.clip(np.rint(rgb), 0, 255).astype(np.uint8)))


def rays_of(job: GrowthJob) -> Rays | None:
    coarse = survey(job)[0]
    return Rays.of(job, coarse, Looks.of(coarse))


def finished(job: GrowthJob) -> RgbImage:
    return composite(job.scene.rgb, grown(job), reach(job))


def red(rgb: RgbImage) -> NDArray[np.bool_]:
    wide = rgb.astype(int)
    return (wide[..., 0] > 120) & (wide[..., 1] < 70)


def test_what_is_at_the_own_front_comes_along() -> None:
    """A red lock that begins 2 mm behind the old front."""
    job = job_on(painted_facts(), by_px=BY_PX)
    depth = behind_mm(job)
    lock = (depth > 2) & (depth < 7) & middle(job)
    job = on_photo(job, np.where(lock[..., None], np.array(RED), job.scene.rgb))
    found = red(finished(job)) & (behind_mm(job, BY_PX) < 9)
    assert np.count_nonzero(found) > 0.5 * np.count_nonzero(lock)
    at_mm = behind_mm(job, BY_PX)[found]
    assert 1 < np.median(at_mm) < 8
    assert red(job.scene.rgb)[found].mean() < 0.3  # they are not those of the photo


def test_light_hair_is_no_darker_at_the_new_front_than_at_the_old_one() -> None:
    job = job_on(painted_facts(), by_px=BY_PX)
    hair = np.clip(hairiness(job.scene.rgb), 0, 1)[..., None]
    light = job.scene.rgb + hair * 110.0
    job = on_photo(job, light)
    brightness = cv2.GaussianBlur(finished(job).mean(axis=2), (0, 0), 1.0)
    own = cv2.GaussianBlur(job.scene.rgb.mean(axis=2), (0, 0), 1.0)
    for low in range(-2, 8):
        new_here = (behind_mm(job, BY_PX) >= low) & (behind_mm(job, BY_PX) < low + 1) & middle(job)
        own_here = (behind_mm(job) >= low) & (behind_mm(job) < low + 1) & middle(job)
        assert brightness[new_here].mean() == pytest.approx(own[own_here].mean(), abs=8)


def dimmed(job: GrowthJob) -> NDArray[np.float64]:
    """(H, W), 1 at the old hairline and 0.85 from 15 mm before it on."""
    return np.asarray(1 - 0.15 * np.clip(-behind_mm(job) / 15, 0, 1), dtype=np.float64)


def test_hair_begins_on_the_design_also_where_the_hairline_was_told_too_low() -> None:
    """By 2 mm, which is what hairlines are known to: the hair itself is seen."""
    job = job_on(painted_facts(), by_px=BY_PX)
    line = job.scene.hairline
    assert line is not None
    job = replace(job, scene=replace(job.scene, hairline=line + np.array([0.0, 4.0])))
    mm, profile = front_profile(job, finished(job))
    mean = np.maximum.accumulate(profile.mean(axis=1))
    told = replace(job, scene=replace(job.scene, hairline=line))
    as_told = np.maximum.accumulate(front_profile(told, finished(told))[1].mean(axis=1))
    assert abs(np.interp(0.5, mean, mm) - np.interp(0.5, as_told, mm)) < 0.7


def test_the_skin_before_the_new_front_stays_as_it_is() -> None:
    """Darker than at the old front, and with pores of its own: none of the old skin is moved there."""
    job = job_on(painted_facts(), by_px=BY_PX)
    pores = np.random.default_rng(3).normal(0, 6, job.scene.rgb.shape[:2])[..., None]
    job = on_photo(job, (job.scene.rgb + pores) * dimmed(job)[..., None])
    before = (behind_mm(job, BY_PX) < -1.5) & (behind_mm(job, BY_PX) > -4) & middle(job)
    change = np.abs(finished(job).astype(int) - job.scene.rgb)
    assert change[before].mean() < 1


def before_a_thin_head_of_hair(by_px: float, angle_deg: float = 0.0) -> GrowthJob:
    """Hair of 14 mm depth, green behind it."""
    facts = painted_facts(angle_deg=angle_deg)
    job = job_on(facts, by_px=by_px)
    outside = (behind_mm(job) > 14) & (behind_mm(job) < 1000)
    labels = job.scene.parsing.probabilities.copy()
    gone = cv2.resize(outside.astype(np.uint8), labels.shape[:0:-1], interpolation=cv2.INTER_AREA) > 0
    labels[Label.BACKGROUND] += np.where(gone, labels[Label.HAIR], 0)
    labels[Label.HAIR] *= ~gone
    job = on_photo(job, np.where(outside[..., None], np.array((20, 230, 20)), job.scene.rgb))
    return replace(job, scene=replace(job.scene, parsing=replace(job.scene.parsing, probabilities=labels)))


def test_nothing_of_the_background_is_moved_onto_the_head() -> None:
    """31 mm to be grown."""
    job = before_a_thin_head_of_hair(60.0)
    wide = grown(job).astype(int)
    green = wide[..., 1] > wide[..., 0] + 25
    assert not green[deep(job, 1.0)].any()
    assert hairiness(grown(job))[deep(job)].mean() > 0.75


def test_hair_that_is_not_deep_enough_is_not_drawn_out() -> None:
    """Combed sideways: drawn out, its strands would be bands several times as wide."""
    job = before_a_thin_head_of_hair(60.0, angle_deg=90)
    at_mm = behind_mm(job, 60.0)

    def fineness(rgb: RgbImage, where: NDArray[np.bool_]) -> float:
        return float(np.abs(np.diff(lab_of(rgb)[..., 0], axis=0, prepend=0))[where & middle(job)].mean())

    own = fineness(job.scene.rgb, (behind_mm(job) > 4) & (behind_mm(job) < 12))
    assert fineness(finished(job), (at_mm > 14) & (at_mm < 29)) > 0.6 * own


def test_hair_beside_the_region_is_left_where_it_is() -> None:
    """Also where it is so thin that moved hair had to be drawn together."""
    job = before_a_thin_head_of_hair(6.0)
    job = replace(job, region=(job.region * (np.arange(CANVAS_PX) < 400)).astype(np.float32))
    columns = np.arange(CANVAS_PX)
    beside = (behind_mm(job) > 3) & (behind_mm(job) < 12) & (columns > 416) & (columns < 424)
    change = grown(job).astype(int) - job.scene.rgb
    assert np.abs(change[beside]).max() < 3


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "below one at the hairline"])
def test_a_region_that_lies_by_itself_gets_hair_of_its_own(beside: bool) -> None:
    whole = job_on(painted_facts(), by_px=BY_PX)
    angle = np.linspace(0, 2 * np.pi, 40)
    outline = np.array([480.0, 290.0]) + 20 * np.column_stack([np.cos(angle), np.sin(angle)])
    island = region_of(whole.scene, outline)
    left = whole.region * (np.arange(CANVAS_PX) < 400)
    job = replace(whole, region=np.maximum(island, left) if beside else island, front=outline)
    picture = finished(job)
    assert hairiness(picture)[(island > 0.5) & deep(replace(job, region=island), 4.0)].mean() > 0.6
    ring = cv2.distanceTransform((job.region < 0.5).astype(np.uint8), cv2.DIST_L2, 5) > 28
    assert np.abs(picture.astype(int) - job.scene.rgb)[ring].max() == 0


def test_at_the_end_of_a_region_nothing_is_torn() -> None:
    """Where the move ends, beyond the hairline's ends, hair stays hair."""
    job = job_on(painted_facts())
    before, after = hairiness(job.scene.rgb), hairiness(finished(job))
    hair = (behind_mm(job) > 4) & (cv2.blur(before, (9, 9)) > 0.85) & (before > 0.7)
    assert after[hair].min() > 0.3


@settings(max_examples=15, deadline=None)
@given(by_px=st.floats(6, 60), end=st.floats(0.3, 0.95))
def test_the_move_reaches_the_front_and_never_changes_abruptly(by_px: float, end: float) -> None:
    """Of a region that ends somewhere with a step."""
    facts = painted_facts()
    job = job_on(facts, by_px=by_px)
    job.region[:, int(end * CANVAS_PX) :] = 0
    if job.region.sum() < 400:
        return
    rays = rays_of(job)
    if rays is None:
        return
    steps = np.abs(np.diff(rays.shift_px))
    assert steps.max() <= STEEPEST * 2 * np.pi / RAYS * np.median(rays.own_px) * 1.05
    assert rays.shift_px.min() >= 0
    front, _ = lowered(facts, by_px)
    wanted = np.abs(front - np.array([(p.x_px, p.y_px) for p in facts.hairline.points])).max()
    assert rays.shift_px.max() <= 1.5 * wanted + 6
    angles = np.linspace(-np.pi, np.pi, 7, dtype=np.float32)[None]
    assert np.allclose(rays.at(rays.own_px, angles)[0, [0, -1]], rays.own_px[0])


def test_where_a_region_ends_with_a_step_strands_run_on_as_they_ran() -> None:
    """Combed sideways, and not bent along the step."""
    job = job_on(painted_facts(angle_deg=90), by_px=BY_PX)
    job.region[:, : CANVAS_PX // 2] = 0
    columns = np.arange(CANVAS_PX)
    at_step = (behind_mm(job) < -2) & (behind_mm(job) > -9) & (columns > 402) & (columns < 418)
    assert hairiness(finished(job))[at_step].mean() > 0.7
    assert abs(strand_axis_deg(finished(job), at_step)) > 50


@pytest.mark.parametrize(("half_px", "least", "most"), [(6, 0.2, 0.85), (400, 0.9, 1.0)], ids=["a peak", "all of it"])
def test_behind_a_narrow_peak_hair_is_moved_less_than_at_its_tip(half_px: int, least: float, most: float) -> None:
    """Its strands would bend down into the peak and up again."""
    job = job_on(painted_facts(), by_px=BY_PX)
    job.region[:, : CANVAS_PX // 2 - half_px] = job.region[:, CANVAS_PX // 2 + half_px :] = 0
    rays = rays_of(job)
    assert rays is not None
    straight_up = np.zeros((1, 3), dtype=np.float32)
    tip, near, deep = rays.move_at(straight_up, np.array([[0.0, 2.0, 16.0]], dtype=np.float32))[0]
    assert tip > near > 0.9 * tip or half_px > 100
    assert least * tip <= deep <= most * tip


def test_a_front_that_moves_by_little_is_moved_as_it_is() -> None:
    """Nothing is left to chance: it comes and goes no more than it did."""
    job = job_on(painted_facts(), by_px=3.0)
    first, second = (finished(replace(job, seed=seed))[middle(job)] for seed in (1, 2))
    assert (first != job.scene.rgb[middle(job)]).any()
    assert np.array_equal(first, second)


def test_there_are_no_rays_without_a_hairline_a_front_or_a_way_to_go() -> None:
    job = job_on(painted_facts())
    line = np.array([(p.x_px, p.y_px) for p in painted_facts().hairline.points])
    assert rays_of(job) is not None
    assert rays_of(replace(job, front=None)) is None
    assert rays_of(replace(job, scene=replace(job.scene, hairline=None))) is None
    assert rays_of(replace(job, scene=replace(job.scene, hairline=line + np.array([0.0, 200.0])))) is None
