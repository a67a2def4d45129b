"""The two streams by which a worker tells of itself: health `Watch` and `WatchStatus`. Reconnecting, never deciding."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import grpc
import structlog
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from hair.worker.v1 import worker_service_pb2 as worker_pb2

from edge.pool import events as ev
from edge.pool.passive import cause_of
from edge.upstream.channel import Link
from edge.upstream.passwords import Key
from hairmesh.plain import NAME_CHARACTERS, printable
from hairmesh.wire import ANALYZE_SERVICE

log = structlog.get_logger()

REOPEN_S = 0.2
"""Wait before a broken stream is opened again, in s; doubled up to `REOPEN_MAX_S` while nothing arrives. The connection
itself follows the channel's own backoff (`hairmesh.wire.CLIENT_OPTIONS`): a stream waits for it without polling."""
REOPEN_MAX_S = 2.0

CAPABILITY_PREFIX = "capability/"
"""Of the names of checks that cost a worker a capability, and nothing else."""

_CONNECTION_LOST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN}

MessageT = TypeVar("MessageT", bound=Message)
Emit = Callable[[ev.Event], None]
Spawn = Callable[[Coroutine[object, object, None]], asyncio.Task[None]]


class Watch:
    """Both streams of one endpoint, as events.

    A broken health stream is `ConnectionLost`, at once. `ask_status` opens the status stream anew, so that what it says
    is younger than the question. A refused password is not the end while there is another.

    A worker whose status cannot be read can give no slot back: `status_problem` is for probes, which must not find it
    good.
    """

    def __init__(self, link: Link, key: Key, *, emit: Emit, spawn: Spawn) -> None:
        self._link = link
        self._key = key
        self._emit = emit
        self._spawn = spawn
        self._health: asyncio.Task[None] | None = None
        self._status: asyncio.Task[None] | None = None
        self._refused: dict[str, grpc.StatusCode] = {}
        """By stream: what the log was last told."""
        self._status_problem = ""
        """Why the status cannot be read; empty from its first message to the end of the stream."""
        self._status_judged = asyncio.Event()
        """Whether that is what came of asking."""

    def start(self) -> None:
        """Open both, unless they are."""
        if self._health is None:
            self._health = self._spawn(self._watch_health())
            self._status = self._spawn(self._watch_status())

    def stop(self) -> None:
        """Close both, for good."""
        for task in (self._health, self._status):
            if task is not None:
                task.cancel()

    def ask_status(self) -> None:
        """Forget the running status stream, whatever it may still bring, and open another."""
        if self._status is not None:
            self._status.cancel()
            self._status = self._spawn(self._watch_status())

    async def status_problem(self, timeout_s: float) -> str:
        """Why the status cannot be read, in words; empty when it can. Where it could not be, it is asked for again."""
        if self._status_problem and self._status_judged.is_set():
            self._status_judged.clear()
            self.ask_status()
        try:
            async with asyncio.timeout(timeout_s):
                await self._status_judged.wait()
        except TimeoutError:
            self._judge_status("no answer")
        return self._status_problem

    async def _watch_health(self) -> None:
        request = health_pb2.HealthCheckRequest(service=ANALYZE_SERVICE)
        target, pause_s = self._link.target, REOPEN_S

        def told(answer: health_pb2.HealthCheckResponse, _asked_s: float) -> None:
            serving = answer.status == health_pb2.HealthCheckResponse.SERVING
            self._emit(ev.HealthTold(time.monotonic(), target, serving))

        while True:
            heard, code = await self._listen(self._link.watch, request, told)
            if self._is_lost("Watch", code, heard=heard):
                # Also before the first message: a stream that waits for a connection does not end.
                self._emit(ev.ConnectionLost(time.monotonic(), target))
            pause_s = await _pause(pause_s, heard=heard)

    async def _watch_status(self) -> None:
        request = worker_pb2.WatchStatusRequest()
        target, pause_s = self._link.target, REOPEN_S

        def told(answer: worker_pb2.WatchStatusResponse, asked_s: float) -> None:
            self._judge_status("")
            self._emit(_told(target, asked_s, answer.status))

        while True:
            heard, code = await self._listen(self._link.watch_status, request, told)
            self._is_lost("WatchStatus", code, heard=heard)
            self._judge_status("no status" if code is None else code.name)
            self._emit(ev.StatusLost(time.monotonic(), target))
            pause_s = await _pause(pause_s, heard=heard)

    def _judge_status(self, problem: str) -> None:
        self._status_problem = problem
        self._status_judged.set()

    async def _listen(
        self,
        rpc: grpc.aio.UnaryStreamMultiCallable[Any, MessageT | None],
        request: Message,
        told: Callable[[MessageT, float], None],
    ) -> tuple[bool, grpc.StatusCode | None]:
        """One stream to its end: whether anything came, and the error that ended it."""
        heard, code = False, None
        for token in self._key.tokens():
            asked_s = time.monotonic()
            stream = rpc(request, metadata=(token,), wait_for_ready=True)
            try:
                async for answer in _readable(stream):
                    if not heard:
                        heard = True
                        self._key.worked(token)
                    told(answer, asked_s)
            except grpc.aio.AioRpcError as error:
                code = error.code()
            if heard or code is not grpc.StatusCode.UNAUTHENTICATED:
                break
        return heard, code

    def _is_lost(self, stream: str, code: grpc.StatusCode | None, *, heard: bool) -> bool:
        """Whether its connection broke, which shows in the pool; that the worker refused it is said here, once.

        Once it was heard, another refusal is news.
        """
        if heard:
            self._refused.pop(stream, None)
        if code is None or code in _CONNECTION_LOST:
            return True
        if self._refused.get(stream) is not code:
            self._refused[stream] = code
            log.warning("stream_refused", worker=self._link.target, stream=stream, code=code.name)
        return False


