"""One photo through all stages: what is measured, what is refused, and in which order."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.conftest import full_length, selfie, studio_portrait
from tests.vision.conftest import photo_of, resized
from vision.calls import DesignOptions, FacePart, GrowRegionOptions, MaskOptions, RegionGrowth, Style
from vision.canary import drawn_face
from vision.errors import CancelledCallError, ModelError, PhotoError, Reason
from vision.models import ModelFiles
from vision.pipeline import Pipeline
from vision.png import encode_png
from vision.types import Facts, HairlineState, MeasureOptions, NoProgress, RgbImage, Stage

pytestmark = pytest.mark.models

WITHOUT_PICTURE = MeasureOptions(annotate=False)
ReadRgb = Callable[[Path], RgbImage]


class Recorder:
    """Progress that writes down what it is told, and cancels the call at one stage."""

    def __init__(self, cancel_at: Stage | None = None) -> None:
        self.stages: list[Stage] = []
        self.steps = 0
        self._cancel_at = cancel_at

    def enter(self, stage: Stage, total: int = 0) -> None:
        self.stages.append(stage)
        if stage is self._cancel_at:
            raise CancelledCallError

    def step(self) -> None:
        self.steps += 1

    def moved(self) -> None:
        pass

    def look(self) -> None:
        pass


def measured(pipeline: Pipeline, rgb: RgbImage) -> Facts:
    return pipeline.facts(photo_of(rgb), WITHOUT_PICTURE, NoProgress())


def refusal(pipeline: Pipeline, rgb: RgbImage) -> PhotoError:
    with pytest.raises(PhotoError) as refused:
        measured(pipeline, rgb)
    return refused.value


def reasons(facts: Facts) -> set[str]:
    return {warning.reason for warning in facts.warnings}


def outcome(pipeline: Pipeline, rgb: RgbImage) -> set[str]:
    """The refusal by name; or `measured`, and the warnings."""
    try:
        return {"measured"} | reasons(measured(pipeline, rgb))
    except PhotoError as refused:
        return {refused.reason}


def test_stages_in_order(pipeline: Pipeline) -> None:
    progress = Recorder()
    result = pipeline.measure(studio_portrait().read_bytes(), MeasureOptions(), progress)
    assert progress.stages == [*SEEN, Stage.DRAWING]
    assert 1 <= progress.steps <= 3, "one step before each forward"
    assert result.annotated is not None
    assert result.annotated.data.startswith(b"\x89PNG")
    assert result.facts.photo.format == "JPEG"
    assert result.facts.hairline.status is HairlineState.OBSERVED
    assert result.facts.scale.mm_per_px is not None
    assert reasons(result.facts) == set()


SEEN = [Stage.DECODE, Stage.LANDMARKS, Stage.PARSING, Stage.HAIRLINE, Stage.SCALE, Stage.MEASURING]


def test_designs_are_drawn_in_the_order_asked_for(pipeline: Pipeline) -> None:
    progress = Recorder()
    styles = (Style.BELL, Style.ROUND)
    result = pipeline.design(studio_portrait().read_bytes(), DesignOptions(styles, max_output_side_px=400), progress)
    assert progress.stages == [*SEEN, Stage.DESIGNING, Stage.DRAWING]
    assert tuple(drawn.design.style for drawn in result.designs) == styles
    assert all(max(drawn.image.width_px, drawn.image.height_px) <= 400 for drawn in result.designs)


def test_masks_in_the_order_asked_for(pipeline: Pipeline) -> None:
    progress = Recorder()
    parts = (FacePart.LIPS, FacePart.HAIR)
    result = pipeline.segment(studio_portrait().read_bytes(), MaskOptions(parts, max_output_side_px=400), progress)
    assert progress.stages == [*SEEN, Stage.MASKING]
    assert tuple(mask.part for mask in result.masks) == parts


def test_pictures_that_do_not_compress_are_smaller_and_told_all_the_same(
    pipeline: Pipeline, studio_rgb: RgbImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven designs on a grainy photo of 2048 px were more than a message holds."""
    grain = np.random.default_rng(0).normal(0, 18, studio_rgb.shape)
    data = encode_png(np.clip(studio_rgb + grain, 0, 255).astype(np.uint8)).data
    monkeypatch.setattr("vision.pipeline.PICTURES_BYTES", 1_000_000)
    designs = pipeline.design(data, DesignOptions(max_output_side_px=500), NoProgress()).designs
    assert [drawn.design.style for drawn in designs] == list(Style)
    assert 700_000 < sum(len(drawn.image.data) for drawn in designs) <= 1_000_000
    assert len({max(drawn.image.width_px, drawn.image.height_px) for drawn in designs}) == 1

    monkeypatch.setattr("vision.pipeline.PICTURES_BYTES", 10_000)
    masks = pipeline.segment(data, MaskOptions(max_output_side_px=500), NoProgress()).masks
    assert [mask.part for mask in masks] == list(FacePart)
    assert sum(len(mask.image.data) for mask in masks) <= 10_000


