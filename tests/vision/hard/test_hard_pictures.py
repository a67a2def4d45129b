"""Every hard picture gets what its row promises, with the real models."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from edge.errors import ApiError
from edge.local.engine import LocalEngine
from edge.local.findings import Points, Ticket
from tests.conftest import SHARED_PORTRAITS
from tests.vision.hard.pictures import GLASSES, HARD, Answered, HardPicture
from tests.vision.hard.studio import Studio, stored
from vision.calls import DesignOptions, FacePart, GrowStylesOptions, MaskOptions, Style, StyleGrowth
from vision.describe import describe
from vision.designs import design_hairlines
from vision.errors import PhotoError, Reason
from vision.growth.backend import GrowthReason
from vision.growth.local import LocalGrowth
from vision.landmarks import LandmarkDetector
from vision.masks import make_masks
from vision.models import ModelFiles
from vision.pipeline import Pipeline
from vision.raster import Limits
from vision.runtime import OnnxParser
from vision.special_points import special_points
from vision.types import Facts, HairlineState, MeasureOptions, NoProgress

pytestmark = pytest.mark.models

ROOT = Path(__file__).resolve().parents[3]
FILES_AGREE_PCT = 1.5
"""Between files of one portrait whose pixels differ by compression, inks or a palette."""
MAX_PIXELS = Limits().max_pixels


@pytest.fixture(scope="module")
def studio(detector: LandmarkDetector, parser: OnnxParser) -> Studio:
    return Studio(detector, parser)


@pytest.fixture(scope="module")
def engine(detector: LandmarkDetector, parser: OnnxParser) -> LocalEngine:
    """What the edge computes calls 4 and 99 with."""
    return LocalEngine(detector, parser)


@pytest.fixture(scope="module")
def growing(model_files: ModelFiles) -> Iterator[Pipeline]:
    loaded = Pipeline.load(model_files, growth=LocalGrowth(), device="cpu")
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def reference(studio: Studio, pipeline: Pipeline) -> Facts:
    return facts_of(pipeline, stored(studio.portrait(), "PNG"))


def facts_of(pipeline: Pipeline, data: bytes) -> Facts:
    return pipeline.measure(data, MeasureOptions(annotate=False), NoProgress()).facts


def rows(wanted: Callable[[HardPicture], bool] = lambda _row: True) -> list[object]:
    return [
        pytest.param(
            row,
            id=row.slug,
            marks=pytest.mark.skipif(row.needs_shared and not SHARED_PORTRAITS.is_dir(), reason="no shared portraits"),
        )
        for row in HARD
        if wanted(row)
    ]


@pytest.mark.parametrize("row", rows())
def test_it_gets_what_it_is_promised(
    row: HardPicture, studio: Studio, pipeline: Pipeline, engine: LocalEngine, request: pytest.FixtureRequest
) -> None:
    data = row.make(studio)
    if isinstance(row.promise, Reason):
        with pytest.raises(PhotoError) as refused:
            facts_of(pipeline, data)
        assert refused.value.reason is row.promise
        with pytest.raises(ApiError) as refused_by_edge:
            engine.special_points(data, MAX_PIXELS, Ticket())
        assert refused_by_edge.value.reason == row.promise
        return
    facts = facts_of(pipeline, data)
    assert facts.hairline.status is row.promise.hairline
    assert {warning.reason for warning in facts.warnings} == row.promise.warnings
    measured(facts, row.promise)
    designed(facts, row.promise)
    masked(facts, row.promise)
    described(facts, row.promise)
    pointed_at(engine.special_points(data, MAX_PIXELS, Ticket()), facts)
    if row.promise.same_as_reference:
        agrees(facts, request.getfixturevalue("reference"))


@pytest.mark.parametrize("row", rows(lambda row: isinstance(row.promise, Answered) and row.promise.grown is not None))
def test_what_is_certain_not_to_grow_says_why(row: HardPicture, studio: Studio, growing: Pipeline) -> None:
    assert isinstance(row.promise, Answered)
    results = grown(growing, row.make(studio))
    assert [result.grown_reason for result in results] == [row.promise.grown]
    assert [result.grown for result in results] == [None]
    assert results[0].drawn.image.data


@pytest.mark.parametrize("name", ["full bangs", "cap", "hand on forehead"])
def test_from_a_hidden_hairline_nothing_grows(name: str, studio: Studio, growing: Pipeline) -> None:
    """The design is there, from the glabella."""
    (row,) = (row for row in HARD if row.name == name)
    results = grown(growing, row.make(studio))
    assert [(result.grown, result.grown_reason) for result in results] == [(None, GrowthReason.HAIRLINE_HIDDEN)]
    assert results[0].drawn.image.data


@pytest.mark.parametrize("name", ["sunglasses", "side light"])
def test_what_is_tried_grows_or_says_why(name: str, studio: Studio, growing: Pipeline) -> None:
    (row,) = (row for row in HARD if row.name == name)
    for result in grown(growing, row.make(studio)):
        assert (result.grown is None) == bool(result.grown_reason)
        assert result.grown_reason in {"", *GrowthReason}


def grown(growing: Pipeline, data: bytes) -> list[StyleGrowth]:
    """One style, as the call gives it."""
    told: list[StyleGrowth] = []
    options = GrowStylesOptions(styles=(Style.ROUND,), seed=1, max_output_side_px=512)
    growing.grow_styles(data, options, NoProgress(), told.append)
    return told


def measured(facts: Facts, promise: Answered) -> None:
    """No court without a hairline, no millimetre without a scale; a reason in the place of every value."""
    upper = facts.measurements["thirds.upper"]
    if promise.hairline is not HairlineState.OBSERVED:
        assert facts.hairline.trichion is None
        assert (upper.px, upper.mm) == (None, None)
        assert upper.unavailable_reason == f"HAIRLINE_{promise.hairline.name}"
    else:
        assert upper.px is not None
    assert (facts.scale.mm_per_px is not None) is promise.has_scale
    assert (facts.measurements["thirds.lower"].mm is not None) is promise.has_scale


def designed(facts: Facts, promise: Answered) -> None:
    """There is always a design; an area in cm² only where the present hairline is seen all along, and a scale."""
    for design in design_hairlines(facts, DesignOptions()):
        assert np.isfinite(design.curve).all()
        assert bool(design.rules) is not promise.of_child
        assert any(rule.unit == "mm" for rule in design.rules) is (promise.has_scale and not promise.of_child)
        assert (design.area_cm2 is not None, design.grafts is not None) == (promise.has_area, promise.has_area)


def masked(facts: Facts, promise: Answered) -> None:
    """Every part that can be seen has an area, of a size that such a part has."""
    face_px2 = facts.landmarks.box.width_px * facts.landmarks.box.height_px
    shares = {mask.part: mask.area_px2 / face_px2 for mask in make_masks(facts, MaskOptions(max_output_side_px=256))}
    assert all(np.isfinite(share) and share >= 0 for share in shares.values())
    assert 0.3 < shares[FacePart.SKIN] < 1.6
    assert 0.005 < shares[FacePart.NOSE] < 0.2
    assert 0.01 < shares[FacePart.LIPS] < 0.1
    assert shares[FacePart.EYES] < 0.06
    assert shares[FacePart.FOREHEAD] <= shares[FacePart.SKIN] + 1e-6
    if promise.hairline is HairlineState.OBSERVED:
        assert shares[FacePart.HAIR] > 0.1


def described(facts: Facts, promise: Answered) -> None:
    """A class or a reason for every feature; none of the thirds without a hairline, none of eyes behind glasses."""
    found = describe(facts.photo, facts.landmarks, facts.parsing, facts.hairline).features
    assert all((feature.value is None) == bool(feature.reason) for feature in found.values())
    assert found["face.shape"].value is not None
    assert (found["face.thirds"].value is not None) is (promise.hairline is HairlineState.OBSERVED)
    if GLASSES in promise.warnings:
        assert {feature.reason for name, feature in found.items() if name.startswith("eyes.")} == {GLASSES}


def pointed_at(found: Points, facts: Facts) -> None:
    """All named points, those of the same mesh that was measured."""
    named = special_points(facts.landmarks)
    assert set(found.points) == set(named)
    off_px = [np.hypot(x - named[name].x_px, y - named[name].y_px) for name, (x, y) in found.points.items()]
    assert max(off_px) < 0.01 * facts.landmarks.box.height_px


def agrees(facts: Facts, reference: Facts) -> None:
    """All millimetres but those whose ends lie on a steep part of the hairline."""
    for name in ("face_height", "face_width", "thirds.upper", "thirds.middle", "thirds.lower", "pupillary_distance"):
        here, there = facts.measurements[name].mm, reference.measurements[name].mm
        assert here is not None
        assert here == pytest.approx(there, rel=FILES_AGREE_PCT / 100)


def test_the_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("hard_pictures", ROOT / "scripts" / "hard_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = page
    spec.loader.exec_module(page)
    assert list(page.problems()) == []