async def _readable(stream: grpc.aio.UnaryStreamCall[Any, MessageT | None]) -> AsyncIterator[MessageT]:
    """Its messages, up to the first whose bytes are no such message: there it ends, as broken as any other."""
    async for answer in stream:
        if answer is None:
            stream.cancel()
            return
        yield answer


async def _pause(pause_s: float, *, heard: bool) -> float:
    """Wait before opening a stream again; how long to wait the next time."""
    if heard:
        pause_s = REOPEN_S
    await asyncio.sleep(pause_s)
    return min(2 * pause_s, REOPEN_MAX_S)


def _told(target: str, asked_s: float, status: worker_pb2.WorkerStatus) -> ev.StatusTold:
    """A status message as an event, what the worker calls itself and says of itself as harmless text."""
    serving = status.state == worker_pb2.SERVING_STATE_SERVING
    draining = status.state == worker_pb2.SERVING_STATE_DRAINING
    slot = status.slot
    return ev.StatusTold(
        now_s=time.monotonic(),
        endpoint=target,
        asked_s=asked_s,
        boot_id=printable(status.boot_id, NAME_CHARACTERS),
        cause=None if serving else ev.Cause.DRAINING if draining else cause_of(status.cause),
        evidence=printable(", ".join(status.reasons)),
        taken=slot.state in {worker_pb2.SLOT_STATE_BUSY, worker_pb2.SLOT_STATE_ABANDONED},
        call_id=printable(slot.call.call_id, NAME_CHARACTERS),
        stage=printable(slot.call.stage, NAME_CHARACTERS),
        steps=slot.call.step_counter,
        capabilities=frozenset(status.capabilities),
        lacks={
            printable(check.name.removeprefix(CAPABILITY_PREFIX), NAME_CHARACTERS): printable(check.reason)
            for check in status.checks
            if check.name.startswith(CAPABILITY_PREFIX) and check.state == worker_pb2.CHECK_STATE_FAILING
        },
    )
