"""The backend `local` on portraits, judged by the proof that decides what is shown: curls, straight hair, a parting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import studio_portrait
from tests.vision.conftest import photo_of
from vision.calls import DesignOptions, HairlineHeight, Style
from vision.designs import design_hairlines
from vision.growth.composite import composite, reach
from vision.growth.local import LocalGrowth
from vision.growth.proof import convincing, prove
from vision.growth.scene import job_for_design, landmarks_of, scene_of
from vision.parsing import parse
from vision.pipeline import Pipeline
from vision.runtime import OnnxParser
from vision.types import MeasureOptions, NoProgress, ParsingMap, RgbImage

OPTIONS = DesignOptions(styles=(Style.TRIANGULAR,), height=HairlineHeight.LOW)


@pytest.mark.models
@pytest.mark.parametrize("number", [1, 3, 5])
def test_new_hair_of_a_portrait_passes_the_proof_with_a_margin(
    number: int, read_rgb: Callable[[Path], RgbImage], pipeline: Pipeline, parser: OnnxParser
) -> None:
    facts = pipeline.facts(photo_of(read_rgb(studio_portrait(number))), MeasureOptions(annotate=False), NoProgress())
    scene = scene_of(facts, 1448)
    (design,) = design_hairlines(facts, OPTIONS)
    job = job_for_design(scene, design, seed=1, timeout_s=None)
    weights = reach(job)
    finished = composite(scene.rgb, LocalGrowth().grow(job, NoProgress()), weights)

    def parsed(rgb: RgbImage) -> ParsingMap:
        return parse(photo_of(rgb), landmarks_of(scene), parser, lambda: None)

    evidence = prove(job, finished, weights, parsed)
    assert convincing(evidence) is None
    assert evidence.proof.hair_share > 0.85
    assert evidence.proof.delta_e < 8
    assert evidence.edge is not None
    assert evidence.edge.distance_mm < 2
    assert evidence.edge.width_mm is not None
    assert 1 <= evidence.edge.width_mm <= 4
