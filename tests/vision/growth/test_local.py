"""The backend `local` on painted heads: what a person would see, and when it declines."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.vision.growth.painted_heads import HAIR, SKIN, lowered, painted_facts
from vision.errors import CancelledCallError
from vision.growth.backend import GrowthBackend, GrowthJob, GrowthReason, GrowthScene, GrowthUnavailableError
from vision.growth.composite import composite, reach
from vision.growth.local import STEPS, LocalGrowth
from vision.growth.region_raster import coverage
from vision.growth.scene import px_per_mm, scene_of
from vision.growth.texture import repetition
from vision.growth.texture_colour import lab_of
from vision.types import Facts, Label, NoProgress, Points, RgbImage, Stage

LOWERED_PX = 60.0
CANVAS_PX = 800
MIDDLE = (360, 440)
"""Columns between the corners of the painted hairline, which are steeper than anybody's."""


def job_on(facts: Facts, seed: int = 1, by_px: float = LOWERED_PX) -> GrowthJob:
    front, polygon = lowered(facts, by_px)
    scene = scene_of(facts, CANVAS_PX)
    return GrowthJob(scene, region_of(scene, polygon), front, seed, None)


def region_of(scene: GrowthScene, polygon: Points) -> NDArray[np.float32]:
    return (coverage([polygon], scene.rgb.shape[:2]) / np.float32(255)).astype(np.float32)


def grown(job: GrowthJob) -> RgbImage:
    return LocalGrowth().grow(job, NoProgress())


@pytest.fixture(scope="module", params=["moved", "sown"])
def job(request: pytest.FixtureRequest) -> GrowthJob:
    """Once with the hairline, which is moved, and once without: then new hair is sown."""
    job = job_on(painted_facts())
    return job if request.param == "moved" else replace(job, scene=replace(job.scene, hairline=None))


@pytest.fixture(scope="module")
def picture(job: GrowthJob) -> RgbImage:
    return grown(job)


def deep(job: GrowthJob, mm: float = 5.0) -> NDArray[np.bool_]:
    """The region without a border of so many mm."""
    inside = cv2.distanceTransform((job.region > 0.5).astype(np.uint8), cv2.DIST_L2, 5)
    return np.asarray(inside > mm * px_per_mm(job.scene), dtype=np.bool_)


def own_hair(facts: Facts) -> NDArray[np.bool_]:
    """Where the painted head has nothing but hair, above its hairline."""
    top = min(point.y_px for point in facts.hairline.points)
    mask = np.zeros((CANVAS_PX, CANVAS_PX), dtype=bool)
    mask[int(top) - 60 : int(top) - 10, 330:470] = True
    return mask


def strand_axis_deg(rgb: RgbImage, where: NDArray[np.bool_]) -> float:
    """Of the strands there, clockwise from upright, -90 to 90: across the mean gradient."""
    grey = cv2.GaussianBlur(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).astype(np.float32), (0, 0), 1.0)
    across, down = cv2.Sobel(grey, cv2.CV_32F, 1, 0)[where], cv2.Sobel(grey, cv2.CV_32F, 0, 1)[where]
    gradient = 0.5 * np.arctan2((2 * across * down).sum(), (across**2 - down**2).sum())
    return float((np.degrees(gradient) + 90) % 180 - 90)


def test_is_a_growth_backend() -> None:
    backend: GrowthBackend = LocalGrowth()
    assert backend.name == "local"
    backend.close()


def test_the_same_job_gives_the_same_picture_and_another_seed_another_one(job: GrowthJob, picture: RgbImage) -> None:
    assert np.array_equal(picture, grown(job))
    other = grown(replace(job, seed=2))
    differing = (other != picture).any(axis=2)[deep(job)].mean()
    assert differing > 0.5


def test_leaves_the_photo_itself_and_what_is_far_from_the_region_alone(job: GrowthJob, picture: RgbImage) -> None:
    untouched = painted_facts().photo.rgb
    assert np.array_equal(job.scene.rgb, untouched)
    far = cv2.distanceTransform((job.region < 0.5).astype(np.uint8), cv2.DIST_L2, 5) > 24 * px_per_mm(job.scene)
    assert np.array_equal(picture[far], untouched[far])


def test_covers_the_region_with_hair_of_the_own_colour(job: GrowthJob, picture: RgbImage) -> None:
    lab = lab_of(picture)
    own = lab_of(job.scene.rgb)[own_hair(painted_facts())].mean(axis=0)
    new = lab[deep(job)].mean(axis=0)
    skin = lab_of(np.array([[SKIN]], dtype=np.uint8))[0, 0]
    assert np.linalg.norm(new - own) < 8
    assert np.linalg.norm(new - own) < 0.2 * np.linalg.norm(skin - own)