CORNERS = np.array([(800.0, 500.0), (1200.0, 500.0), (1000.0, 700.0)])


def test_a_region_is_marked_even_where_nothing_grows(pipeline: Pipeline) -> None:
    told: list[RegionGrowth] = []
    options = GrowRegionOptions(polygon=CORNERS, max_output_side_px=400)
    summary = pipeline.grow_region(studio_portrait().read_bytes(), options, NoProgress(), told.append)
    assert [(result.grown, result.grown_reason) for result in told] == [(None, "BACKEND_NONE")]
    assert told[0].marked.width_px == 400
    assert told[0].area_px2 == 40_000
    assert summary.backend == "none"


def test_a_region_that_cannot_be_is_refused_before_anything_is_computed(pipeline: Pipeline) -> None:
    progress = Recorder()
    options = GrowRegionOptions(polygon=CORNERS * 10)
    with pytest.raises(PhotoError) as refused:
        pipeline.grow_region(studio_portrait().read_bytes(), options, progress, lambda _result: pytest.fail("told"))
    assert refused.value.reason is Reason.REGION_OUTSIDE_IMAGE
    assert progress.stages == [Stage.DECODE]


def test_no_picture_unless_asked_for(pipeline: Pipeline) -> None:
    progress = Recorder()
    assert pipeline.measure(studio_portrait().read_bytes(), WITHOUT_PICTURE, progress).annotated is None
    assert Stage.DRAWING not in progress.stages


@pytest.mark.parametrize("stage", [Stage.DECODE, Stage.PARSING, Stage.SCALE])
def test_a_cancelled_call_ends_at_the_next_stage(pipeline: Pipeline, stage: Stage) -> None:
    progress = Recorder(cancel_at=stage)
    with pytest.raises(CancelledCallError):
        pipeline.measure(studio_portrait().read_bytes(), MeasureOptions(), progress)
    assert progress.stages[-1] is stage


class Left:
    """Progress whose caller is gone, which only `look` or only `moved` says."""

    def __init__(self, said_by: str) -> None:
        self._said_by = said_by

    def enter(self, stage: Stage, total: int = 0) -> None:
        self._stage = stage

    def step(self) -> None:
        pass

    def moved(self) -> None:
        self._say("moved")

    def look(self) -> None:
        self._say("look")

    def _say(self, by: str) -> None:
        if by == self._said_by:
            raise CancelledCallError(self._stage)


@pytest.mark.parametrize(
    ("said_by", "stage"), [("look", Stage.DECODE), ("moved", Stage.LANDMARKS)], ids=["a child decodes", "no face yet"]
)
def test_a_cancelled_call_does_not_wait_for_the_end_of_the_stage(
    pipeline: Pipeline, studio_rgb: RgbImage, said_by: str, stage: Stage
) -> None:
    photo = io.BytesIO()
    Image.fromarray(resized(studio_rgb, 400)).save(photo, "BMP")
    with pytest.raises(CancelledCallError) as ended:
        pipeline.measure(photo.getvalue(), MeasureOptions(), Left(said_by))
    assert ended.value.args == (stage,)


def test_orientation_of_the_file_changes_nothing(pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    stored = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(np.rot90(studio_rgb))).save(stored, "PNG", exif=exif)
    facts = pipeline.measure(stored.getvalue(), WITHOUT_PICTURE, NoProgress()).facts
    assert np.allclose(facts.landmarks.points, measured(pipeline, studio_rgb).landmarks.points)


def expectations() -> list[tuple[str, str]]:
    manifest = Path(__file__).parent.parent.parent.parent / "shared" / "data" / "portraits" / "MANIFEST.tsv"
    if not manifest.is_file():
        return []
    with manifest.open() as rows:
        return [(row["file"], row["expected"]) for row in csv.DictReader(rows, delimiter="\t")]


@pytest.mark.parametrize(("name", "expected"), expectations())
def test_the_shared_portraits(name: str, expected: str, portraits: Path, pipeline: Pipeline, read_rgb: ReadRgb) -> None:
    rgb = read_rgb(portraits / name)
    match expected.partition(",")[0]:
        case "measured":
            facts = measured(pipeline, rgb)
            assert not reasons(facts) & {"CHILD", "NOT_A_PHOTO"}
            assert (facts.scale.mm_per_px is None) is ("SCALE_UNCERTAIN" in reasons(facts))
            assert ("GLASSES" in reasons(facts)) is ("iris interval wider" in expected)
        case "answered with the child warning" | "child warning; hairline never observed":
            facts = measured(pipeline, rgb)
            assert "CHILD" in reasons(facts)
            assert "never observed" not in expected or facts.hairline.status is not HairlineState.OBSERVED
        case "hairline occluded":
            assert measured(pipeline, rgb).hairline.status is HairlineState.OCCLUDED
        case "no face (1001)":
            assert refusal(pipeline, rgb).reason is Reason.NO_FACE
        case "no face or face too small":
            assert refusal(pipeline, rgb).reason in {Reason.NO_FACE, Reason.FACE_TOO_SMALL}
        case "not measured without a warning":
            assert outcome(pipeline, rgb) - {"measured"}
        case _:
            pytest.fail(f"no test for: {expected}")


