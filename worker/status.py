"""`hair.worker.v1.WorkerService`: what a worker says of itself. Never uses the slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio
from hair.worker.v1 import worker_service_pb2 as pb
from hair.worker.v1.worker_service_pb2_grpc import WorkerServiceServicer
from typing_extensions import override

from hairmesh import __version__
from worker.drain import Drain
from worker.engine import Engine
from worker.health.checks import CheckResult, CheckState
from worker.health.monitor import HealthMonitor, waits_for
from worker.health.report import DRAINING, ServingState
from worker.identity import Identity
from worker.news import News
from worker.runner import Runner
from worker.thresholds import Thresholds

Context = aio.ServicerContext[Any, Any]


class StatusBook:
    """Puts the parts together into one `WorkerStatus`."""

    def __init__(
        self,
        *,
        identity: Identity,
        engine: Engine,
        runner: Runner,
        monitor: HealthMonitor,
        clock: Callable[[], float],
    ) -> None:
        self._identity = identity
        self._engine = engine
        self._runner = runner
        self._monitor = monitor
        self._clock = clock

    def compose(self) -> pb.WorkerStatus:
        """The state now."""
        now_s = self._clock()
        health = self._monitor.report()
        start_time = Timestamp()
        start_time.FromNanoseconds(round(self._identity.start_time_s * 1e9))
        draining = health.state is ServingState.DRAINING
        return pb.WorkerStatus(
            boot_id=self._identity.boot_id,
            start_time=start_time,
            state=pb.ServingState.Value(f"SERVING_STATE_{health.state.name}"),
            reasons=health.reasons,
            cause=DRAINING if draining else (health.cause or ""),
            live=health.live,
            slot=self._slot(now_s),
            checks=[_check(check, now_s) for check in health.checks],
            versions={"hairmesh": __version__, **self._engine.versions},
            capabilities=health.capabilities,
            device=self._engine.device,
            service_time_s=dict(self._runner.service_times.medians_s(now_s)),
        )

    def _slot(self, now_s: float) -> pb.Slot:
        slot = self._runner.slot
        return pb.Slot(
            state=pb.SlotState.Value(f"SLOT_STATE_{slot.state.name}"), epoch=slot.epoch, call=self._in_flight(now_s)
        )

    def _in_flight(self, now_s: float) -> pb.CallInFlight | None:
        occupation = self._runner.slot.occupation
        if occupation is None:
            return None
        last = self._engine.last_movement
        stage = last.stage if last.at_s >= occupation.since_s else None  # else what moved last was another job
        return pb.CallInFlight(
            call_id=occupation.call.call_id,
            request_id=occupation.call.request_id,
            method=occupation.call.method,
            age_s=now_s - occupation.since_s,
            stage=stage or "",
            step_counter=last.counter,
            still_s=now_s - max(last.at_s, occupation.since_s),
            stall_after_s=self._monitor.stall_after_s(stage),
            waiting_for=waits_for(stage),
        )


class WorkerServicer(WorkerServiceServicer):
    """The RPC shell over `StatusBook` and `Drain`."""

    def __init__(
        self, book: StatusBook, drain: Drain, ended: Callable[[], Awaitable[None]], news: News, thresholds: Thresholds
    ) -> None:
        """`ended` waits until every call is over and its answer on its way."""
        self._book = book
        self._drain = drain
        self._ended = ended
        self._news = news
        self._gap_s = thresholds.watch_gap_s

    @override
    async def GetStatus(self, request: pb.GetStatusRequest, context: Context) -> pb.GetStatusResponse:
        """See the proto."""
        return pb.GetStatusResponse(status=self._book.compose())

    @override
    async def WatchStatus(
        self, request: pb.WatchStatusRequest, context: Context
    ) -> AsyncIterator[pb.WatchStatusResponse]:
        """See the proto. Ends with the last state when the process ends."""
        told: pb.WorkerStatus | None = None
        try:
            while True:
                version = self._news.version
                status = self._book.compose()
                if told is None or _without_ages(status) != _without_ages(told):
                    yield pb.WatchStatusResponse(status=status)
                    told = status
                if self._news.closed:
                    return
                await asyncio.sleep(self._gap_s)
                await self._news.newer_than(version)
        except asyncio.CancelledError:
            return  # the watcher left

    @override
    async def Drain(self, request: pb.DrainRequest, context: Context) -> pb.DrainResponse:
        """See the proto. A caller that leaves does not stop the draining."""
        try:
            self._drain.begin()
            await self._drain.wait_refusing()
            await self._ended()
        except asyncio.CancelledError:
            pass  # the caller left, or the process ends: it is told the state as it is
        return pb.DrainResponse(status=self._book.compose())


def _without_ages(status: pb.WorkerStatus) -> pb.WorkerStatus:
    """What counts as a change: everything but values that move by themselves."""
    still = pb.WorkerStatus()
    still.CopyFrom(status)
    still.slot.call.ClearField("age_s")
    still.slot.call.ClearField("still_s")
    still.ClearField("service_time_s")
    for check in still.checks:
        check.ClearField("evidence_age_s")
        check.ClearField("evidence")
    return still


def _check(check: CheckResult, now_s: float) -> pb.Check:
    state = "UNSPECIFIED" if check.state is CheckState.UNKNOWN else check.state.name
    return pb.Check(
        name=check.name,
        state=pb.CheckState.Value(f"CHECK_STATE_{state}"),
        reason=check.reason,
        evidence_age_s=0.0 if check.at_s is None else now_s - check.at_s,
        evidence=dict(check.evidence),
        required=check.required,
    )
