"""The beat: feeds readings into the pure checks, runs the idle canary, and says aloud when health changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType

import structlog

from vision.growth.backend import GrowthReason
from vision.types import STALL_AFTER_S, Stage
from worker.doubt import canary_overdue
from worker.drain import Drain, DrainPhase
from worker.engine import Engine
from worker.health.checks import CheckState, DiskCheck, ModelsCheck, progress_result
from worker.health.disk import DiskProbe
from worker.health.growth import GrowthCheck
from worker.health.prober import Dependencies
from worker.health.report import Report, report
from worker.health.verdict import Judgement, Reading, judge
from worker.identity import Identity
from worker.runner import Runner
from worker.thresholds import Thresholds

WAITS_FOR: Mapping[Stage, str] = MappingProxyType({Stage.DIFFUSION_QUEUE: "comfyui"})
"""Stages in which a call waits in the queue of another server, and its name."""

log = structlog.stdlib.get_logger("worker.health")


class HealthMonitor:
    """Owner of all checks."""

    def __init__(
        self,
        *,
        identity: Identity,
        engine: Engine,
        runner: Runner,
        models: ModelsCheck,
        drain: Drain,
        disk: DiskCheck,
        disk_probe: DiskProbe,
        dependencies: Dependencies,
        growth: GrowthCheck,
        canary_max_age_s: float,
        stall_after_s: Mapping[Stage, float],
        thresholds: Thresholds,
        clock: Callable[[], float],
        on_change: Callable[[], None],
        on_beat: Callable[[Report, float], None],
    ) -> None:
        self._identity = identity
        self._engine = engine
        self._runner = runner
        self._models = models
        self._drain = drain
        self._disk = disk
        self._disk_probe = disk_probe
        self._dependencies = dependencies
        self._growth = growth
        self._canary_max_age_s = canary_max_age_s
        self._stall_after_s = {**STALL_AFTER_S, **stall_after_s}
        self._thresholds = thresholds
        self._clock = clock
        self._on_change = on_change
        self._on_beat = on_beat
        self._told: Report | None = None
        self._counter = -1
        self._read_at_s = -thresholds.progress_period_s
        self._judgement: Judgement | None = None
        self._canary: asyncio.Task[bool] | None = None
        self._canary_tried_s: float | None = None

    def report(self) -> Report:
        """The worker's health now."""
        checks = (
            self._disk.result(),
            *self._dependencies.results(),
            *self._models.results(),
            progress_result(self._judgement),
            self._growth.result(),
        )
        return report(checks, warm=self._models.warm, draining=self._drain.phase is not DrainPhase.SERVING)

    def stall_after_s(self, stage: Stage | None) -> float:
        """How long `stage` may be still; before the first one the least patience of all."""
        return self._stall_after_s[stage] if stage else min(self._stall_after_s.values())

    def growth_ended(self, grown_reason: str) -> None:
        """A growth call made a picture, or went without it for `grown_reason`."""
        if not grown_reason:
            self._growth.succeeded()
        elif GrowthReason(grown_reason).is_servers_fault:
            self._growth.failed(grown_reason, self._clock())

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self.beat(self._clock())
            await asyncio.sleep(self._thresholds.beat_s)

    def beat(self, now_s: float) -> None:
        """Weigh all checks anew, and tell what changed."""
        self._disk.update(self._disk_probe.reading, now_s)
        self._dependencies.update(now_s)
        self._growth.update(self._dependencies.results(), now_s)
        if now_s - self._read_at_s >= self._thresholds.progress_period_s - self._thresholds.beat_s / 2:
            self._read_at_s = now_s
            self._judge_progress(now_s)
        present = self.report()
        moved = self._engine.last_movement.counter
        if self._told is None or _differ(self._told, present):
            _tell(present)
            if self._told is not None:
                _tell_capabilities(self._told.lacks, present.lacks)
            self._on_change()
            self._told = present
        elif moved != self._counter:
            self._on_change()
        self._counter = moved
        self._on_beat(present, now_s)

    def _judge_progress(self, now_s: float) -> None:
        last = self._engine.last_movement
        reading = Reading(
            at_s=now_s,
            boot_id=self._identity.boot_id,
            start_time_s=self._identity.start_time_s,
            counter=last.counter,
            in_flight=self._engine.pending,
            waiting=0,
            stage=last.stage or "",
            stall_after_s=self.stall_after_s(last.stage),
            waiting_for=waits_for(last.stage) if self._engine.pending else "",
        )
        self._growth.waits(reading.waiting_for, now_s)
        memory = self._judgement.memory if self._judgement else None
        self._judgement = judge(memory, reading, period_s=self._thresholds.progress_period_s)
        if self._judgement.canary_wanted and self._canary_is_due(now_s):
            self._canary_tried_s = now_s
            self._canary = asyncio.create_task(self._runner.check_canary())

    def _canary_is_due(self, now_s: float) -> bool:
        if not self._engine.device or self._models.accelerator_lost:
            return False
        if self._canary and not self._canary.done():
            return False
        tried_s = self._canary_tried_s
        if tried_s is not None and now_s - tried_s < self._thresholds.canary_retry_s:
            return False
        return not self._models.good or canary_overdue(self._models.last_good_s, now_s, self._canary_max_age_s)


def waits_for(stage: Stage | None) -> str:
    """The server in whose queue a call in this stage waits; empty when it waits for none."""
    return WAITS_FOR.get(stage, "") if stage else ""


def _differ(told: Report, present: Report) -> bool:
    """Whether there is something to say: states and reasons, not the values behind them."""
    return (told.state, told.reasons, told.why_not) != (present.state, present.reasons, present.why_not)


def _tell(present: Report) -> None:
    level = log.info if present.cause is None else log.warning
    failing = (check for check in present.checks if check.state is CheckState.FAILING and check.evidence)
    evidence = {check.name: {name: round(value, 3) for name, value in check.evidence.items()} for check in failing}
    facts = {"evidence": evidence} if evidence else {}
    level("health", state=present.state, reasons=list(present.reasons), live=present.live, **facts)


def _tell_capabilities(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """What it cannot do any more, or can again. What it was never configured to do is no loss."""
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            log.info("capability_back", capability=name)
        elif now[name] != before.get(name):
            log.warning("capability_lost", capability=name, reason=now[name])
