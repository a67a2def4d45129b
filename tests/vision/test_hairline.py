"""Where the hairline lies, and whether it is one: painted foreheads, the rules one by one, and real pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.portraits.face import Face
from bench.portraits.negatives import NEGATIVES
from tests.conftest import selfie, studio_portrait
from tests.vision.conftest import photo_of, resized
from tests.vision.measured_faces import scale_of, turned
from tests.vision.painted_forehead import CELL_PX, SKIN, Forehead, paint
from vision.anthropometry import measure_face
from vision.forehead_rays import ANGLES_DEG, MIDLINE, forehead_rays
from vision.hair_edge import HairEdge, find_hair_edge
from vision.hairline import Findings, find_hairline, judge
from vision.landmarks import LandmarkDetector
from vision.parsing import parse
from vision.runtime import OnnxParser
from vision.types import FaceLandmarks, Hairline, HairlineState, Label, ParsingMap, RgbImage

OBSERVED, OCCLUDED, HAT, NONE = (
    HairlineState.OBSERVED,
    HairlineState.OCCLUDED,
    HairlineState.HAT,
    HairlineState.NONE,
)


def found(forehead: Forehead) -> Hairline:
    return find_hairline(forehead.photo, forehead.landmarks, forehead.parsing)


def trichion_radius(forehead: Forehead) -> float:
    trichion = found(forehead).trichion
    assert trichion
    return forehead.radius_of(trichion.x_px, trichion.y_px)


@pytest.mark.parametrize("parser_line", [0.285, 0.30, 0.315])
def test_colours_correct_the_parser(parser_line: float) -> None:
    assert trichion_radius(paint(parser_line=parser_line)) == pytest.approx(0.30, abs=0.004)


def test_baby_hair_does_not_move_the_line() -> None:
    assert trichion_radius(paint(baby_hair=0.12, parser_line=0.27)) == pytest.approx(0.30, abs=0.006)


def test_hair_of_the_colour_of_skin_leaves_it_to_the_parser() -> None:
    pale = tuple(0.93 * channel for channel in SKIN)
    forehead = paint(hair=(pale[0], pale[1], pale[2]), parser_line=0.288)
    hairline = found(forehead)
    assert hairline.points
    middle = hairline.points[len(hairline.points) // 2]
    assert 0.283 < forehead.radius_of(middle.x_px, middle.y_px) < 0.300


def test_strands_of_the_colour_of_skin_are_told_by_their_grain() -> None:
    pale = tuple(0.97 * channel for channel in SKIN)
    forehead = paint(hair=(pale[0], pale[1], pale[2]), strands=0.15, parser_line=0.275)
    assert trichion_radius(forehead) == pytest.approx(0.30, abs=0.012)


def test_the_line_does_not_run_up_into_a_parting() -> None:
    assert trichion_radius(paint(parting_deg=5.0)) == pytest.approx(0.30, abs=0.008)


@pytest.mark.parametrize("yaw_deg", [-12.0, 0.0, 12.0])
def test_the_middle_ray_follows_the_midline_of_a_turned_head(yaw_deg: float) -> None:
    face = turned(yaw_deg, 5.0)
    rays = forehead_rays(face)
    radii = np.arange(0.05, 0.3, 0.001)
    ray = rays.at(np.broadcast_to(radii[:, None], (radii.size, ANGLES_DEG.size)))[:, MIDLINE]
    for on_midline in (face.points[151], face.points[10], (face.points[109] + face.points[338]) / 2):
        assert np.linalg.norm(ray - on_midline, axis=1).min() < 0.003 * rays.unit_px


def test_a_softer_edge_is_less_certain() -> None:
    sharp, soft = found(paint(softness=0.004)), found(paint(softness=0.025))
    assert soft.edge_sd_px > 1.3 * sharp.edge_sd_px
    assert sharp.trichion
    assert soft.trichion
    assert soft.trichion.confidence < sharp.trichion.confidence


def test_points_run_from_the_subjects_right_to_the_left_and_lie_on_the_line() -> None:
    forehead = paint()
    hairline = found(forehead)
    assert len(hairline.points) == ANGLES_DEG.size
    xs = [point.x_px for point in hairline.points]
    assert xs == sorted(xs)
    radii = [forehead.radius_of(point.x_px, point.y_px) for point in hairline.points]
    assert np.abs(np.array(radii) - 0.30).max() < 0.008
    assert {point.state for point in hairline.points} == {OBSERVED}


@pytest.mark.parametrize(
    ("forehead", "state"),
    [
        (paint, OBSERVED),
        (lambda: paint(above=Label.HAT), HAT),
        (lambda: paint(above=Label.BACKGROUND), NONE),
        (lambda: paint(line=0.12, parser_line=0.12), OCCLUDED),
        (lambda: paint(line=0.01, parser_line=0.01), OCCLUDED),
        (lambda: paint(line=2.0, parser_line=2.0), NONE),
        (lambda: paint(stripe=True), OCCLUDED),
        (lambda: paint(hair=SKIN), OCCLUDED),
    ],
    ids=["hair", "hat", "bald", "bangs", "bangs over the brows", "no end", "something before it", "skin on skin"],
)
def test_what_the_face_ends_in_decides(forehead: Callable[[], Forehead], state: HairlineState) -> None:
    hairline = found(forehead())
    assert hairline.status is state
    assert (hairline.trichion is None) == (state is not OBSERVED)


def test_a_photo_that_ends_on_the_forehead_shows_no_hairline() -> None:
    forehead = paint()
    cut = int(forehead.glabella[1] - 0.25 * forehead.unit_px)
    landmarks = replace(forehead.landmarks, points=forehead.landmarks.points - (0, cut))
    shifted = forehead.parsing.photo_from_map - np.array([[0, 0, 0], [0, 0, cut]])
    probabilities = forehead.parsing.probabilities.copy()
    outside = np.arange(probabilities.shape[1]) * 4 < cut
    probabilities[:, outside] = 0
    probabilities[Label.BACKGROUND, outside] = 1
    photo = photo_of(forehead.photo.rgb[cut:])
    assert find_hairline(photo, landmarks, ParsingMap(probabilities, shifted)).status is OCCLUDED


@pytest.mark.parametrize("unknown", ["width", "disagreement"])
def test_an_edge_of_unknown_width_is_uncertain_not_a_gap(unknown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forehead = paint()

    def without(*given: Any) -> HairEdge:
        edge = find_hair_edge(*given)
        getattr(edge, unknown)[MIDLINE] = np.nan
        return edge

    usual = found(forehead)
    monkeypatch.setattr("vision.hairline.find_hair_edge", without)
    hairline = found(forehead)
    assert hairline.trichion
    assert hairline.edge_sd_px > 3 * usual.edge_sd_px
    assert 0 < hairline.trichion.confidence < 0.2
    measured = measure_face(forehead.landmarks, hairline, scale_of())
    assert all(np.isfinite((m.interval_mm.low, m.interval_mm.high)).all() for m in measured.values() if m.interval_mm)


def test_a_strand_down_the_midline_hides_the_trichion_alone() -> None:
    forehead = paint()
    probabilities = forehead.parsing.probabilities
    middle = round(forehead.glabella[0] / CELL_PX)
    strand = (slice(0, round(forehead.glabella[1] / CELL_PX)), slice(middle - 1, middle + 2))
    probabilities[(slice(None), *strand)] = 0
    probabilities[(Label.HAIR, *strand)] = 1
    hairline = found(forehead)
    assert (hairline.status, hairline.trichion) == (OCCLUDED, None)
    assert sum(point.state is OBSERVED for point in hairline.points) > 50


def findings(**of_all_rays: float) -> Findings:
    """A hairline as it should be, but for what is given."""
    usual = {
        "radius": 0.3,
        "margin": 0.5,
        "forehead": 1.0,
        "hair": 0.8,
        "hat": 0.0,
        "other": 0.1,
        "relief": 4.0,
        "separation": 9.0,
    }
    return Findings(**{name: np.full(ANGLES_DEG.size, value) for name, value in {**usual, **of_all_rays}.items()})


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ({}, OBSERVED),
        ({"radius": np.nan}, NONE),
        ({"radius": np.nan, "forehead": 0.1}, OCCLUDED),
        ({"margin": -0.1}, OCCLUDED),
        ({"hat": 0.85, "hair": 0.1}, HAT),
        ({"other": 0.85, "hair": 0.1}, NONE),
        ({"radius": 0.15}, OCCLUDED),
        ({"radius": 0.20}, OBSERVED),
        ({"relief": 20.0}, OCCLUDED),
        ({"separation": 1.0}, OCCLUDED),
        ({"radius": 0.15, "hat": 0.85, "hair": 0.1}, HAT),
    ],
)
def test_rules(given: dict[str, float], state: HairlineState) -> None:
    assert judge(findings(**given))[MIDLINE] is state


def test_a_level_fringe_is_a_fringe_at_the_sides_too() -> None:
    level = findings()
    level.radius[:] = 0.16 / np.cos(np.radians(np.clip(ANGLES_DEG, -40, 40)))
    states = judge(level)
    assert {state for state, angle in zip(states, ANGLES_DEG, strict=True) if abs(angle) < 40} == {OCCLUDED}


def test_one_odd_ray_does_not_decide() -> None:
    odd = findings()
    odd.hat[MIDLINE], odd.hair[MIDLINE] = 0.9, 0.05
    assert judge(odd)[MIDLINE] is OBSERVED


Analyse = Callable[[RgbImage], tuple[FaceLandmarks, ParsingMap]]


@pytest.fixture(scope="module")
def analyse(detector: LandmarkDetector, parser: OnnxParser) -> Analyse:
    """Landmarks and parsing by the real models."""

    def look(rgb: RgbImage) -> tuple[FaceLandmarks, ParsingMap]:
        landmarks = detector.find(rgb)[0]
        return landmarks, parse(photo_of(rgb), landmarks, parser, lambda: None)

    return look


@pytest.mark.models
@pytest.mark.parametrize(("person", "y_px"), [(3, 294), (7, 422)])
def test_trichion_of_a_studio_portrait(
    person: int, y_px: float, analyse: Analyse, read_rgb: Callable[[Path], RgbImage]
) -> None:
    rgb = read_rgb(studio_portrait(person))
    landmarks, parsing = analyse(rgb)
    trichion = find_hairline(photo_of(rgb), landmarks, parsing).trichion
    assert trichion
    assert trichion.y_px == pytest.approx(y_px, abs=0.015 * (landmarks.points[152, 1] - y_px))


@pytest.mark.models
def test_a_selfie_shows_its_hairline(analyse: Analyse, read_rgb: Callable[[Path], RgbImage]) -> None:
    rgb = read_rgb(selfie(8))
    landmarks, parsing = analyse(rgb)
    hairline = find_hairline(photo_of(rgb), landmarks, parsing)
    assert hairline.status is OBSERVED
    assert sum(point.state is OBSERVED for point in hairline.points) > 0.9 * len(hairline.points)


@pytest.mark.models
@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("bangs above the brows", {OCCLUDED}),
        ("thin bangs", {OCCLUDED}),
        ("beanie, black", {HAT}),
        ("cap, blue", {HAT}),
        ("bald, dark skin", {NONE}),
        ("shaved, bearded", {NONE}),
        ("hand from the left", {OCCLUDED, HAT}),
    ],
)
def test_whatever_hides_the_hairline_is_not_one(
    name: str, states: set[HairlineState], analyse: Analyse, read_rgb: Callable[[Path], RgbImage]
) -> None:
    negative = next(negative for negative in NEGATIVES if negative.name == name)
    rgb = resized(read_rgb(studio_portrait(int(negative.person[1:]))), 1024)
    edited = negative.edit(Face(rgb, *analyse(rgb)), np.random.default_rng(0))
    picture = (np.clip(edited, 0, 1) * 255).astype(np.uint8)
    landmarks, parsing = analyse(picture)
    assert find_hairline(photo_of(picture), landmarks, parsing).status in states


@pytest.mark.models
@pytest.mark.parametrize(
    ("file", "state"), [("synthetic_07.jpg", OCCLUDED), ("synthetic_11.jpg", NONE), ("synthetic_12.jpg", OCCLUDED)]
)
def test_shared_portraits_without_a_hairline(
    file: str, state: HairlineState, portraits: Path, analyse: Analyse, read_rgb: Callable[[Path], RgbImage]
) -> None:
    rgb = read_rgb(portraits / file)
    landmarks, parsing = analyse(rgb)
    assert find_hairline(photo_of(rgb), landmarks, parsing).status is state
