"""The proof: hair passes, and each fake that a parser takes for hair fails by the number that is meant for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import cv2
import numpy as np
import pytest

from bench.growth_controls import FAKES, Ground
from tests.vision.growth.painted_heads import SIDE_PX, SKIN, combed, hair_pixels, lowered, painted_facts, parsing_of
from vision.calls import GrowthProof
from vision.errors import CancelledCallError
from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError
from vision.growth.composite import composite, reach
from vision.growth.proof import Evidence, convincing, prove
from vision.growth.proof_edge import FrontEdge
from vision.growth.proof_limits import PROOF_LIMITS, broken_by
from vision.growth.region_raster import coverage
from vision.growth.scene import job_for_region, scene_of
from vision.growth.texture import Likeness
from vision.growth.texture_strands import Strands
from vision.types import Facts, Label, ParsingMap, RgbImage

TOLD_ON_PAINT = sorted(set(FAKES) - {"spectrum noise", "upside down"})
"""The painted hair is itself noise of that spectrum, and upright: the other two are told on portraits, by the bench."""
DARK = 110
"""Of a fooled parser: whatever is darker is hair."""


@cache
def job(*, with_scale: bool = True) -> GrowthJob:
    facts = painted_facts(with_scale=with_scale)
    front, region = lowered(facts, 40)
    asked = job_for_region(scene_of(facts, SIDE_PX), coverage([region], (SIDE_PX, SIDE_PX)), 1, None)
    return replace(asked, front=front)


def easily_fooled(rgb: RgbImage) -> ParsingMap:
    """A parser that goes by darkness, and finds no ground behind the head."""
    dark = cv2.GaussianBlur(rgb, (0, 0), 3).mean(axis=2) < DARK
    return parsing_of(np.where(dark, Label.HAIR, Label.SKIN))


def strands(asked: GrowthJob) -> RgbImage:
    """Combed hair with a front 2 mm wide."""
    alpha = cv2.GaussianBlur(asked.region, (0, 0), 3)[..., None]
    hair = hair_pixels(combed(SIDE_PX, SIDE_PX, seed=8))
    return np.clip(np.rint(asked.scene.rgb + alpha * (hair.astype(float) - asked.scene.rgb)), 0, 255).astype(np.uint8)


def evidence(make: Callable[[GrowthJob], RgbImage], asked: GrowthJob | None = None) -> Evidence:
    asked = asked or job()
    weights = reach(asked)
    return prove(asked, composite(asked.scene.rgb, make(asked), weights), weights, easily_fooled)


def moved(asked: GrowthJob) -> RgbImage:
    return Ground(asked).moved


def fake(name: str) -> Callable[[GrowthJob], RgbImage]:
    return lambda asked: FAKES[name](Ground(asked))


def broken(found: Evidence) -> str | None:
    """The name of the number that breaks its limit."""
    number = convincing(found)
    return None if number is None else number.name


@pytest.mark.parametrize("make", [strands, moved])
def test_hair_passes(make: Callable[[GrowthJob], RgbImage]) -> None:
    found = evidence(make)
    assert convincing(found) is None
    assert found.proof.hair_share > 0.9
    assert found.proof.delta_e < 6
    assert found.proof.edge_distance_mm is not None
    assert found.proof.edge_distance_mm < 1.5
    assert found.proof.outside_changed_pixels == 0
    assert found.edge is not None
    assert found.edge.width_mm is not None
    assert 0.5 < found.edge.width_mm < 4
    assert found.own_edge is not None
    assert found.own_edge.distance_mm < 2.5


def black(asked: GrowthJob) -> RgbImage:
    return np.zeros_like(asked.scene.rgb)


def unchanged(asked: GrowthJob) -> RgbImage:
    return asked.scene.rgb


def garbage(asked: GrowthJob) -> RgbImage:
    return np.random.default_rng(4).integers(0, 255, asked.scene.rgb.shape, dtype=np.uint8)


def red(asked: GrowthJob) -> RgbImage:
    return np.asarray(np.clip(strands(asked).astype(int) + np.array([60, -10, -20]), 0, 255), dtype=np.uint8)


def ghost(asked: GrowthJob) -> RgbImage:
    """Hair through which half of the skin is seen."""
    return np.asarray(np.rint(0.5 * strands(asked) + 0.5 * asked.scene.rgb), dtype=np.uint8)


def holed(asked: GrowthJob) -> RgbImage:
    """Hair behind which a piece of the own hair is gone."""
    painted = strands(asked)
    line = int(np.flatnonzero(asked.region[:, SIDE_PX // 2] > 0.5)[0])
    painted[line - 30 : line + 2, 350:450] = SKIN
    return painted


def pasted(asked: GrowthJob) -> RgbImage:
    """Hair cut out along the design."""
    hair = hair_pixels(combed(SIDE_PX, SIDE_PX, seed=8))
    return np.where(asked.region[..., None] >= 0.5, hair, asked.scene.rgb)


def too_low(asked: GrowthJob) -> RgbImage:
    """Grown to half of what was asked for."""
    facts = painted_facts()
    _, region = lowered(facts, 18)
    return strands(replace(asked, region=(coverage([region], asked.region.shape) / 255).astype(np.float32)))


@pytest.mark.parametrize(
    ("make", "numbers"),
    [
        *((fake(name), set(PROOF_LIMITS) - {"delta_e", "outside_changed_pixels"}) for name in TOLD_ON_PAINT),
        (unchanged, {"hair_share"}),
        (black, {"edge_mm", "edge_width_mm", "edge_raggedness", "delta_e"}),
        (garbage, {"hair_share", "delta_e"}),
        (red, {"delta_e"}),
        (too_low, {"hair_share", "edge_mm"}),
        (ghost, {"hair_share", "delta_e"}),
        (holed, {"bared_mm2", "delta_e"}),
        (pasted, {"edge_mm", "edge_width_mm", "edge_raggedness"}),
    ],
    ids=[*TOLD_ON_PAINT, "unchanged", "black", "garbage", "red", "too_low", "ghost", "holed", "pasted"],
)
def test_what_is_no_hair_fails_though_the_parser_is_fooled(
    make: Callable[[GrowthJob], RgbImage], numbers: set[str]
) -> None:
    assert broken(evidence(make)) in numbers


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("barcode", "orientation_ratio"),
        ("tiled", "repetition"),
        ("paint", "contrast"),
        ("noise", "coherence"),
        ("noise", "foreign"),
        ("barcode", "foreign"),
        ("shifted", "copied"),
        ("blurred 1.5 px", "fineness"),
        ("blurred 3 px", "fineness"),
    ],
)
def test_each_fake_breaks_the_number_that_is_meant_for_it(name: str, number: str) -> None:
    limit = PROOF_LIMITS[number]
    value = evidence(fake(name)).measured[number]
    assert value is not None
    assert not limit.low <= value <= limit.high


def test_a_hole_behind_the_front_is_told_by_its_area() -> None:
    value = evidence(holed).measured["bared_mm2"]
    assert value is not None
    assert value > PROOF_LIMITS["bared_mm2"].high


@pytest.mark.parametrize("name", sorted(set(FAKES) - {"shifted"}))
def test_fakes_are_hair_to_the_parser(name: str) -> None:
    """So it is the other numbers that refuse them."""
    assert evidence(fake(name)).proof.hair_share > 0.85


def test_a_pixel_outside_that_changed_is_counted() -> None:
    asked = job()
    weights = reach(asked)
    finished = composite(asked.scene.rgb, strands(asked), weights)
    finished[700, 100:103] += 1
    found = prove(asked, finished, weights, easily_fooled)
    assert found.proof.outside_changed_pixels == 3
    assert broken(found) == "outside_changed_pixels"


def test_without_a_scale_no_millimetres_are_told_but_the_edge_is_judged() -> None:
    asked = job(with_scale=False)
    found = evidence(strands, asked)
    assert found.proof.edge_distance_mm is None
    assert convincing(found) is None
    assert broken(evidence(unchanged, asked)) == "hair_share"


def test_without_a_front_no_edge_is_judged() -> None:
    found = evidence(strands, replace(job(), front=None))
    assert found.edge is None
    assert found.proof.edge_distance_mm is None
    assert convincing(found) is None


def bald() -> tuple[Facts, GrowthJob]:
    facts = painted_facts(hair=False)
    _, region = lowered(painted_facts(), 40)
    return facts, job_for_region(scene_of(facts, SIDE_PX), coverage([region], (SIDE_PX, SIDE_PX)), 1, None)


def test_nothing_is_proved_against_no_hair() -> None:
    _, asked = bald()
    with pytest.raises(GrowthUnavailableError) as refused:
        evidence(unchanged, asked)
    assert refused.value.reason is GrowthReason.NO_OWN_HAIR


def test_far_hair_is_compared_with_where_there_is_none_near() -> None:
    """A bald forehead with hair at the sides alone."""
    facts, asked = bald()
    labels = np.full((SIDE_PX, SIDE_PX), Label.SKIN)
    for sides in (np.s_[300:500, 215:280], np.s_[300:500, 520:585]):
        labels[sides] = Label.HAIR
    soft = cv2.GaussianBlur((labels == Label.HAIR).astype(float), (0, 0), 3)[..., None]
    rgb = facts.photo.rgb + soft * (hair_pixels(combed(SIDE_PX, SIDE_PX)) - facts.photo.rgb.astype(float))
    known = replace(asked.scene, rgb=np.rint(rgb).astype(np.uint8), parsing=parsing_of(labels))
    assert convincing(evidence(strands, replace(asked, scene=known))) is None
    assert convincing(evidence(FAKES_WITHOUT_NEAR_HAIR["paint"], replace(asked, scene=known))) is not None


FAKES_WITHOUT_NEAR_HAIR = {"paint": lambda asked: np.full_like(asked.scene.rgb, (62, 46, 38))}


EDGE = FrontEdge(1.0, 2.0, 4.0, 0.3)
GOOD = Evidence(
    proof=GrowthProof(0.9, 1.0, 3.0, 0.2, 0.2, 0),
    edge=EDGE,
    borders=(EDGE,),
    own_edge=EDGE,
    likeness=Likeness(0.2, 0.2, 0.2, 0.2),
    strands=Strands(fineness=0.0, contrast=0.1, locks=-0.1, coherence=0.9, turned_deg=5.0),
    foreign=0.9,
    repetition=0.3,
    copied=0.2,
    bared_mm2=0.5,
)


def test_limits_and_numbers_have_the_same_names() -> None:
    assert set(GOOD.measured) == set(PROOF_LIMITS)
    assert convincing(GOOD) is None


@pytest.mark.parametrize("name", PROOF_LIMITS)
def test_every_number_has_its_limit(name: str) -> None:
    limit, good = PROOF_LIMITS[name], GOOD.measured
    assert broken_by(good | {name: None}) is None, "what is not known breaks nothing"
    for value in (limit.low, limit.high):
        assert broken_by(good | {name: value}) is None
    for value in (limit.low - 0.01, limit.high + 0.01, float("nan")):
        if np.isfinite(value) or np.isnan(value):
            found = broken_by(good | {name: value})
            assert found is not None
            assert (found.name, found.limit) == (name, limit)
            assert name in str(found)


def test_the_worst_of_all_free_borders_is_judged() -> None:
    cut = FrontEdge(0.2, 0.3, 0.5, 0.0)
    far = FrontEdge(3.0, 2.0, 4.0, 0.3)
    assert broken(replace(GOOD, borders=(EDGE, cut))) == "edge_width_mm"
    assert broken(replace(GOOD, borders=(EDGE, far))) == "edge_mm"
    assert convincing(replace(GOOD, borders=())) is None


def test_a_smooth_front_is_told_by_the_persons_own() -> None:
    assert broken(replace(GOOD, edge=replace(EDGE, ragged_mm=0.1))) == "edge_raggedness"
    assert convincing(replace(GOOD, edge=replace(EDGE, ragged_mm=0.1), own_edge=None)) is None


def test_a_proof_that_nobody_waits_for_ends() -> None:
    asked = job()
    weights = reach(asked)
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise CancelledCallError

    with pytest.raises(CancelledCallError):
        prove(asked, composite(asked.scene.rgb, strands(asked), weights), weights, lambda _: pytest.fail("late"), look)