@pytest.mark.parametrize("angle_deg", [-40.0, 0.0, 40.0, 75.0])
def test_strands_run_as_the_own_hair_does(angle_deg: float) -> None:
    facts = painted_facts(angle_deg=angle_deg)
    job = job_on(facts)
    middle = deep(job, 3.0)
    middle[:, :330] = middle[:, 470:] = False
    own = strand_axis_deg(job.scene.rgb, own_hair(facts))
    new = strand_axis_deg(grown(job), middle)
    assert abs((new - own + 90) % 180 - 90) < 15


def test_has_the_contrast_of_the_own_hair(job: GrowthJob, picture: RgbImage) -> None:
    """Neither flat paint nor noise: the fine detail is as strong as in the hair it comes from."""

    def detail(rgb: RgbImage, where: NDArray[np.bool_]) -> float:
        lightness = lab_of(rgb)[..., 0]
        return float((lightness - cv2.GaussianBlur(lightness, (0, 0), 2.0))[where].std())

    own = detail(job.scene.rgb, own_hair(painted_facts()))
    assert 0.6 * own < detail(picture, deep(job)) < 1.6 * own


def test_nothing_repeats(job: GrowthJob, picture: RgbImage) -> None:
    assert repetition(lab_of(picture)[..., 0], deep(job, 3.0), px_per_mm(job.scene)) < 0.6


def hairiness(rgb: RgbImage) -> NDArray[np.float64]:
    """(H, W), 0 for the painted skin, 1 for the painted hair, by brightness."""
    skin, hair = np.mean(SKIN), np.mean(HAIR)
    return np.asarray((skin - rgb.mean(axis=2)) / (skin - hair), dtype=np.float64)


