"""The order of a growth call: what is told when, how time is shared, what happens to what does not grow.

Designs, scene and proof are stood in for: they have tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.vision.growth.comfyui_jobs import job as painted_job
from tests.worker.scripted import PROOF, design, facts
from vision.calls import (
    GROWN_BY_DEFAULT,
    GrowRegionOptions,
    GrowStylesOptions,
    GrowthSummary,
    RegionGrowth,
    Style,
    StyleGrowth,
)
from vision.errors import CancelledCallError
from vision.growth import run
from vision.growth.backend import GrowthJob, GrowthReason, GrowthUnavailableError, NoGrowth
from vision.growth.deadline import Deadline
from vision.growth.run import AROUND_S, LEAST_S, Growth, grow_styles
from vision.png import encode_png
from vision.types import EncodedImage, Hairline, HairlineState, NoProgress, PhotoWarning, Progress, RgbImage, Stage

PICTURE = EncodedImage(b"drawn", 4, 3)


class Backend:
    """Does what its script says, one entry per job: a reason, or seconds that it takes."""

    name = "scripted"

    def __init__(self, *script: GrowthReason | float) -> None:
        self.script = list(script)
        self.jobs: list[GrowthJob] = []
        self.now_s = 1000.0

    def clock(self) -> float:
        return self.now_s

    def grow(self, job: GrowthJob, progress: Progress) -> RgbImage:
        progress.step()
        self.jobs.append(job)
        todo = self.script.pop(0) if self.script else 0.0
        if isinstance(todo, GrowthReason):
            raise GrowthUnavailableError(todo)
        self.now_s += todo
        return job.scene.rgb

    def close(self) -> None:
        """Nothing to free."""


class Stages(NoProgress):
    """Writes stages down; gives the call up at one of them."""

    def __init__(self, give_up_at: int | None = None) -> None:
        self.stages: list[Stage] = []
        self._give_up_at = give_up_at

    def enter(self, stage: Stage, total: int = 0) -> None:
        if len(self.stages) == self._give_up_at:
            raise CancelledCallError
        self.stages.append(stage)


class Call:
    """One call of `grow_styles`, and what came of it."""

    def __init__(self, backend: Any, *, timeout_s: float | None = None, progress: Progress | None = None) -> None:
        self.told: list[StyleGrowth] = []
        self.on_told: Callable[[], object] = lambda: None
        self.forward: Callable[[Callable[[], None]], Any] = lambda _step: pytest.fail("the proof is stood in for")
        self.growth = Growth(
            backend,
            lambda _rgb, _face, step: self.forward(step),
            progress or NoProgress(),
            timeout_s=timeout_s,
            clock=getattr(backend, "clock", lambda: 0.0),
        )

    def run(self, options: GrowStylesOptions = GrowStylesOptions(), **changes: object) -> GrowthSummary:  # noqa: B008  (frozen)
        return grow_styles(facts(**changes), options, self.growth, self.emit)

    def emit(self, result: StyleGrowth) -> None:
        self.told.append(result)
        self.on_told()

    @property
    def reasons(self) -> list[str]:
        return [result.grown_reason for result in self.told]


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What is around the order of things; `broken` is the number that does not convince."""
    state = SimpleNamespace(broken=None)

    def job_for_design(_scene: object, _design: object, seed: int, timeout_s: float | None) -> GrowthJob:
        return painted_job(seed=seed, timeout_s=timeout_s)

    monkeypatch.setattr(run, "design_hairlines", lambda _facts, options: tuple(map(design, options.styles)))
    monkeypatch.setattr(run, "draw_design", lambda *_: PICTURE)
    monkeypatch.setattr(run, "scene_of", lambda *_: None)
    monkeypatch.setattr(run, "job_for_design", job_for_design)
    monkeypatch.setattr(run, "reach", lambda job: job.region)
    monkeypatch.setattr(run, "landmarks_of", lambda _scene: None)
    monkeypatch.setattr(run, "prove", lambda *_: SimpleNamespace(proof=PROOF))
    monkeypatch.setattr(run, "convincing", lambda _evidence: state.broken)
    return state


def test_each_style_is_told_before_the_next_one_is_begun() -> None:
    backend = Backend()
    call = Call(backend)
    begun: list[int] = []
    call.on_told = lambda: begun.append(len(backend.jobs))
    summary = call.run()
    assert begun == [1, 2, 3, 4]
    assert [result.drawn.design.style for result in call.told] == list(GROWN_BY_DEFAULT)
    assert all(result.grown and result.proof is PROOF and result.drawn.image is PICTURE for result in call.told)
    assert summary.backend == "scripted"


