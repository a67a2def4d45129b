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
from tests.vision.growth.test_local import CANVAS_PX, deep, grown, hairiness, job_on, region_of
from vision.growth.backend import GrowthJob
from vision.growth.composite import composite, reach
from vision.growth.scene import px_per_mm
from vision.growth.strands.plot import survey
from vision.growth.strands.rays import RAYS, STEEPEST, Rays
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


def test_the_skin_keeps_its_light_up_to_the_first_hairs() -> None:
    """A forehead that is half as bright where the new front comes to lie: no rim of the old forehead's skin."""
    job = job_on(painted_facts(), by_px=BY_PX)
    y, _ = np.mgrid[:CANVAS_PX, :CANVAS_PX]
    dim = 1 - 0.4 * np.clip(-behind_mm(job) / 15, 0, 1)
    job = on_photo(job, job.scene.rgb * np.where(y < CANVAS_PX, dim, 1)[..., None])
    before = (behind_mm(job, BY_PX) < -1.5) & (behind_mm(job, BY_PX) > -4) & middle(job)
    change = finished(job).astype(int) - job.scene.rgb
    assert np.abs(change[before].mean()) < 4


def test_nothing_of_the_background_is_moved_onto_the_head() -> None:
    """Hair of 14 mm depth, green behind it, and 31 mm to be grown."""
    job = job_on(painted_facts())
    outside = (behind_mm(job) > 14) & (behind_mm(job) < 1000)
    rgb = np.where(outside[..., None], np.array((20, 230, 20)), job.scene.rgb)
    labels = job.scene.parsing.probabilities.copy()
    gone = cv2.resize(outside.astype(np.uint8), labels.shape[:0:-1], interpolation=cv2.INTER_AREA) > 0
    labels[Label.BACKGROUND] += np.where(gone, labels[Label.HAIR], 0)
    labels[Label.HAIR] *= ~gone
    job = on_photo(job, rgb)
    job = replace(job, scene=replace(job.scene, parsing=replace(job.scene.parsing, probabilities=labels)))
    wide = grown(job).astype(int)
    green = wide[..., 1] > wide[..., 0] + 25
    assert not green[deep(job, 1.0)].any()
    assert hairiness(grown(job))[deep(job)].mean() > 0.75


def test_a_region_that_lies_by_itself_gets_hair_of_its_own() -> None:
    whole = job_on(painted_facts())
    angle = np.linspace(0, 2 * np.pi, 40)
    outline = np.array([400.0, 275.0]) + 20 * np.column_stack([np.cos(angle), np.sin(angle)])
    job = replace(whole, region=region_of(whole.scene, outline), front=outline)
    picture = finished(job)
    assert hairiness(picture)[deep(job, 4.0)].mean() > 0.6
    ring = cv2.distanceTransform((job.region < 0.5).astype(np.uint8), cv2.DIST_L2, 5) > 12
    assert np.abs(picture.astype(int) - job.scene.rgb)[ring].max() == 0


def test_a_corner_of_a_region_that_ends_with_a_step_leaves_no_line() -> None:
    """Beyond the ends of the hairline nothing is torn: no skin appears in what was hair."""
    job = job_on(painted_facts(), by_px=BY_PX)
    before, after = hairiness(job.scene.rgb), hairiness(finished(job))
    hair = (behind_mm(job) > 4) & (cv2.blur(before, (15, 15)) > 0.9)
    assert np.percentile(after[hair], 0.5) > 0.5


@settings(max_examples=15, deadline=None)
@given(by_px=st.floats(6, 60), end=st.floats(0.3, 0.95))
def test_the_move_reaches_the_front_and_never_changes_abruptly(by_px: float, end: float) -> None:
    """Of a region that ends somewhere with a step."""
    facts = painted_facts()
    job = job_on(facts, by_px=by_px)
    job.region[:, int(end * CANVAS_PX) :] = 0
    if job.region.sum() < 400:
        return
    rays = Rays.of(job, survey(job)[0])
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


def test_there_are_no_rays_without_a_hairline_a_front_or_a_way_to_go() -> None:
    job = job_on(painted_facts())
    coarse = survey(job)[0]
    line = np.array([(p.x_px, p.y_px) for p in painted_facts().hairline.points])
    assert Rays.of(job, coarse) is not None
    assert Rays.of(replace(job, front=None), coarse) is None
    assert Rays.of(replace(job, scene=replace(job.scene, hairline=None)), coarse) is None
    assert Rays.of(replace(job, scene=replace(job.scene, hairline=line + np.array([0.0, 200.0]))), coarse) is None
