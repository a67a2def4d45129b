"""One call from message to slot and back, with its one log line: as an answer, or as a stream that ends with one."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn, Protocol, TypeVar

import grpc
import structlog
from google.protobuf.message import Message
from grpc import aio

from hairmesh.spans import Collector
from hairmesh.wire import CALL_ID_KEY, MAX_MESSAGE_BYTES, REQUEST_ID_KEY, WorkerReason
from vision.growth.backend import GrowthReason
from worker.admission import admit
from worker.backlog import Backlog, Waiting
from worker.connections import address_of, shut
from worker.drain import Drain, DrainPhase
from worker.engine import AnalysisPipeline, Engine
from worker.feed import Feed, Moved
from worker.health.monitor import HealthMonitor
from worker.progress import JobProgress, Position, StageTime, stage_ms
from worker.refusals import CANCELLED, DEADLINE, Refusal, to_status
from worker.runner import Runner, Running
from worker.slot import CallIdentity
from worker.tally import Tally
from worker.thresholds import Thresholds
from worker.tracing import CallTrace

T = TypeVar("T")
MessageT = TypeVar("MessageT", bound=Message)
Context = aio.ServicerContext[Any, Any]
Work = Callable[[AnalysisPipeline, JobProgress], T]
"""What the compute thread does for a call."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = structlog.stdlib.get_logger("worker.call")


class Grown(Protocol):
    """A result of a growth call."""

    @property
    def grown_reason(self) -> str:
        """Why it has no grown picture; empty when it has one."""

    @property
    def picture_bytes(self) -> int:
        """Size of its pictures together."""


GrownT = TypeVar("GrownT", bound=Grown)


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
    }
)
"""`outcome` in the log by the code a call ended with."""


@dataclass(slots=True)
class _Account:
    """What log, metrics and traces say of one call; never a byte of a picture."""

    method: str
    bytes_in: int
    began_s: float
    trace: CallTrace
    stages: Sequence[StageTime] = ()
    bytes_out: int = 0
    grown_reasons: list[str] = field(default_factory=list)
    """Of the pictures that a growth call went without, in order."""

    def write(self, code: grpc.StatusCode, reason: str, took_s: float) -> None:
        """Its line in the log."""
        growth = {"grown_reasons": self.grown_reasons} if self.grown_reasons else {}
        log.info(
            "call",
            method=self.method,
            outcome=OUTCOMES[code],
            reason=reason,
            duration_ms=round(took_s * 1000.0, 1),
            stage_ms=stage_ms(self.stages),
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            **growth,
        )