def test_stages_of_a_call() -> None:
    progress = Stages()
    Call(Backend(), progress=progress).run(GrowStylesOptions((Style.M, Style.BELL)))
    one_style = [Stage.GROWING, Stage.PROVING]
    assert progress.stages == [Stage.DESIGNING, Stage.DRAWING, *one_style, *one_style]


def test_the_seed_is_the_callers_or_told() -> None:
    backend = Backend()
    assert Call(backend).run(GrowStylesOptions(seed=5)).seed == 5
    assert {job.seed for job in backend.jobs} == {5}
    backend = Backend()
    seed = Call(backend).run().seed
    assert {job.seed for job in backend.jobs} == {seed}
    assert seed < 2**31
    assert Call(Backend()).run().seed != seed


def test_time_is_shared_among_the_styles_that_are_left() -> None:
    backend = Backend(50.0, 0.0, 30.0)
    Call(backend, timeout_s=100.0).run()
    assert [job.timeout_s for job in backend.jobs] == [
        100 / 4 - AROUND_S,
        50 / 3 - AROUND_S,
        50 / 2 - AROUND_S,
        20 / 1 - AROUND_S,
    ]


def test_without_a_limit_none_is_set() -> None:
    backend = Backend()
    Call(backend).run()
    assert {job.timeout_s for job in backend.jobs} == {None}


def test_what_is_left_goes_to_the_first_styles_when_it_is_not_enough_for_all() -> None:
    backend = Backend(LEAST_S)
    call = Call(backend, timeout_s=AROUND_S + LEAST_S)
    call.run()
    assert [job.timeout_s for job in backend.jobs] == [LEAST_S]
    assert call.reasons == ["", *["OUT_OF_TIME"] * 3]
    assert all(result.drawn.image is PICTURE for result in call.told), "the designs are there all the same"


class Plodding(Backend):
    """Grows for an hour, and says every second that it moves, as a backend that knows nothing of time."""

    def grow(self, job: GrowthJob, progress: Progress) -> RgbImage:
        self.jobs.append(job)
        for _second in range(3600):
            self.now_s += 1.0
            progress.step()
        return job.scene.rgb


@pytest.mark.parametrize("styles", [1, 2, 4])
def test_a_backend_that_knows_nothing_of_time_is_ended_in_time(styles: int) -> None:
    backend = Plodding()
    call = Call(backend, timeout_s=60.0)
    call.run(GrowStylesOptions(GROWN_BY_DEFAULT[:styles]))
    assert call.reasons == ["OUT_OF_TIME"] * styles
    assert len(backend.jobs) == styles, "each had its share"
    assert backend.now_s <= 1060.0
    assert all(result.drawn.image is PICTURE for result in call.told)