def front_profile(job: GrowthJob, picture: RgbImage) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Heights about the front in mm, hair upwards, and (N, columns) how hairy it is there."""
    assert job.front is not None
    columns = np.arange(*MIDDLE)
    front = np.interp(columns, job.front[:, 0], job.front[:, 1])
    mm = np.arange(-5.0, 8.0, 0.25)
    rows = np.rint(front[None] - mm[:, None] * px_per_mm(job.scene)).astype(int)
    return mm, hairiness(picture)[rows, columns[None]]


def test_the_front_lies_on_the_design_and_is_soft(job: GrowthJob, picture: RgbImage) -> None:
    mm, profile = front_profile(job, picture)
    mean = profile.mean(axis=1)
    half = float(np.interp(0.5, np.maximum.accumulate(mean), mm))
    quarter, three_quarters = (float(np.interp(v, np.maximum.accumulate(mean), mm)) for v in (0.25, 0.75))
    assert abs(half) < 2
    assert 1 <= three_quarters - quarter <= 4
    assert mean[mm < -4].max() < 0.08
    assert mean[mm > 6].min() > 0.85


def test_the_front_is_made_of_strands_not_of_a_smooth_ramp(job: GrowthJob, picture: RgbImage) -> None:
    mm, profile = front_profile(job, picture)
    at_front = profile[np.abs(mm).argmin()]
    bare = profile[0]
    assert at_front.std() > 4 * bare.std()
    places = np.array([mm[np.argmax(column > 0.5)] for column in profile.T])
    assert 0.3 < places.std() < 2.5


def test_the_old_edge_cannot_be_seen_any_more(job: GrowthJob, picture: RgbImage) -> None:
    """No light band where skin showed through the old front, and no dark one beside it."""
    finished = composite(job.scene.rgb, picture, reach(job))
    columns = np.arange(340, 460)
    line = np.array([(p.x_px, p.y_px) for p in painted_facts().hairline.points])
    old = np.interp(columns, line[:, 0], line[:, 1])
    mm = np.arange(-3.0, 9.0, 0.5)
    rows = np.rint(old[None] - mm[:, None] * px_per_mm(job.scene)).astype(int)
    before = hairiness(job.scene.rgb)[rows, columns[None]].mean(axis=1)
    after = hairiness(finished)[rows, columns[None]].mean(axis=1)
    assert before[0] < 0.1  # skin lay below the old line
    assert after.min() > 0.85
    assert after.max() - after.min() < 0.25


def test_the_sparse_front_of_the_old_hair_lies_under_new_hair() -> None:
    """Skin shines through the first 5 mm of the old hair; the new front lies 31 mm before it."""
    whole = job_on(painted_facts())
    line = np.array([(p.x_px, p.y_px) for p in painted_facts().hairline.points])
    y, x = np.mgrid[:CANVAS_PX, :CANVAS_PX]
    behind_mm = (np.interp(x, line[:, 0], line[:, 1]) - y) / px_per_mm(whole.scene)
    skin = (0.6 * np.clip(1 - behind_mm / 5, 0, 1) * (behind_mm > 0))[..., None]
    rgb = np.rint(whole.scene.rgb + skin * (np.array(SKIN) - whole.scene.rgb)).astype(np.uint8)
    job = replace(whole, scene=replace(whole.scene, rgb=rgb))
    finished = composite(rgb, grown(job), reach(job))
    band = (behind_mm > 0.5) & (behind_mm < 4) & (np.abs(x - CANVAS_PX / 2) < 60)
    assert hairiness(rgb)[band].mean() < 0.75
    assert hairiness(finished)[band].mean() > 0.85


def test_without_a_front_the_border_to_bare_skin_is_the_front() -> None:
    job = replace(job_on(painted_facts()), front=None)
    picture = grown(job)
    mm, profile = front_profile(job_on(painted_facts()), picture)
    mean = profile.mean(axis=1)
    assert mean[mm < -4].max() < 0.08
    assert mean[mm > 6].min() > 0.85


class GivesUp:
    """Progress of a caller who goes away after so many steps."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.steps, self.total = 0, 0

    def enter(self, stage: Stage, total: int = 0) -> None:
        self.look()
        self.steps, self.total = 0, total

    def step(self) -> None:
        self.look()
        self.steps += 1

    def moved(self) -> None:
        self.look()

    def look(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise CancelledCallError


def test_says_that_it_moves_and_stops_when_nobody_waits(job: GrowthJob) -> None:
    counting = GivesUp(after=10**6)
    LocalGrowth().grow(job, counting)
    assert counting.total == STEPS
    assert counting.steps == STEPS if job.scene.hairline is None else 3 <= counting.steps <= STEPS
    steps = 10**6 - counting.left
    assert steps >= (10 if job.scene.hairline is None else 3)
    for after in (0, steps // 2, steps - 1):
        with pytest.raises(CancelledCallError):
            LocalGrowth().grow(job, GivesUp(after))


def test_declines_a_head_without_hair() -> None:
    facts = painted_facts(hair=False)
    front, polygon = lowered(painted_facts(), LOWERED_PX)
    scene = scene_of(facts, CANVAS_PX)
    with pytest.raises(GrowthUnavailableError) as refused:
        grown(GrowthJob(scene, region_of(scene, polygon), front, 1, None))
    assert refused.value.reason is GrowthReason.NO_OWN_HAIR


def test_declines_when_the_little_hair_there_is_would_have_to_come_again_and_again(job: GrowthJob) -> None:
    """A tuft of 22 × 22 mm for a whole forehead."""
    side = round(22 * px_per_mm(job.scene)) // 2  # the parsing has half of the photo's pixels
    labels = job.scene.parsing.probabilities.copy()
    kept = np.zeros(labels.shape[1:], dtype=bool)
    kept[70 : 70 + side, 180 : 180 + side] = True
    assert labels[Label.HAIR][kept].min() > 0.9
    labels[Label.SKIN] += np.where(kept, 0, labels[Label.HAIR])
    labels[Label.HAIR] *= kept
    scene = replace(job.scene, parsing=replace(job.scene.parsing, probabilities=labels))
    with pytest.raises(GrowthUnavailableError) as refused:
        grown(replace(job, scene=scene))
    assert refused.value.reason is GrowthReason.NO_OWN_HAIR


@pytest.mark.parametrize(("below_mm", "grows"), [(15.0, True), (50.0, False)])
def test_declines_a_region_far_from_all_hair(below_mm: float, grows: bool, job: GrowthJob) -> None:
    """As the top of a head with hair over the ears alone; there is plenty of it, and none tells of that place."""
    scale = px_per_mm(job.scene)
    top = min(point.y_px for point in painted_facts().hairline.points)
    angle = np.linspace(0, 2 * np.pi, 40)
    outline = np.array([CANVAS_PX / 2, top + below_mm * scale]) + 16 * np.column_stack([np.cos(angle), np.sin(angle)])
    apart = replace(job, region=region_of(job.scene, outline), front=outline)
    if grows:
        assert (grown(apart) != job.scene.rgb).any(axis=2)[deep(apart, 2.0)].all()
        return
    with pytest.raises(GrowthUnavailableError) as refused:
        grown(apart)
    assert refused.value.reason is GrowthReason.NO_OWN_HAIR


def test_has_nothing_to_do_in_an_empty_region(job: GrowthJob) -> None:
    with pytest.raises(GrowthUnavailableError) as refused:
        grown(replace(job, region=np.zeros_like(job.region)))
    assert refused.value.reason is GrowthReason.NOTHING_TO_GROW


def test_a_photo_that_ends_above_the_region_is_grown_to_its_border() -> None:
    whole = job_on(painted_facts())
    assert whole.front is not None
    top = 150
    parsing = whole.scene.parsing
    scene = replace(
        whole.scene,
        rgb=np.ascontiguousarray(whole.scene.rgb[top:]),
        landmarks=whole.scene.landmarks - (0, top),
        parsing=replace(parsing, photo_from_map=parsing.photo_from_map - np.array([[0, 0, 0], [0, 0, top]])),
    )
    cut = replace(whole, scene=scene, region=whole.region[top:], front=whole.front - (0, top))
    picture = grown(cut)
    assert picture.shape == scene.rgb.shape
    assert hairiness(picture)[deep(cut)].mean() > 0.85


def test_grows_without_a_measured_scale() -> None:
    job = job_on(painted_facts(with_scale=False))
    assert job.scene.mm_per_px is None
    assert hairiness(grown(job))[deep(job)].mean() > 0.85