class Calls:
    """Every call ends with an answer or a status: no CancelledError leaves it, or the client would wait for ever."""

    def __init__(
        self,
        engine: Engine,
        runner: Runner,
        monitor: HealthMonitor,
        drain: Drain,
        thresholds: Thresholds,
        *,
        tally: Tally,
        collector: Collector | None,
    ) -> None:
        self._tally = tally
        self._collector = collector
        self._engine = engine
        self._runner = runner
        self._monitor = monitor
        self._drain = drain
        self._thresholds = thresholds
        self._handlers: set[asyncio.Task[Any] | None] = set()
        """Those that wait for their thread, or for their caller to take a message."""
        self._backlog = Backlog()
        self._cutting_off = False

    async def wait_ended(self) -> None:
        """Until no thread computes for a call, and every answer is on its way."""
        await self._runner.wait_free()
        await self._backlog.wait_empty()

    async def answer(
        self,
        method: str,
        data: bytes,
        context: Context,
        *,
        prepare: Callable[[], Work[T]],
        encode: Callable[[T], MessageT],
    ) -> MessageT:
        """Run one call; `prepare` checks parameters and raises `Refusal`, `encode` makes the answer."""

        async def handle(call: CallIdentity, account: _Account, waiting: Waiting) -> MessageT:
            running = self._start(call, data, prepare(), context)
            with self._handling(running, context):
                ended = await running.result()
            account.stages = ended.stages
            response = encode(ended.answer())
            account.bytes_out = waiting.unread_bytes = _size_of(response)
            return response

        return await self._accounted(method, data, context, handle)

    async def stream(
        self,
        method: str,
        data: bytes,
        context: Context,
        *,
        prepare: Callable[[Callable[[GrownT], None]], Work[T]],
        encode: Callable[[Moved | GrownT], MessageT],
        encode_end: Callable[[T], MessageT],
    ) -> None:
        """Run one growth call; `prepare` is given what takes its results, the moment each is finished.

        Only what `encode_end` makes says that the answer is whole. Who reads slowly holds up neither thread nor slot.
        """

        async def handle(call: CallIdentity, account: _Account, waiting: Waiting) -> None:
            async def write(message: MessageT) -> None:
                account.bytes_out += _size_of(message)
                lost = self._lose_later(context, waiting)
                try:
                    await context.write(message)
                finally:
                    lost.cancel()

            def grown(result: GrownT) -> None:
                waiting.unread_bytes += result.picture_bytes
                self._monitor.growth_ended(result.grown_reason)
                if result.grown_reason == GrowthReason.GROWTH_FAILED:
                    self._runner.suspect()
                if result.grown_reason:
                    account.grown_reasons.append(result.grown_reason)

            feed = Feed[GrownT](self._thresholds.progress_gap_s, grown)
            running = self._start(call, data, prepare(feed.emit), context, feed.move)
            running.when_ended(feed.close)
            with self._handling(running, context):
                async for event in feed.read():
                    await write(encode(event))
                    if not isinstance(event, Moved):
                        waiting.unread_bytes -= event.picture_bytes
                ended = await running.result()
                account.stages = ended.stages
                await write(encode_end(ended.answer()))

        await self._accounted(method, data, context, handle)

    async def cut_off(self, timeout_s: float) -> None:
        """End every handler that still waits: the callers are told, the threads see the flag.

        One whose connection takes nothing any more is left after `timeout_s`.
        """
        self._cutting_off = True
        handlers = {handler for handler in self._handlers if handler}
        for handler in handlers:
            handler.cancel()
        if handlers:
            await asyncio.wait(handlers, timeout=timeout_s)

    async def _accounted(
        self,
        method: str,
        data: bytes,
        context: Context,
        handle: Callable[[CallIdentity, _Account, Waiting], Awaitable[T]],
    ) -> T:
        call = identify(method, context)
        trace = CallTrace.of(context.invocation_metadata() or (), traced=self._collector is not None)
        structlog.contextvars.bind_contextvars(trace_id=trace.own.trace_id)
        account = _Account(method, len(data), time.monotonic(), trace)
        waiting = self._backlog.begin()
        # The stubs have a class where a function is meant.
        context.add_done_callback(lambda _ended: self._backlog.end(waiting))  # type: ignore[arg-type]
        try:
            result = await handle(call, account, waiting)
        except Refusal as caught:
            refusal = caught
        except Exception:
            log.exception("handler_raised")
            refusal = Refusal(WorkerReason.WORKER_FAILED)
        else:
            self._lose_later(context, waiting)
            self._close(account, grpc.StatusCode.OK)
            return result
        self._lose_later(context, waiting)
        self._backlog.refuse(waiting)
        self._close(account, refusal.code, refusal.reason)
        return await _refuse(context, refusal, call.request_id)

    def _lose_later(self, context: Context, waiting: Waiting) -> asyncio.TimerHandle:
        """What is sent now has so long to be taken; then the caller's connection is shut, which ends the RPC."""

        def lose() -> None:
            peer = context.peer()
            log.warning("answer_not_read", unread_bytes=waiting.unread_bytes, peer=address_of(peer))
            shut(peer)

        lost = asyncio.get_running_loop().call_later(self._thresholds.unread_s, lose)
        context.add_done_callback(lambda _ended: lost.cancel())  # type: ignore[arg-type]
        return lost

    def _close(self, account: _Account, code: grpc.StatusCode, reason: str = "") -> None:
        """It is over: the one place from which log, metrics and traces hear of it."""
        ended_s = time.monotonic()
        account.write(code, reason, ended_s - account.began_s)
        self._tally.call_ended(account.method, code.name, ended_s - account.began_s, account.stages)
        if self._collector is not None:
            self._collector.tell(account.trace.spans(account.method, code, account.began_s, ended_s, account.stages))

    def _start(
        self,
        call: CallIdentity,
        data: bytes,
        work: Work[T],
        context: Context,
        on_move: Callable[[Position], None] | None = None,
    ) -> Running[T]:
        """Take the slot and let the thread work; raises `Refusal` when the call may not start."""
        refusal = admit(
            refusing=self._drain.phase is DrainPhase.REFUSING,
            health=self._monitor.report(),
            remaining_s=context.time_remaining(),
            slot=self._runner.slot,
            busy_for_s=self._runner.busy_for_s(),
            unread_bytes=self._backlog.unread_bytes,
            thresholds=self._thresholds,
        )
        if refusal:
            raise refusal

        async def compute(progress: JobProgress) -> T:
            progress.on_move = on_move
            return await self._engine.call(work, progress)

        return self._runner.start(call, data, compute)

    @contextmanager
    def _handling(self, running: Running[T], context: Context) -> Iterator[None]:
        """However it is left, nobody waits for `running` any more."""
        handler = asyncio.current_task()
        self._handlers.add(handler)
        try:
            yield
        except (asyncio.CancelledError, aio.BaseError):  # the latter: what was written cannot be sent any more
            raise self._why_cut_off(context) from None
        finally:
            self._handlers.discard(handler)
            running.give_up()

    def _why_cut_off(self, context: Context) -> Refusal:
        remaining_s: float | None = context.time_remaining()
        if remaining_s is not None and remaining_s <= self._thresholds.deadline_slack_s:
            return Refusal(DEADLINE)
        if self._cutting_off:
            return Refusal(WorkerReason.DRAINING)
        return Refusal(CANCELLED)


def _size_of(message: Message) -> int:
    """Bytes on the wire; raises `Refusal` for what would not be sent, and said to be ok here."""
    size = message.ByteSize()
    if size > MAX_MESSAGE_BYTES:
        log.error("answer_too_large", bytes=size, max_bytes=MAX_MESSAGE_BYTES)
        raise Refusal(WorkerReason.WORKER_FAILED)
    return size


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
