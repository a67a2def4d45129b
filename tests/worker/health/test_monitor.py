"""The beat on virtual time: a real compute thread that stands still, and a clock that a test moves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from tests.worker.fakes import FakePipeline, check_thread
from vision.errors import ModelError
from vision.types import STALL_AFTER_S, MeasureOptions, MeasureResult, Progress, Stage
from worker.drain import Drain
from worker.engine import AnalysisPipeline, Engine
from worker.health.checks import DiskCheck, ModelsCheck
from worker.health.disk import DiskProbe
from worker.health.growth import GrowthCheck
from worker.health.monitor import WAITS_FOR, HealthMonitor
from worker.health.prober import Dependencies
from worker.health.report import Report
from worker.identity import Identity
from worker.runner import Ended, Runner, Running
from worker.slot import CallIdentity
from worker.thresholds import Thresholds
from worker.warmup import warm_up

T = Thresholds()


class StandingStill(FakePipeline):
    """Enters a stage and stays there until it is released; a test moves the counter by `progress`."""

    def __init__(self, stage: Stage = Stage.PARSING) -> None:
        super().__init__()
        self.stage = stage
        self.progress: Progress | None = None
        self.here = threading.Event()

    def measure(self, data: bytes, options: MeasureOptions, progress: Progress) -> MeasureResult:
        check_thread()
        progress.enter(self.stage)
        self.progress = progress
        self.here.set()
        self.release.wait()
        return super().measure(data, options, progress)


class Bench:
    """The health of a worker without port and without real time."""

    def __init__(self, pipeline: FakePipeline, stall_after_s: Mapping[Stage, float], *, grows: bool) -> None:
        self.now_s = 1000.0
        self.pipeline = pipeline
        clock = lambda: self.now_s  # noqa: E731
        self.models = ModelsCheck()
        self.engine = Engine(pipeline.load, clock=clock, on_stage=lambda: None)
        self.runner = Runner(
            self.engine, self.models, thresholds=T, canary_max_age_s=30.0, clock=clock, on_change=lambda: None
        )
        self.monitor = HealthMonitor(
            identity=Identity(),
            engine=self.engine,
            runner=self.runner,
            models=self.models,
            drain=Drain(0.0, lambda: None),
            disk=DiskCheck(min_free_gib=0.0, resume_free_gib=0.0, started_s=self.now_s, thresholds=T),
            disk_probe=DiskProbe((), T, clock),
            dependencies=Dependencies((), checked=True, interval_s=5.0, thresholds=T, clock=clock),
            growth=GrowthCheck(configured=grows, thresholds=T),
            canary_max_age_s=30.0,
            stall_after_s=stall_after_s,
            thresholds=T,
            clock=clock,
            on_change=lambda: None,
            on_beat=lambda _report, _now_s: None,
        )

    def pass_time(self, duration_s: float) -> list[Report]:
        """Beat by beat."""
        seen = []
        for _beat in range(round(duration_s / T.beat_s)):
            self.now_s += T.beat_s
            self.monitor.beat(self.now_s)
            seen.append(self.monitor.report())
        return seen

    async def call(self, data: bytes = b"ok") -> Running[MeasureResult]:
        """A call that has begun to compute, where the pipeline stands still."""

        def measure(pipeline: AnalysisPipeline, progress: Progress) -> MeasureResult:
            return pipeline.measure(data, MeasureOptions(), progress)

        running = self.runner.start(CallIdentity("Measure"), data, lambda progress: self.engine.call(measure, progress))
        if isinstance(self.pipeline, StandingStill):
            assert await asyncio.to_thread(self.pipeline.here.wait, 20)
        return running

    async def answered(self, data: bytes = b"ok") -> Ended[MeasureResult]:
        return await (await self.call(data)).result()


@asynccontextmanager
async def bench(
    pipeline: FakePipeline, stall_after_s: Mapping[Stage, float] | None = None, *, grows: bool = True
) -> AsyncIterator[Bench]:
    """One that is warm."""
    made = Bench(pipeline, stall_after_s or {}, grows=grows)
    await warm_up(made.engine, made.models, made.runner, retry_s=1.0, on_change=lambda: None)
    made.pass_time(1.0)
    try:
        yield made
    finally:
        pipeline.release.set()
        assert await made.engine.close(20)


def live(seen: list[Report]) -> set[bool]:
    return {report.live for report in seen}


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage not in WAITS_FOR])
@pytest.mark.parametrize("override_s", [None, 4.0])
async def test_each_stage_has_its_own_patience_and_may_be_given_another(stage: Stage, override_s: float | None) -> None:
    """Scenario 13: only the compute thread stands still."""
    patience_s = override_s or STALL_AFTER_S[stage]
    async with bench(StandingStill(stage), {stage: override_s} if override_s else {}) as worker:
        call = await worker.call()
        assert live(worker.pass_time(patience_s)) == {True}
        end = worker.pass_time(3 * T.progress_period_s)[-1]
        assert (end.live, end.reasons, end.capabilities) == (False, (f"stalled:{stage}",), ())
        worker.pipeline.release.set()
        await call.result()
        assert worker.pass_time(1.0)[-1].live


async def test_waiting_in_another_servers_queue_is_no_stall_and_costs_growth_alone() -> None:
    async with bench(StandingStill(Stage.DIFFUSION_QUEUE)) as worker:
        assert worker.pass_time(1.0)[-1].capabilities == ("measure", "growth")
        call = await worker.call()
        seen = worker.pass_time(600.0)
        assert live(seen) == {True}
        assert {report.reasons for report in seen} == {()}
        assert seen[-1].capabilities == ("measure",)
        assert seen[-1].why_not["capability/growth"] == "waiting_for:comfyui"
        worker.pipeline.release.set()
        await call.result()
        assert worker.pass_time(2.0)[-1].capabilities == ("measure", "growth")


async def test_a_worker_that_can_no_longer_grow_hair_says_so_and_why_and_when_it_can_again() -> None:
    async with bench(FakePipeline()) as worker:
        with capture_logs() as lines:
            worker.monitor.growth_ended("DIFFUSION_STALLED")
            assert worker.pass_time(1.0)[-1].capabilities == ("measure",)
            worker.monitor.growth_ended("")
            assert worker.pass_time(1.0)[-1].capabilities == ("measure", "growth")
    told = [line for line in lines if line["event"].startswith("capability")]
    assert told == [
        {
            "event": "capability_lost",
            "capability": "growth",
            "reason": "failed:DIFFUSION_STALLED",
            "log_level": "warning",
        },
        {"event": "capability_back", "capability": "growth", "log_level": "info"},
    ]


async def test_what_a_worker_was_never_meant_to_do_is_no_loss() -> None:
    with capture_logs() as lines:
        async with bench(FakePipeline(), grows=False) as worker:
            assert worker.pass_time(1.0)[-1].lacks == {"growth": "backend_none"}
    assert not [line for line in lines if line["event"].startswith("capability")]


async def test_slow_but_moving_is_healthy_and_standing_still_is_not() -> None:
    """Scenario 15."""
    pipeline = StandingStill()
    async with bench(pipeline) as worker:
        call = await worker.call()
        for _step in range(20):
            assert live(worker.pass_time(29.0)) == {True}
            assert pipeline.progress
            pipeline.progress.step()
        assert worker.pass_time(35.0)[-1].reasons == ("stalled:parsing",)
        pipeline.release.set()
        await call.result()


@pytest.mark.parametrize(
    ("stage", "still_s"),
    [(Stage.DIFFUSION, 7.0), (Stage.DIFFUSION, 90.0), (Stage.MODEL_LOAD, 120.0)],
    ids=["7 s inside one node", "90 s of model load there", "B96: 120 s of our own"],
)
async def test_what_takes_long_is_no_stall(stage: Stage, still_s: float) -> None:
    """Scenario 32."""
    async with bench(StandingStill(stage)) as worker:
        call = await worker.call()
        assert live(worker.pass_time(still_s)) == {True}
        worker.pipeline.release.set()
        await call.result()


async def test_a_suspended_machine_is_no_stall_but_what_stands_still_afterwards_is() -> None:
    """Scenario 32: half a minute is missing, in the middle of a stage that may be still for ten seconds."""
    async with bench(StandingStill(Stage.DECODE)) as worker:
        call = await worker.call()
        assert live(worker.pass_time(8.0)) == {True}
        worker.now_s += 30.0
        assert live(worker.pass_time(9.0)) == {True}
        assert not worker.pass_time(4.0)[-1].live
        worker.pipeline.release.set()
        await call.result()


@pytest.mark.parametrize("call_s", [0.05, 1.0, 20.0])
async def test_output_that_turns_to_zeros_under_full_load_is_found_within_a_minute(call_s: float) -> None:
    """Scenario 30: calls come one behind the other and all "succeed"; nothing is ever idle."""
    pipeline = FakePipeline()
    async with bench(pipeline) as worker:
        assert (await worker.answered()).end == "ok"
        pipeline.canary_error = ModelError("all zeros")
        broken_at_s = worker.now_s
        while worker.monitor.report().why_not[""] == "":
            worker.now_s += call_s  # no beat in between: the calls alone have to find it
            ended = await worker.answered(b"ok")
            assert worker.now_s - broken_at_s <= 60
        assert ended.end == "failed"  # nor is the answer given that was found with such models
        assert worker.monitor.report().reasons == ("models:all zeros",)


async def test_no_face_in_everything_is_found_after_eight_photos_even_at_once() -> None:
    """Scenario 30, the fast way."""
    pipeline = FakePipeline()
    async with bench(pipeline) as worker:
        pipeline.canary_error = ModelError("all zeros")
        ends = [(await worker.answered(b"no face %d" % photo)).end for photo in range(8)]
        assert ends == ["refused"] * 7 + ["failed"]