def test_a_proof_that_takes_too_long_leaves_time_to_answer_without_the_picture(
    stand_ins: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Backend(1.0)
    call = Call(backend, timeout_s=20.0)

    def forwards(step: Callable[[], None]) -> None:
        for _forward in range(100):
            backend.now_s += 0.4
            step()

    def prove(
        _job: object, _picture: object, _weights: object, parse: Callable[[object], object], *_: object
    ) -> object:
        parse(None)
        return SimpleNamespace(proof=PROOF)

    monkeypatch.setattr(run, "prove", prove)
    call.forward = forwards
    call.run(GrowStylesOptions((Style.M,)))
    assert call.reasons == ["OUT_OF_TIME"]
    assert 1018.0 <= backend.now_s <= 1020.0 - 0.5


def test_who_left_is_gone_before_it_is_late() -> None:
    with pytest.raises(CancelledCallError):
        Deadline(Stages(give_up_at=0), 5.0, lambda: 9.0).enter(Stage.GROWING)
    with pytest.raises(GrowthUnavailableError):
        Deadline(Stages(), 5.0, lambda: 9.0).look()


def test_both_pictures_of_a_result_share_what_goes_into_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a photo that does not compress. Where both fit they have the size that was asked for."""
    noise = np.random.default_rng(0).integers(0, 256, painted_job().scene.rgb.shape, dtype=np.uint8)

    def draw(_facts: object, _design: object, _lang: object, side_px: int) -> EncodedImage:
        return encode_png(noise[:side_px, :side_px])

    monkeypatch.setattr(run, "draw_design", draw)
    backend = Backend()
    monkeypatch.setattr(backend, "grow", lambda job, _progress: noise)
    monkeypatch.setattr(run, "composite", lambda _canvas, grown, _weights: grown)
    for most_bytes, fits in ((10**6, True), (20_000, False)):
        monkeypatch.setattr(run, "RESULT_BYTES", most_bytes)
        call = Call(backend)
        call.run(GrowStylesOptions((Style.M,), max_output_side_px=150))
        (result,) = call.told
        assert result.grown is not None
        for picture in (result.drawn.image, result.grown):
            assert 0.7 * 20_000 < len(picture.data) <= most_bytes
            assert (max(picture.width_px, picture.height_px) == 150) is fits


def test_a_servers_fault_is_met_once() -> None:
    backend = Backend(0.0, GrowthReason.DIFFUSION_STALLED)
    call = Call(backend)
    call.run()
    assert len(backend.jobs) == 2
    assert call.reasons == ["", *["DIFFUSION_STALLED"] * 3]


def test_what_is_wrong_with_one_style_is_not_wrong_with_the_others() -> None:
    call = Call(Backend(GrowthReason.NOTHING_TO_GROW, 0.0, GrowthReason.OUT_OF_TIME, 0.0))
    call.run()
    assert call.reasons == ["NOTHING_TO_GROW", "", "OUT_OF_TIME", ""]


def test_a_picture_that_does_not_convince_is_not_shown_and_its_numbers_are(stand_ins: SimpleNamespace) -> None:
    stand_ins.broken = "repetition"
    call = Call(Backend())
    call.run()
    assert {(result.grown, result.grown_reason, result.proof) for result in call.told} == {
        (None, "NOT_CONVINCING", PROOF)
    }


def test_without_a_backend_the_designs_are_there() -> None:
    call = Call(NoGrowth())
    assert call.run().backend == "none"
    assert call.reasons == ["BACKEND_NONE"] * 4
    assert all(result.drawn.image is PICTURE for result in call.told)


def test_only_the_region_is_taken_from_what_was_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    finished: list[RgbImage] = []

    def prove(_job: object, picture: RgbImage, *_: object) -> object:
        finished.append(picture)
        return SimpleNamespace(proof=PROOF)

    monkeypatch.setattr(run, "prove", prove)
    backend = Backend()
    monkeypatch.setattr(backend, "grow", lambda job, _progress: np.zeros_like(job.scene.rgb))
    Call(backend).run(GrowStylesOptions((Style.M,)))
    job = painted_job()
    assert (finished[0][job.region == 1] == 0).all()
    assert (finished[0][job.region == 0] == job.scene.rgb[job.region == 0]).all()


@pytest.mark.parametrize("stages_before", range(6))
def test_a_call_that_is_given_up_ends_at_the_next_stage_and_tells_nothing_more(stages_before: int) -> None:
    progress = Stages(give_up_at=stages_before)
    call = Call(Backend(), progress=progress)
    with pytest.raises(CancelledCallError):
        call.run()
    assert len(progress.stages) == stages_before
    assert len(call.told) == max(0, stages_before - 2) // 2


@pytest.mark.parametrize("state", [HairlineState.OCCLUDED, HairlineState.HAT])
def test_from_a_hairline_that_nobody_sees_nothing_is_grown_and_the_designs_are_told(state: HairlineState) -> None:
    backend = Backend()
    call = Call(backend)
    call.run(hairline=Hairline((), state, None, 0.0))
    assert call.reasons == ["HAIRLINE_HIDDEN"] * 4
    assert all(result.drawn.image is PICTURE for result in call.told)
    assert backend.jobs == []


def test_on_a_child_nothing_is_grown_and_the_designs_are_there() -> None:
    backend = Backend()
    call = Call(backend)
    call.run(warnings=(PhotoWarning("CHILD", 0.27, 0.24, "ratio"),))
    assert call.reasons == ["CHILD"] * len(GROWN_BY_DEFAULT)
    assert all(result.grown is None and result.drawn.image is PICTURE for result in call.told)
    assert backend.jobs == []


def test_in_a_region_marked_on_a_child_nothing_is_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "check_region", lambda *_: None)
    monkeypatch.setattr(run, "draw_marked", lambda *_: PICTURE)
    monkeypatch.setattr(run, "job_for_region", lambda *_: pytest.fail("no job is made"))
    told: list[RegionGrowth] = []
    backend, warnings = Backend(), (PhotoWarning("CHILD", 0.27, 0.24, "ratio"),)
    region = SimpleNamespace(mask=None, area_px2=5.0, area_cm2=lambda _landmarks, _mm_per_px: 0.2)
    run.grow_region(facts(warnings=warnings), region, GrowRegionOptions(), Call(backend).growth, told.append)  # type: ignore[arg-type]
    (result,) = told
    assert (result.grown, result.grown_reason, result.marked) == (None, "CHILD", PICTURE)
    assert backend.jobs == []


def test_on_a_bald_head_it_grows() -> None:
    call = Call(Backend())
    call.run(hairline=Hairline((), HairlineState.NONE, None, 0.0))
    assert call.reasons == [""] * 4
