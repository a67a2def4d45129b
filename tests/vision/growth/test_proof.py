"""The proof: hair passes, and each fake that a parser takes for hair fails by the number that is meant for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import cv2
import numpy as np
import pytest

from bench.growth_controls import FAKES, moved
from tests.vision.growth.painted_heads import SIDE_PX, combed, hair_pixels, lowered, painted_facts, parsing_of
from vision.calls import GrowthProof
from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError
from vision.growth.composite import composite, reach
from vision.growth.proof import PROOF_LIMITS, Evidence, convincing, prove
from vision.growth.proof_edge import FrontEdge
from vision.growth.region_raster import coverage
from vision.growth.scene import job_for_region, scene_of
from vision.growth.texture import Likeness
from vision.types import Facts, Label, ParsingMap, RgbImage

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


def too_low(asked: GrowthJob) -> RgbImage:
    """Grown to half of what was asked for."""
    facts = painted_facts()
    _, region = lowered(facts, 18)
    return strands(replace(asked, region=(coverage([region], asked.region.shape) / 255).astype(np.float32)))


@pytest.mark.parametrize(
    ("make", "numbers"),
    [
        (FAKES["barcode"], {"orientation_ratio", "gradient_ratio"}),
        (FAKES["tiled"], {"repetition", "orientation_ratio", "gradient_ratio"}),
        (FAKES["paint"], {"gradient_ratio", "orientation_ratio"}),
        (unchanged, {"hair_share"}),
        (black, {"delta_e", "gradient_ratio", "orientation_ratio"}),
        (garbage, {"hair_share", "delta_e"}),
        (red, {"delta_e"}),
        (too_low, {"hair_share", "edge_mm"}),
    ],
)
def test_what_is_no_hair_fails_though_the_parser_is_fooled(
    make: Callable[[GrowthJob], RgbImage], numbers: set[str]
) -> None:
    assert convincing(evidence(make)) in numbers


def test_fakes_are_hair_to_the_parser() -> None:
    """So it is the other numbers that refuse them."""
    for make in FAKES.values():
        assert evidence(make).proof.hair_share > 0.9


def test_a_pixel_outside_that_changed_is_counted() -> None:
    asked = job()
    weights = reach(asked)
    finished = composite(asked.scene.rgb, strands(asked), weights)
    finished[700, 100:103] += 1
    found = prove(asked, finished, weights, easily_fooled)
    assert found.proof.outside_changed_pixels == 3
    assert convincing(found) == "outside_changed_pixels"


def test_without_a_scale_no_millimetres_are_told_but_the_edge_is_judged() -> None:
    asked = job(with_scale=False)
    found = evidence(strands, asked)
    assert found.proof.edge_distance_mm is None
    assert convincing(found) is None
    assert convincing(evidence(unchanged, asked)) == "hair_share"


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
    rgb = facts.photo.rgb.copy()
    hair = hair_pixels(combed(SIDE_PX, SIDE_PX))
    for sides in (np.s_[300:500, 215:280], np.s_[300:500, 520:585]):
        labels[sides] = Label.HAIR
        rgb[sides] = hair[sides]
    known = replace(asked.scene, rgb=rgb, parsing=parsing_of(labels))
    assert convincing(evidence(strands, replace(asked, scene=known))) is None
    assert convincing(evidence(FAKES_WITHOUT_NEAR_HAIR["paint"], replace(asked, scene=known))) is not None


FAKES_WITHOUT_NEAR_HAIR = {"paint": lambda asked: np.full_like(asked.scene.rgb, (62, 46, 38))}


GOOD = Evidence(
    proof=GrowthProof(0.9, 1.0, 3.0, 0.2, 0.2, 0),
    edge=FrontEdge(1.0, 2.0, 4.0),
    own_edge=None,
    likeness=Likeness(0.2, 0.2, 0.2, 0.2),
    repetition=0.3,
)


def with_number(name: str, value: float) -> Evidence:
    """Good but for one number."""
    match name:
        case "edge_mm":
            return replace(GOOD, edge=FrontEdge(value, 2.0, 4.0))
        case "repetition":
            return replace(GOOD, repetition=value)
        case "orientation_ratio":
            return replace(GOOD, likeness=replace(GOOD.likeness, orientation=0.2 * value))
        case "gradient_ratio":
            return replace(GOOD, likeness=replace(GOOD.likeness, gradient=0.2 * value))
        case "hair_share":
            return replace(GOOD, proof=replace(GOOD.proof, hair_share=value))
        case "delta_e":
            return replace(GOOD, proof=replace(GOOD.proof, delta_e=value))
        case _:
            return replace(GOOD, proof=replace(GOOD.proof, outside_changed_pixels=int(value != 0)))


@pytest.mark.parametrize("name", PROOF_LIMITS)
def test_every_number_has_its_limit(name: str) -> None:
    limit = PROOF_LIMITS[name]
    assert convincing(GOOD) is None
    for value in (limit.low, limit.high):
        assert convincing(with_number(name, value)) is None
    for value in (limit.low - 0.01, limit.high + 0.01, float("nan")):
        assert convincing(with_number(name, value)) == name
