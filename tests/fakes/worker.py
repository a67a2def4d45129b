"""A scripted worker: `hair.analysis.v1`, `grpc.health.v1` and `hair.worker.v1` over a real socket, without any vision.

In a test's own loop:

    worker = FakeWorker()
    await worker.start()
    worker.script.append(Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"))  # the next call; then `worker.default`
    hold = worker.hold()                     # the next call but one computes until `hold.release.set()`
    await hold.started.wait()

As a process of its own, to be killed, frozen or measured: `python -m tests.fakes.worker --port 0 --png-bytes 300000`
writes one JSON line (`address`, `pid`) when it serves; see `tests.fakes.worker_process`.

Like a real worker it computes one call at a time, and the slot follows the computing, not the RPC: a call whose client
has left keeps the slot until it is computed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from hair.worker.v1 import worker_service_pb2 as worker_pb2
from hair.worker.v1 import worker_service_pb2_grpc

from hairmesh import wire
from tests.fakes.answers import (
    BUSY,
    DRAINING,
    Answer,
    Behaviour,
    Context,
    Grow,
    Hold,
    Refuse,
    abort,
    growth,
    measure_response,
    png,
    progress,
    response,
)

__all__ = [
    "BUSY",
    "DRAINING",
    "PASSWORD",
    "Answer",
    "Behaviour",
    "FakeWorker",
    "Grow",
    "Hold",
    "Refuse",
    "SeenCall",
    "measure_response",
    "png",
]

PASSWORD = "loopback-secret"
STATUS_THROTTLE_S = 0.02
"""Shortest time between two messages of one status stream."""
FAST, SLOW = ("Measure", "DesignHairlines", "SegmentFace"), ("GrowStyles", "GrowRegion")

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


Work = asyncio.Task[Answer | Refuse] | asyncio.Task[Answer | Refuse | None]


@dataclass(frozen=True, slots=True)
class SeenCall:
    """A call as it arrived, before any refusal."""

    method: str
    request: bytes = field(repr=False)
    metadata: Mapping[str, str | bytes] = field(repr=False)
    time_left_s: float | None
    peer: str
    """Address and port of the connection it came over."""

    @property
    def call_id(self) -> str:
        """`x-call-id`."""
        return str(self.metadata.get(wire.CALL_ID_KEY, ""))


class FakeWorker:
    """One worker. Everything a test may set or look at is a plain attribute."""

    def __init__(
        self,
        *,
        password: str = PASSWORD,
        default: Behaviour | None = None,
        credentials: grpc.ServerCredentials | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.password = password
        self.former_password = ""
        """Accepted as well, unless empty."""
        self.credentials = credentials
        """TLS; None: plaintext."""
        self.host = host
        """Any address of this machine: several workers can have the same port on different ones."""
        self.default: Behaviour = default or Answer()
        self.script: deque[Behaviour] = deque()
        """What the next calls do, one each; then `default`, or `growth` for the slow ones."""
        self.growth: Behaviour = Grow()
        self.probe_script: deque[bool | grpc.StatusCode | float] = deque()
        """What the next `Check`s do, one each: say SERVING or not, fail, or hang for seconds; then the truth."""
        self.serving = True
        """What health says; change it with `tell`."""
        self.cause = ""
        self.watch_tells = True
        """Whether a change of `serving` shows on the health stream, and on the status stream."""
        self.capabilities = ["measure"]
        self.lacks: dict[str, str] = {}
        """Capabilities that it says it has not, and why."""
        """What status says that it can do; shown with the next change."""
        self.refuses: Refuse | None = None
        """Refuse every new call like this, before the slot is looked at."""

        self.address = ""
        self.boot_id = ""
        self.seen: list[SeenCall] = []
        self.probes = 0
        self.computing_most = 0
        """Most calls that ever computed at once."""

        self._server: grpc.aio.Server | None = None
        self._listeners: set[asyncio.Event] = set()
        self._computing: set[Work] = set()
        self._epoch = 0
        self._slot_call = ""
        self._slot_method = ""
        self._stage = ""
        self._steps = 0
        self._abandoned = False

    # Life

    async def start(self, port: int = 0) -> None:
        """Serve on loopback; a second start serves on the same port as a new process would."""
        port = port or (int(self.address.rpartition(":")[2]) if self.address else 0)
        self.boot_id, self._epoch, self._slot_call, self._steps = uuid4().hex, 0, "", 0
        self.serving, self.cause, self.refuses = True, "", None
        self._server = grpc.aio.server(options=wire.SERVER_OPTIONS)
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            **{name: grpc.unary_unary_rpc_method_handler(self._fast(name)) for name in FAST},
            **{name: grpc.unary_stream_rpc_method_handler(self._slow(name)) for name in SLOW},
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(wire.ANALYZE_SERVICE, handlers),))
        health_pb2_grpc.add_HealthServicer_to_server(_Health(self), self._server)
        worker_service_pb2_grpc.add_WorkerServiceServicer_to_server(_Status(self), self._server)
        if self.credentials is None:
            port = self._server.add_insecure_port(f"{self.host}:{port}")
        else:
            port = self._server.add_secure_port(f"{self.host}:{port}", self.credentials)
        self.address = f"{self.host}:{port}"
        await self._server.start()

    async def stop(self, *, grace_s: float | None = None) -> None:
        """End at once, or after the running call, but within `grace_s`."""
        if self._server is None:
            return
        server, self._server = self._server, None
        await server.stop(grace_s)
        for work in self._computing:
            work.cancel()
        await asyncio.gather(*self._computing, return_exceptions=True)

    async def drain(self, *, delay_s: float = 0.05, grace_s: float = 10.0) -> None:
        """What SIGTERM does: NOT_SERVING at once, serve on for `delay_s`, then refuse, finish the running call, end."""
        self.tell(serving=False, cause="draining")
        await asyncio.sleep(delay_s)
        self.refuses = DRAINING
        if self._computing:
            await asyncio.wait(self._computing, timeout=grace_s)
        await self.stop(grace_s=0.05)  # streams last for all of it

    # Behaviour

    def tell(self, *, serving: bool, cause: str = "") -> None:
        """Change what health and status say, and say so on their streams."""
        self.serving, self.cause = serving, "" if serving else cause
        if self.watch_tells:
            self._changed()

    def hold(self, then: Answer | Refuse | None = None) -> Hold:
        """Have the next unscripted call compute until released."""
        held = Hold(then=then or Answer())
        self.script.append(held)
        return held

    @property
    def watchers(self) -> int:
        """Health and status streams that are open."""
        return len(self._listeners)

    @property
    def computing(self) -> int:
        """Calls that compute now, with or without a client."""
        return len(self._computing)

    @property
    def computes_for_nobody(self) -> bool:
        """Whether the client of the running call has left."""
        return self._abandoned

    # Calls

    def _fast(self, method: str) -> Callable[[bytes, Context], object]:
        async def handler(request: bytes, context: Context) -> bytes:
            behaviour, call = await self._admit(method, request, context, self.default)
            if isinstance(behaviour, Answer) and behaviour.after_s == 0.0:
                self.computing_most = max(self.computing_most, 1)
                return response(method, behaviour)
            work = asyncio.create_task(self._compute(behaviour))
            self._occupy(work, call, "parsing")
            try:
                outcome = await asyncio.shield(work)
            finally:
                self._leave(work)
            if isinstance(outcome, Refuse):
                await abort(context, outcome)
            return response(method, outcome)

        return handler

    def _slow(self, method: str) -> Callable[[bytes, Context], object]:
        async def handler(request: bytes, context: Context) -> AsyncIterator[bytes]:
            behaviour, call = await self._admit(method, request, context, self.growth)
            messages: asyncio.Queue[bytes | None] = asyncio.Queue()
            work = asyncio.create_task(self._compute_growth(method, behaviour, messages.put_nowait))
            self._occupy(work, call, "growing")
            try:
                while (message := await messages.get()) is not None:
                    yield message
                outcome = await asyncio.shield(work)
            finally:
                self._leave(work)
            if isinstance(outcome, Refuse):
                await abort(context, outcome)

        return handler

    async def _admit(
        self, method: str, request: bytes, context: Context, default: Behaviour
    ) -> tuple[Behaviour, SeenCall]:
        """Note the call, and refuse it or say what is to be done."""
        metadata = dict(context.invocation_metadata() or ())
        call = SeenCall(method, request, metadata, context.time_remaining(), context.peer())
        self.seen.append(call)
        await self.check_password(context)
        if self.refuses is not None:
            await abort(context, self.refuses)
        if self._computing:
            await abort(context, BUSY)
        return self.script.popleft() if self.script else default, call

    async def _compute(self, behaviour: Behaviour) -> Answer | Refuse:
        """Take the time that it takes; how it ends."""
        if isinstance(behaviour, Hold):
            behaviour.started.set()
            await behaviour.release.wait()
            return await self._compute(behaviour.then)
        if isinstance(behaviour, Grow):
            raise TypeError("a fast call does not grow hair")
        if behaviour.after_s:
            await asyncio.sleep(behaviour.after_s)
        return behaviour

    async def _compute_growth(
        self, method: str, behaviour: Behaviour, tell: Callable[[bytes | None], None]
    ) -> Answer | Refuse | None:
        """Tell the messages, None at their end; a refusal ends them."""
        try:
            if not isinstance(behaviour, Grow):
                outcome = await self._compute(behaviour)
                if isinstance(outcome, Refuse):
                    return outcome
                behaviour = Grow(steps=0, png_bytes=outcome.png_bytes)
            for step in range(behaviour.steps + 1):
                if behaviour.midway is not None and step == behaviour.midway_at:
                    outcome = await self._compute(behaviour.midway)
                    if isinstance(outcome, Refuse):
                        return outcome
                if step < behaviour.steps:
                    await asyncio.sleep(behaviour.step_s)
                    self._step()
                    tell(progress(method, step + 1, behaviour))
            for message in growth(method, behaviour):
                tell(message)
            return None
        finally:
            tell(None)

    def _occupy(self, work: Work, call: SeenCall, stage: str) -> None:
        self._epoch += 1
        self._slot_call, self._slot_method, self._stage, self._abandoned = call.call_id, call.method, stage, False
        self._computing.add(work)
        self.computing_most = max(self.computing_most, len(self._computing))
        work.add_done_callback(self._vacate)
        self._step()

    def _leave(self, work: Work) -> None:
        """The RPC has ended. If its client left, or the time was up, the slot stays taken."""
        if not work.done():
            self._abandoned = True
            self._changed()

    def _vacate(self, work: Work) -> None:
        self._computing.discard(work)
        self._slot_call, self._stage, self._abandoned = "", "", False
        self._changed()

    def _step(self) -> None:
        self._steps += 1
        self._changed()

    async def check_password(self, context: Context) -> None:
        """Refuse whoever does not know a password."""
        sent = dict(context.invocation_metadata() or ()).get(wire.TOKEN_KEY)
        if not sent or sent not in {self.password, self.former_password}:
            await abort(context, Refuse(grpc.StatusCode.UNAUTHENTICATED, wire.WorkerReason.WRONG_PASSWORD))

    # Health and status

    def _changed(self) -> None:
        for listener in self._listeners:
            listener.set()

    async def changes(self) -> AsyncIterator[None]:
        """Once at first, then after every change."""
        changed = asyncio.Event()
        self._listeners.add(changed)
        try:
            while True:
                yield
                await changed.wait()
                changed.clear()
        finally:
            self._listeners.discard(changed)

    def status(self) -> worker_pb2.WorkerStatus:
        """What `GetStatus` says now."""
        status = worker_pb2.WorkerStatus(boot_id=self.boot_id, live=True, cause=self.cause, device="cpu")
        if self.serving:
            status.state = worker_pb2.SERVING_STATE_SERVING
        else:
            draining = self.cause == "draining"
            status.state = worker_pb2.SERVING_STATE_DRAINING if draining else worker_pb2.SERVING_STATE_NOT_SERVING
            status.reasons.append(self.cause or "told")
        status.capabilities.extend(self.capabilities)
        for name, reason in self.lacks.items():
            status.checks.add(name=f"capability/{name}", state=worker_pb2.CHECK_STATE_FAILING, reason=reason)
        status.slot.epoch = self._epoch
        status.slot.state = worker_pb2.SLOT_STATE_FREE
        if self._computing:
            status.slot.state = worker_pb2.SLOT_STATE_ABANDONED if self._abandoned else worker_pb2.SLOT_STATE_BUSY
            status.slot.call.call_id, status.slot.call.method = self._slot_call, self._slot_method
            status.slot.call.stage, status.slot.call.step_counter = self._stage, self._steps
        return status


class _Health(health_pb2_grpc.HealthServicer):
    def __init__(self, worker: FakeWorker) -> None:
        self._worker = worker

    def _answer(self, *, serving: bool) -> health_pb2.HealthCheckResponse:
        return health_pb2.HealthCheckResponse(status=_SERVING if serving else _NOT_SERVING)

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Context) -> health_pb2.HealthCheckResponse:  # noqa: N802
        worker = self._worker
        worker.probes += 1
        if request.service == wire.ANALYZE_SERVICE:
            await worker.check_password(context)
        elif request.service:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        planned = worker.probe_script.popleft() if worker.probe_script else worker.serving
        if isinstance(planned, grpc.StatusCode):
            await context.abort(planned, "scripted")
        if isinstance(planned, float):
            await asyncio.sleep(planned)
        return self._answer(serving=bool(planned))

    async def Watch(  # noqa: N802
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        await self._worker.check_password(context)
        said: bool | None = None
        async for _ in self._worker.changes():
            if self._worker.serving is not said:
                said = self._worker.serving
                yield self._answer(serving=said)


class _Status(worker_service_pb2_grpc.WorkerServiceServicer):
    def __init__(self, worker: FakeWorker) -> None:
        self._worker = worker

    async def GetStatus(  # noqa: N802
        self, request: worker_pb2.GetStatusRequest, context: Context
    ) -> worker_pb2.GetStatusResponse:
        await self._worker.check_password(context)
        return worker_pb2.GetStatusResponse(status=self._worker.status())

    async def WatchStatus(  # noqa: N802
        self, request: worker_pb2.WatchStatusRequest, context: Context
    ) -> AsyncIterator[worker_pb2.WatchStatusResponse]:
        await self._worker.check_password(context)
        async for _ in self._worker.changes():
            yield worker_pb2.WatchStatusResponse(status=self._worker.status())
            await asyncio.sleep(STATUS_THROTTLE_S)

    async def Drain(self, request: worker_pb2.DrainRequest, context: Context) -> worker_pb2.DrainResponse:  # noqa: N802
        await self._worker.check_password(context)
        self._worker.tell(serving=False, cause="draining")
        self._worker.refuses = DRAINING
        return worker_pb2.DrainResponse(status=self._worker.status())


async def _serve(args: argparse.Namespace) -> None:
    answer = Answer(after_s=args.after_s, png_bytes=args.png_bytes)
    worker = FakeWorker(password=os.environ.get("FAKE_WORKER_PASSWORD", PASSWORD), default=answer)
    worker.growth = Grow(steps=args.steps, step_s=args.step_s)
    await worker.start(args.port)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    print(json.dumps({"address": worker.address, "pid": os.getpid()}), flush=True)
    await stopping.wait()
    await worker.drain()


def main() -> None:
    """One fake worker as a process; the password comes from FAKE_WORKER_PASSWORD. SIGTERM drains it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--png-bytes", type=int, default=2_000, help="size of the picture in every answer")
    parser.add_argument("--after-s", type=float, default=0.0, help="how long every fast call computes")
    parser.add_argument("--steps", type=int, default=3, help="progress messages of every slow call")
    parser.add_argument("--step-s", type=float, default=0.0, help="and how long each step takes")
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
