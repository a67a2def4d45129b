"""The RPC shell of `hair.analysis.v1.AnalyzeService`: from message to slot and back, one log line per call."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import grpc
import structlog
from google.protobuf.message import Message
from grpc import aio
from hair.analysis.v1 import growth_pb2, hairlines_pb2, masks_pb2, measure_pb2
from hair.analysis.v1.analyze_service_pb2_grpc import AnalyzeServiceServicer
from typing_extensions import override

from hairmesh.wire import CALL_ID_KEY, REQUEST_ID_KEY, WorkerReason
from vision.types import MeasureResult
from worker import translate
from worker.admission import admit
from worker.drain import Drain, DrainPhase
from worker.engine import Engine
from worker.health.monitor import HealthMonitor
from worker.progress import JobProgress
from worker.refusals import CANCELLED, DEADLINE, Refusal, to_status
from worker.runner import Ended, Runner, Running
from worker.slot import CallIdentity
from worker.thresholds import Thresholds

T = TypeVar("T")
MessageT = TypeVar("MessageT", bound=Message)
Context = aio.ServicerContext[Any, Any]
Work = Callable[[JobProgress], Awaitable[T]]

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = structlog.stdlib.get_logger("worker.call")


OUTCOMES: Mapping[grpc.StatusCode, str] = MappingProxyType(
    {
        grpc.StatusCode.OK: "ok",
        grpc.StatusCode.FAILED_PRECONDITION: "refused",
        grpc.StatusCode.INVALID_ARGUMENT: "refused",
        grpc.StatusCode.RESOURCE_EXHAUSTED: "busy",
        grpc.StatusCode.UNAVAILABLE: "unavailable",
        grpc.StatusCode.DEADLINE_EXCEEDED: "deadline",
        grpc.StatusCode.ABORTED: "cancelled",
        grpc.StatusCode.INTERNAL: "failed",
        grpc.StatusCode.UNIMPLEMENTED: "not_built",
    }
)
"""`outcome` in the log by the code a call ended with."""


@dataclass(slots=True)
class _Account:
    """What the log line of one call says; never a byte of a picture."""

    method: str
    bytes_in: int
    began_s: float
    stage_ms: Mapping[str, float] = field(default_factory=dict)

    def write(self, code: grpc.StatusCode, reason: str = "", *, bytes_out: int = 0) -> None:
        log.info(
            "call",
            method=self.method,
            outcome=OUTCOMES[code],
            reason=reason,
            duration_ms=round((time.monotonic() - self.began_s) * 1000.0, 1),
            stage_ms=self.stage_ms,
            bytes_in=self.bytes_in,
            bytes_out=bytes_out,
        )


class AnalyzeServicer(AnalyzeServiceServicer):
    """Every handler ends with an answer or a status: no CancelledError leaves it, or the client would wait for ever."""

    def __init__(
        self, engine: Engine, runner: Runner, monitor: HealthMonitor, drain: Drain, thresholds: Thresholds
    ) -> None:
        self._engine = engine
        self._runner = runner
        self._monitor = monitor
        self._drain = drain
        self._deadline_slack_s = thresholds.deadline_slack_s
        self._waiting: set[asyncio.Task[Any]] = set()
        self._cutting_off = False

    @override
    async def Measure(self, request: measure_pb2.MeasureRequest, context: Context) -> measure_pb2.MeasureResponse:
        """See the proto."""
        photo = request.photo.data

        def prepare() -> Work[MeasureResult]:
            options = translate.measure_options(request)
            return lambda progress: self._engine.measure(photo, options, progress)

        def encode(result: MeasureResult) -> measure_pb2.MeasureResponse:
            return translate.measure_response(result, self._engine.versions)

        return await self._answer("Measure", photo, prepare, encode, context)

    @override
    async def DesignHairlines(
        self, request: hairlines_pb2.DesignHairlinesRequest, context: Context
    ) -> hairlines_pb2.DesignHairlinesResponse:
        """Not built."""
        await _refuse_not_built("DesignHairlines", request.photo.data, context)
        return hairlines_pb2.DesignHairlinesResponse()

    @override
    async def SegmentFace(
        self, request: masks_pb2.SegmentFaceRequest, context: Context
    ) -> masks_pb2.SegmentFaceResponse:
        """Not built."""
        await _refuse_not_built("SegmentFace", request.photo.data, context)
        return masks_pb2.SegmentFaceResponse()

    @override
    async def GrowStyles(
        self, request: growth_pb2.GrowStylesRequest, context: Context
    ) -> AsyncIterator[growth_pb2.GrowStylesResponse]:
        """Not built."""
        await _refuse_not_built("GrowStyles", request.photo.data, context)
        yield growth_pb2.GrowStylesResponse()

    @override
    async def GrowRegion(
        self, request: growth_pb2.GrowRegionRequest, context: Context
    ) -> AsyncIterator[growth_pb2.GrowRegionResponse]:
        """Not built."""
        await _refuse_not_built("GrowRegion", request.photo.data, context)
        yield growth_pb2.GrowRegionResponse()

    async def cut_off(self, timeout_s: float) -> None:
        """End every handler that still waits for its thread: the callers are told, the threads see the flag.

        One whose connection takes nothing any more is left after `timeout_s`.
        """
        self._cutting_off = True
        waiting = set(self._waiting)
        for handler in waiting:
            handler.cancel()
        if waiting:
            await asyncio.wait(waiting, timeout=timeout_s)

    async def _answer(
        self,
        method: str,
        data: bytes,
        prepare: Callable[[], Work[T]],
        encode: Callable[[T], MessageT],
        context: Context,
    ) -> MessageT:
        """Run one call; `prepare` checks parameters and raises `Refusal`, `encode` makes the answer."""
        call = identify(method, context)
        account = _Account(method, len(data), time.monotonic())
        try:
            work = prepare()
            self._admit(context)
            ended = await self._until_ended(self._runner.start(call, data, work), context)
            account.stage_ms = ended.stage_ms
            response = encode(ended.answer())
        except Refusal as caught:
            refusal = caught
        except Exception:
            log.exception("handler_raised")
            refusal = Refusal(WorkerReason.WORKER_FAILED)
        else:
            account.write(grpc.StatusCode.OK, bytes_out=response.ByteSize())
            return response
        account.write(refusal.code, refusal.reason)
        return await _refuse(context, refusal, call.request_id)

    def _admit(self, context: Context) -> None:
        refusal = admit(
            refusing=self._drain.phase is DrainPhase.REFUSING,
            health=self._monitor.report(),
            remaining_s=context.time_remaining(),
            slot=self._runner.slot,
            busy_for_s=self._runner.busy_for_s(),
        )
        if refusal:
            raise refusal

    async def _until_ended(self, running: Running[T], context: Context) -> Ended[T]:
        handler = asyncio.current_task()
        if handler:
            self._waiting.add(handler)
        try:
            return await running.result()
        except asyncio.CancelledError:
            running.give_up()
            raise self._why_cut_off(context) from None
        finally:
            self._waiting.discard(handler)

    def _why_cut_off(self, context: Context) -> Refusal:
        remaining_s: float | None = context.time_remaining()
        if remaining_s is not None and remaining_s <= self._deadline_slack_s:
            return Refusal(DEADLINE)
        if self._cutting_off:
            return Refusal(WorkerReason.DRAINING)
        return Refusal(CANCELLED)


def identify(method: str, context: Context) -> CallIdentity:
    """What the caller said of itself, from now on in every log line; what does not look like an id is left out."""
    sent = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
    request_id, call_id = (
        value if _ID.fullmatch(value := sent.get(key, "")) else "" for key in (REQUEST_ID_KEY, CALL_ID_KEY)
    )
    structlog.contextvars.bind_contextvars(request_id=request_id, call_id=call_id)
    return CallIdentity(method, request_id, call_id)


async def _refuse(context: Context, refusal: Refusal, request_id: str) -> NoReturn:
    await context.abort_with_status(to_status(refusal, request_id))


async def _refuse_not_built(method: str, data: bytes, context: Context) -> None:
    call, refusal = identify(method, context), Refusal(WorkerReason.NOT_BUILT)
    _Account(method, len(data), time.monotonic()).write(refusal.code, refusal.reason)
    await _refuse(context, refusal, call.request_id)
