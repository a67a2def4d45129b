"""The shell of the pool: sole owner of clock and channels. Feeds events in, carries decisions out.

Everything runs on one event loop. A call with a free worker costs the pool's decision and the RPC: no task, no timer,
no thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import secrets
import time
from collections.abc import Coroutine

import grpc
import structlog
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

from edge.calls import Call, CallFailedError, OnlineCounts, Outcome
from edge.pool import events as ev
from edge.pool.config import RETRY_AFTER_MIN_S, PoolConfig
from edge.pool.manager import Pool
from edge.pool.snapshot import PoolSnapshot
from edge.upstream.channel import ChannelSecurity, Link, check_password
from edge.upstream.refusal import Refusal, read
from edge.upstream.watch import Watch
from hairmesh import wire

log = structlog.get_logger()

_PROBE_RESULTS = {
    grpc.StatusCode.UNAVAILABLE: ev.ProbeResult.UNREACHABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: ev.ProbeResult.TIMEOUT,
    grpc.StatusCode.UNAUTHENTICATED: ev.ProbeResult.AUTH,
}
"""What a failed `Check` means; every other code is an ERROR."""


_CHECK = health_pb2.HealthCheckRequest(service=wire.ANALYZE_SERVICE)
_SERVING = health_pb2.HealthCheckResponse.SERVING
_STATUS_NAMES = {number: name for name, number in health_pb2.HealthCheckResponse.ServingStatus.items()}


class _Desk:
    """Where the pool's word to one call arrives."""

    __slots__ = ("_future", "_word", "open")

    def __init__(self) -> None:
        self.open = True
        """Whether the pool still knows the call."""
        self._word: ev.Start | ev.Finish | ev.Fail | None = None
        self._future: asyncio.Future[None] | None = None

    def put(self, word: ev.Start | ev.Finish | ev.Fail) -> None:
        self._word = word
        self.open = type(word) is ev.Start
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def take(self) -> ev.Start | ev.Finish | ev.Fail:
        if self._word is None:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
            self._future = None
        word, self._word = self._word, None
        assert word is not None  # noqa: S101  (the future says so)
        return word