@pytest.mark.parametrize("person", range(1, 11))
def test_upside_down_is_never_measured(person: int, pipeline: Pipeline, read_rgb: ReadRgb) -> None:
    rgb = resized(read_rgb(studio_portrait(person) if person % 2 else selfie(person)), 800)
    assert refusal(pipeline, np.ascontiguousarray(rgb[::-1, ::-1])).reason is Reason.UPSIDE_DOWN


@pytest.mark.parametrize("quarter_turns", [1, 3])
def test_a_face_on_its_side(quarter_turns: int, pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    refused = refusal(pipeline, np.ascontiguousarray(np.rot90(studio_rgb, quarter_turns)))
    assert refused.reason is Reason.ROLL
    assert abs(float(refused.details["roll_deg"])) == pytest.approx(90, abs=5)


@pytest.mark.parametrize("clockwise_deg", [-22, 22])
def test_a_leaning_head_is_measured(clockwise_deg: float, pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    matrix = cv2.getRotationMatrix2D((512, 512), -clockwise_deg, 1)
    leaning = np.asarray(cv2.warpAffine(studio_rgb, matrix, (1024, 1024), borderMode=cv2.BORDER_REPLICATE), np.uint8)
    assert measured(pipeline, leaning).landmarks.pose.roll_deg == pytest.approx(clockwise_deg, abs=3)


def test_two_people(pipeline: Pipeline, studio_rgb: RgbImage, read_rgb: ReadRgb) -> None:
    other = resized(read_rgb(studio_portrait(4)), 1024)
    assert refusal(pipeline, np.hstack([studio_rgb, other])).reason is Reason.MULTIPLE_FACES


def test_a_small_face_in_the_background_is_let_be(pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    scene = np.hstack([np.full((1024, 400, 3), 128, dtype=np.uint8), studio_rgb])
    scene[100:350, 50:300] = resized(studio_rgb, 250)
    assert measured(pipeline, scene).landmarks.box.x_px > 400


def test_a_face_too_small(pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    refused = refusal(pipeline, resized(studio_rgb, 230))
    assert refused.reason is Reason.FACE_TOO_SMALL
    assert 90 < float(refused.details["face_height_px"]) < 120 == refused.details["min"]


@pytest.mark.parametrize(
    "part",
    [np.s_[200:660], np.s_[430:], np.s_[:, 450:], np.s_[:, :590]],
    ids=["chin", "forehead", "right cheek", "left cheek"],
)
def test_a_face_cut_off(part: slice, pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    assert refusal(pipeline, np.ascontiguousarray(studio_rgb[part])).reason is Reason.FACE_CUT_OFF


def test_a_full_length_photo_is_measured(pipeline: Pipeline, read_rgb: ReadRgb) -> None:
    assert measured(pipeline, read_rgb(full_length(3))).landmarks.box.height_px > 200


def test_a_covered_mouth_is_not_upside_down(pipeline: Pipeline, studio_rgb: RgbImage) -> None:
    masked = studio_rgb.copy()
    masked[600:720, 380:660] = (120, 160, 200)
    assert "UPSIDE_DOWN" not in outcome(pipeline, masked)


def test_a_drawing_is_not_measured_without_a_warning(pipeline: Pipeline) -> None:
    drawing = np.asarray(cv2.resize(drawn_face(), (512, 512), interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
    assert outcome(pipeline, drawing) >= {"measured", "NOT_A_PHOTO"}


def test_the_canary_passes_and_notices_a_zeroed_parser(
    model_files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline.load(model_files, device="cpu")
    try:
        pipeline.canary()
        monkeypatch.setattr(pipeline, "_parser", Zeroed(pipeline._parser.canary_reference))
        with pytest.raises(ModelError, match="parser"):
            pipeline.canary()
    finally:
        pipeline.close()


class Zeroed:
    """A parser whose every answer is 0."""

    device = "cpu"
    version = "broken"

    def __init__(self, canary_reference: object) -> None:
        self.canary_reference = canary_reference

    def __call__(self, crops: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.zeros((1, 19, crops.shape[2] // 8, crops.shape[3] // 8), dtype=np.float32)


def test_versions_name_models_and_runtimes(pipeline: Pipeline) -> None:
    assert pipeline.device == "cpu"
    assert set(pipeline.versions) == {"face_landmarker", "parser", "parser_runtime", "mediapipe"}
    assert all(pipeline.versions.values())


def test_a_missing_model_file_is_named(model_files: ModelFiles, tmp_path: Path) -> None:
    files = ModelFiles(tmp_path / "gone.task", model_files.parser_weights, model_files.parser_weights_sha256, tmp_path)
    with pytest.raises(ModelError, match=r"gone\.task"):
        Pipeline.load(files, device="cpu")
