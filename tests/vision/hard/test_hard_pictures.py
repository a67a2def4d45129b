"""Every hard picture gets what its row promises, with the real models."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import SHARED_PORTRAITS
from tests.vision.hard.pictures import HARD, Answered, HardPicture
from tests.vision.hard.studio import Studio, stored
from vision.calls import DesignOptions, MaskOptions
from vision.designs import design_hairlines
from vision.errors import PhotoError, Reason
from vision.landmarks import LandmarkDetector
from vision.masks import make_masks
from vision.pipeline import Pipeline
from vision.runtime import OnnxParser
from vision.types import Facts, HairlineState, MeasureOptions, NoProgress

pytestmark = pytest.mark.models

ROOT = Path(__file__).resolve().parents[3]
FILES_AGREE_PCT = 1.5
"""Between files of one portrait whose pixels differ by compression, inks or a palette."""


@pytest.fixture(scope="module")
def studio(detector: LandmarkDetector, parser: OnnxParser) -> Studio:
    return Studio(detector, parser)


@pytest.fixture(scope="module")
def reference(studio: Studio, pipeline: Pipeline) -> Facts:
    return facts_of(pipeline, stored(studio.portrait(), "PNG"))


def facts_of(pipeline: Pipeline, data: bytes) -> Facts:
    return pipeline.measure(data, MeasureOptions(annotate=False), NoProgress()).facts


def rows() -> list[object]:
    return [
        pytest.param(
            row,
            id=row.slug,
            marks=pytest.mark.skipif(row.needs_shared and not SHARED_PORTRAITS.is_dir(), reason="no shared portraits"),
        )
        for row in HARD
    ]


@pytest.mark.parametrize("row", rows())
def test_it_gets_what_it_is_promised(
    row: HardPicture, studio: Studio, pipeline: Pipeline, request: pytest.FixtureRequest
) -> None:
    data = row.make(studio)
    if isinstance(row.promise, Reason):
        with pytest.raises(PhotoError) as refused:
            facts_of(pipeline, data)
        assert refused.value.reason is row.promise
        return
    facts = facts_of(pipeline, data)
    assert facts.hairline.status is row.promise.hairline
    assert {warning.reason for warning in facts.warnings} == row.promise.warnings
    measured(facts, row.promise)
    designed(facts, row.promise)
    masked(facts)
    if row.promise.same_as_reference:
        agrees(facts, request.getfixturevalue("reference"))


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
        hidden = promise.hairline in {HairlineState.OCCLUDED, HairlineState.HAT}
        if hidden or not promise.has_scale:
            assert (design.area_cm2, design.grafts) == (None, None)
        if promise.hairline is HairlineState.OBSERVED:
            assert (design.area_cm2 is not None, design.grafts is not None) == (promise.has_area, promise.has_area)


def masked(facts: Facts) -> None:
    """Areas are numbers whatever the picture lacks."""
    for mask in make_masks(facts, MaskOptions(max_output_side_px=256)):
        assert np.isfinite(mask.area_px2)
        assert mask.area_px2 >= 0


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