class Driver:
    """`edge.calls.Mesh` over real channels.

    `seed` fixes the jitter of probes and cooldowns (tests). Raises `ChannelSecurityError` for a password, a file or a
    target that cannot work. Make it, `await start()`, use it, `await close()`, all on one event loop.
    """

    def __init__(
        self,
        config: PoolConfig,
        password: str,
        security: ChannelSecurity | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        security = security or ChannelSecurity()
        check_password(password)
        for target in config.workers:
            security.check_target(target)
        self._credentials = security.credentials()
        self._config = config
        self._token = (wire.TOKEN_KEY, password)
        self._edge_id = secrets.token_hex(4)
        self._pool = Pool(config, seed=seed, edge_id=self._edge_id)
        self._links: dict[str, Link] = {}
        self._watches: dict[str, Watch] = {}
        self._desks: dict[str, _Desk] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._unprobed = set(config.workers)
        self._first_round = asyncio.Event()
        self._closed = False

    def __repr__(self) -> str:
        """The pool's states; never the password."""
        return f"<Driver {self._edge_id} {self._pool!r}>"

    async def start(self) -> None:
        """Probe and watch every worker; returns when each was probed once, at most after the probe timeout."""
        for target in self._config.workers:
            link = self._links[target] = Link.open(target, self._credentials)
            self._watches[target] = Watch(link, (self._token,), emit=self._feed, spawn=self._spawn)
        self._feed(ev.Started(time.monotonic()))
        with contextlib.suppress(TimeoutError):  # whoever has not answered by then is named in the log
            async with asyncio.timeout(self._config.health.timeout_seconds):
                await self._first_round.wait()
        self._feed(ev.StartupOver(time.monotonic()))

    async def close(self) -> None:
        """Stop probing and watching, end every call with NO_WORKER, close the channels."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for call_id, desk in self._desks.items():
            desk.put(ev.Fail(call_id, "NO_WORKER", RETRY_AFTER_MIN_S, "", 0, 0.0))
        await asyncio.gather(*(link.channel.close() for link in self._links.values()))

    def online(self) -> OnlineCounts:
        """Counts from memory: the flags by which calls are dispatched."""
        endpoints = self._pool.endpoints()
        return OnlineCounts(
            total=len(endpoints),
            healthy=sum(e.online for e in endpoints),
            primary_total=sum(e.primary for e in endpoints),
            primary_healthy=sum(e.online and e.primary for e in endpoints),
        )

    def snapshot(self) -> PoolSnapshot:
        """States, causes, cooldowns, calls in flight and queue at this moment."""
        return self._pool.snapshot(time.monotonic())

    async def call(self, call: Call) -> Outcome:
        """Run `call` on a worker; raises `CallFailedError`. Cancelling cancels the RPC, or leaves the queue.

        `call.method` is a unary RPC of `AnalyzeService`, else `KeyError`.
        """
        if self._closed:
            raise CallFailedError("NO_WORKER", retry_after_s=RETRY_AFTER_MIN_S)
        self._calls += 1
        call_id = f"{self._edge_id}-{self._calls}"
        size_bytes = 0 if self._pool.has_room(slow=call.slow) else call.message.ByteSize()
        desk = self._desks[call_id] = _Desk()
        answer: Message | Refusal | None = None
        try:
            self._feed(ev.Submitted(time.monotonic(), call_id, call.slow, call.timeout_s, size_bytes))
            while isinstance(word := await desk.take(), ev.Start):
                answer = await self._attempt(call, word)
                if isinstance(answer, Refusal):
                    now_s = time.monotonic()
                    self._feed(ev.CallEnded(now_s, call_id, answer.code, answer.reason, answer.retry_after_s))
                else:
                    self._feed(ev.CallEnded(time.monotonic(), call_id))
        finally:
            del self._desks[call_id]
            if desk.open:
                self._feed(ev.CallGone(time.monotonic(), call_id))
        if isinstance(word, ev.Finish) and isinstance(answer, Message):
            return Outcome(answer, word.endpoint, word.attempts, word.queue_s)
        raise _failure(word, answer)

    async def _attempt(self, call: Call, start: ev.Start) -> Message | Refusal:
        """One RPC: the worker's answer, or how it failed."""
        metadata = (self._token, (wire.REQUEST_ID_KEY, call.request_id), (wire.CALL_ID_KEY, start.call_id))
        rpc = self._links[start.endpoint].calls[call.method]
        try:
            answer = await rpc(call.message, timeout=start.timeout_s, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            return read(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                return Refusal(ev.Code.UNAVAILABLE)  # the channel was closed, not the caller
            raise
        return Refusal(ev.Code.INTERNAL) if answer is None else answer

    def _feed(self, event: ev.Event) -> None:
        """The only way into the pool, and out of it."""
        if self._closed:
            return
        for decision in self._pool.handle(event):
            if isinstance(decision, (ev.Start, ev.Finish, ev.Fail)):
                self._desks[decision.call_id].put(decision)
            else:  # what the driver does of its own is no part of the request that happened to bring it about
                contextvars.Context().run(self._carry_out, decision)

    def _carry_out(self, decision: ev.Decision) -> None:
        match decision:
            case ev.Wake(at_s):
                if self._alarm is not None:
                    self._alarm.cancel()
                delay_s = max(0.0, at_s - time.monotonic())
                self._alarm = asyncio.get_running_loop().call_later(delay_s, self._tick)
            case ev.Log(level, event, fields):
                (log.info if level == "info" else log.warning)(event, **fields)
            case ev.Probe(endpoint):
                self._watches[endpoint].start()
                self._spawn(self._probe(endpoint))
            case ev.AskStatus(endpoint):
                self._watches[endpoint].ask_status()

    def _tick(self) -> None:
        self._feed(ev.Tick(time.monotonic()))

    async def _probe(self, endpoint: str) -> None:
        """One active check. Whatever comes back ends it: a probe that never ends would be the last."""
        result, evidence = await self._check(endpoint)
        self._feed(ev.ProbeEnded(time.monotonic(), endpoint, result, f"probe: {evidence}"))
        self._unprobed.discard(endpoint)
        if not self._unprobed:
            self._first_round.set()

    async def _check(self, endpoint: str) -> tuple[ev.ProbeResult, str]:
        """Ask for its health, with the password: what the answer means, and what it was."""
        timeout_s = self._config.health.timeout_seconds
        check = self._links[endpoint].check(_CHECK, timeout=timeout_s, metadata=(self._token,))
        try:
            answer = await check
        except grpc.aio.AioRpcError as error:
            return _PROBE_RESULTS.get(error.code(), ev.ProbeResult.ERROR), error.code().name
        if answer is None:
            return ev.ProbeResult.ERROR, "no health answer"
        state = _STATUS_NAMES.get(answer.status, f"unknown status {answer.status}")
        why = (await check.trailing_metadata()).get(wire.HEALTH_REASON_KEY)
        evidence = f"{state} {why}" if isinstance(why, str) else state
        return ev.ProbeResult.GOOD if answer.status == _SERVING else ev.ProbeResult.NOT_SERVING, evidence

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """A task of the driver's own, ended by `close`; an error in one is a bug and goes to the loop's handler."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._retire)
        return task

    def _retire(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": "a task of the pool's driver failed", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)


def _failure(word: ev.Finish | ev.Fail, answer: Message | Refusal | None) -> CallFailedError:
    """What the client hears: the worker's refusal of the input, or why the system has no answer."""
    if isinstance(word, ev.Fail):
        return CallFailedError(
            word.reason,
            details={} if word.needed_s is None else {"needed_ms": math.ceil(word.needed_s * 1000)},
            retry_after_s=word.retry_after_s,
            worker=word.endpoint,
            attempts=word.attempts,
            queue_s=word.queue_s,
        )
    assert isinstance(answer, Refusal)  # noqa: S101  (the pool finishes only what has ended)
    return CallFailedError(
        answer.reason,
        details=answer.details,
        field=answer.field,
        retry_after_s=answer.retry_after_s,
        worker=word.endpoint,
        attempts=word.attempts,
        queue_s=word.queue_s,
    )
