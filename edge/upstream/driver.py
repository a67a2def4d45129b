"""The shell of the pool: sole owner of clock and channels. Feeds events in, carries decisions out.

Everything runs on one event loop. A call with a free worker costs the pool's decision and the RPC: no task, no timer,
no thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import secrets
import time
from collections.abc import Coroutine, Iterable, Mapping
from functools import partial

import grpc
from google.protobuf.message import Message

from edge.calls import Call, CallFailedError, ContactSnapshot, OnlineCounts, Outcome
from edge.pool import events as ev
from edge.pool.config import NAME_PREFIX, RETRY_AFTER_MIN_S, PoolConfig
from edge.pool.manager import Pool
from edge.pool.snapshot import PoolSnapshot
from edge.upstream.attempt import Reply
from edge.upstream.call_log import CallLog
from edge.upstream.cancelled import task_is_cancelled
from edge.upstream.channel import Certificates, ChannelSecurity, Link, check_password, host_of
from edge.upstream.contact import Contact
from edge.upstream.desk import Desk
from edge.upstream.failure import failure
from edge.upstream.fingerprints import Fingerprints
from edge.upstream.heart import Heart
from edge.upstream.home import Home
from edge.upstream.passwords import Passwords
from edge.upstream.refusal import Refusal
from edge.upstream.resolver import Resolver, Resolving
from edge.upstream.tally import MeshFigures, Tally

TIMER_SLACK_S = 0.001
"""uvloop's timers count whole ms and may ring that much too early: the pool would ask for the same moment again."""


class Driver:
    """`edge.calls.Mesh` over real channels.

    `seed` fixes the jitter of probes and cooldowns (tests). Raises `ChannelSecurityError` for a password, a file or a
    target that cannot work. Make it, `await start()`, use it, `await close()`, all on one event loop: another one gets
    `OtherLoopError`.
    """

    def __init__(
        self,
        config: PoolConfig,
        password: str,
        security: ChannelSecurity | None = None,
        *,
        seed: int | None = None,
        resolving: Resolving | None = None,
    ) -> None:
        self._config = config
        self._security = security or ChannelSecurity()
        self._passwords = Passwords(password)
        self._certificates = _check(config, self._security)
        self._fingerprints = Fingerprints()
        self._call_log = CallLog()
        self._tally = Tally()
        self._resolver = Resolver(resolving or Resolving(), self._tell_targets)
        self._edge_id = secrets.token_hex(4)
        self._pool = Pool(config, seed=seed, edge_id=self._edge_id)
        self._home = Home()
        self._reconfiguring = asyncio.Lock()
        self._targets = self._resolver.targets(config, self._security)
        self._server_names: dict[str, str] = {}
        """By endpoint: whom its certificate must be for, when it was found by a name; else empty."""
        self._contacts: dict[str, Contact] = {}
        self._closing: set[grpc.aio.Channel] = set()
        self._longest_rpc_s = _longest_rpc_s(config)
        """Of all configurations there were: calls that began under an earlier one may still run."""
        self._desks: dict[str, Desk] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._heart = Heart(lambda now_s, slept_s: self._feed(ev.Woke(now_s, slept_s)))
        self._unprobed: set[str] = set()
        """Endpoints, and names, whose first answer is awaited."""
        self._first_round = asyncio.Event()
        self._closed = False
        self._windup: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        """The pool's states; never the password."""
        return f"<Driver {self._edge_id} {self._pool!r}>"

    @property
    def edge_id(self) -> str:
        """With it the id of every call from here begins, at workers and in their logs."""
        return self._edge_id

    async def start(self) -> None:
        """Resolve, probe and watch; returns when each worker was probed once, at most after the probe timeout."""
        self._home.settle()
        names = [worker for worker in self._config.workers if worker.startswith(NAME_PREFIX)]
        self._unprobed.update(names)
        self._heart.beat()
        self._feed(ev.Started(time.monotonic()))
        with contextlib.suppress(TimeoutError):  # whoever has not answered by then is named in the log
            async with asyncio.timeout(self._config.health.timeout_seconds):
                await self._resolver.look_up(names)
                self._probed(*names)
                await self._first_round.wait()
        self._feed(ev.StartupOver(time.monotonic()))
        if not self._closed:
            self._spawn(self._resolver.keep_looking(lambda: self._config.workers))

    async def reconfigure(self, config: PoolConfig, password: str, security: ChannelSecurity) -> None:
        """Go on with other settings, without losing a call. Raises `ChannelSecurityError` before anything changes.

        New names are resolved first. Another password is used at once, and the present one where a worker does not know
        it yet. Where certificates or files hold something else, every channel is made anew; calls end on the old ones.
        """
        self._home.check()
        async with self._reconfiguring:
            check_password(password)
            certificates = _check(config, security)
            await self._resolver.look_up(config.workers)
            if self._closed:
                return
            password_changed = self._passwords.change(password)
            self._config, self._security = config, security
            self._longest_rpc_s = max(self._longest_rpc_s, _longest_rpc_s(config))
            self._set_targets()
            if certificates != self._certificates:
                self._certificates = certificates
                self._renew_channels()
            self._feed(ev.Configured(time.monotonic(), config, self._targets))
            if password_changed:
                self._feed(ev.PasswordChanged(time.monotonic()))

    async def close(self) -> None:
        """Stop probing and watching, end every call with NO_WORKER, close the channels.

        Cancelled, it goes on all the same: nobody is left waiting for a closed driver.
        """
        self._closed = True
        self._first_round.set()
        self._heart.stop()
        if self._alarm is not None:
            self._alarm.cancel()
        for call_id, desk in self._desks.items():
            desk.put(ev.Fail(call_id, "NO_WORKER", RETRY_AFTER_MIN_S, "", 0, 0.0))
        channels = [*self._closing, *(contact.end().channel for contact in self._contacts.values())]
        for task in self._tasks:
            task.cancel()
        self._windup = asyncio.get_running_loop().create_task(self._wind_up(channels))
        await asyncio.shield(self._windup)

    async def _wind_up(self, channels: Iterable[grpc.aio.Channel]) -> None:
        await asyncio.gather(*self._tasks, self._resolver.close(), return_exceptions=True)
        await asyncio.gather(*(channel.close() for channel in channels))

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

    def figures(self) -> MeshFigures:
        """The same in numbers, and what was counted since the start."""
        return MeshFigures(self._pool.figures(), self._tally)

    def probes_late_s(self) -> float:
        """By how much the latest probe is late, in s: whether the pool goes on."""
        return self._pool.probes_late_s(time.monotonic())

    def contacts(self) -> Mapping[str, ContactSnapshot]:
        """By endpoint: what the pool does not know of it."""
        return {endpoint: contact.snapshot() for endpoint, contact in self._contacts.items()}

    async def call(self, call: Call) -> Outcome:
        """Run `call` on a worker; raises `CallFailedError`. Cancelling cancels the RPC, or leaves the queue.

        `call.method` is an RPC of `AnalyzeService`, else `KeyError`.
        """
        if self._closed:
            raise CallFailedError("NO_WORKER", retry_after_s=RETRY_AFTER_MIN_S)
        self._home.check()
        self._calls += 1
        call_id = call.trace.call_id = f"{self._edge_id}-{self._calls}"
        trace = call.trace
        trace.submitted_s = time.monotonic()
        self._call_log.begins(call_id, call.request_id, trace.context.trace_id)
        desk = self._desks[call_id] = Desk()
        answer: Reply | Refusal | None = None
        attempts = 0
        try:
            self._feed(self._submitted(call, call_id))
            self._tell_queued(call, desk, call_id, 1)
            while isinstance(word := await desk.take(), ev.Start):
                attempts += 1
                trace.workers.append(word.endpoint)
                answer = await self._attempt(call, word, attempts)
                self._feed(self._ended(call, call_id, answer))
                self._tell_queued(call, desk, call_id, attempts + 1)
        finally:
            del self._desks[call_id]
            if desk.open:
                self._feed(ev.CallGone(time.monotonic(), call_id))
            settled = attempts == 0 or (attempts == 1 and isinstance(answer, Reply))
            self._call_log.ends(call_id, settled=settled)
        self._tally.call_ended(word.queue_s, slow=call.slow)
        if isinstance(word, ev.Finish) and isinstance(answer, Reply):
            return Outcome(answer.response, word.endpoint, word.attempts, word.queue_s, answer.results)
        raise failure(word, answer)

    def _submitted(self, call: Call, call_id: str) -> ev.Submitted:
        return ev.Submitted(
            now_s=time.monotonic(),
            call_id=call_id,
            slow=call.slow,
            timeout_s=call.timeout_s,
            size_bytes=0 if self._pool.has_room(slow=call.slow) else call.message.ByteSize(),
            capability=call.capability,
            input_key=self._fingerprints.of_input(call.message) if self._pool.minds_inputs else "",
            client_key=self._fingerprints.of_client(call.client),
        )

    def _ended(self, call: Call, call_id: str, answer: Reply | Refusal) -> ev.CallEnded:
        if isinstance(answer, Reply):
            return ev.CallEnded(time.monotonic(), call_id)
        return ev.CallEnded(
            now_s=time.monotonic(),
            call_id=call_id,
            code=answer.code,
            reason=answer.reason,
            retry_after_s=answer.retry_after_s,
            input_key=self._fingerprints.of_input(call.message),
            transport=answer.transport,
        )

    async def _attempt(self, call: Call, start: ev.Start, number: int) -> Reply | Refusal:
        """One attempt: the worker's answer, or how it failed."""
        progressed = partial(self._progressed, call, start.call_id, number)
        began_s = time.monotonic()
        traceparent = call.trace.attempt_begins(call.method, start.endpoint, began_s)
        code = ev.Code.CANCELLED
        try:
            contact = self._contacts[start.endpoint]
            answer = await contact.run(call, start.call_id, start.timeout_s, progressed, traceparent=traceparent)
            code = answer.code if isinstance(answer, Refusal) else ev.Code.OK
        except asyncio.CancelledError:
            if task_is_cancelled():
                raise
            code = ev.Code.UNAVAILABLE
            return Refusal(code)  # the channel was closed
        else:
            return answer
        finally:
            now_s = time.monotonic()
            self._tally.attempt_ended(call.method, code, now_s - began_s)
            call.trace.attempt_ended(code, now_s)

    def _tell_queued(self, call: Call, desk: Desk, call_id: str, attempt: int) -> None:
        """The call is not over: it waits for its next attempt, or has a worker already."""
        if call.on_queued is not None and desk.open:
            call.on_queued(self._pool.ahead_of(call_id), attempt)

    def _progressed(self, call: Call, call_id: str, number: int, message: Message) -> None:
        self._feed(ev.CallProgressed(time.monotonic(), call_id))
        if call.on_progress is not None:
            call.on_progress(message, number)

    def _feed(self, event: ev.Event) -> None:
        """The only way into the pool, and out of it. What there is to say comes last: nothing waits for words."""
        if self._closed:
            return
        self._heart.look(event.now_s)
        lines: list[ev.Log] = []
        for decision in self._pool.handle(event):
            if isinstance(decision, (ev.Start, ev.Finish, ev.Fail)):
                self._desks[decision.call_id].put(decision)
            elif isinstance(decision, ev.Log):
                lines.append(decision)
            else:  # what the driver does of its own is no part of the request that happened to bring it about
                contextvars.Context().run(self._carry_out, decision)
        for line in lines:
            self._tally.heard(line)
            contextvars.Context().run(self._call_log.write, line)

    def _carry_out(self, decision: ev.Decision) -> None:
        match decision:
            case ev.Wake(at_s):
                if self._alarm is not None:
                    self._alarm.cancel()
                delay_s = max(0.0, at_s - time.monotonic()) + TIMER_SLACK_S
                self._alarm = asyncio.get_running_loop().call_later(delay_s, self._tick)
            case ev.Open(endpoint):
                self._contacts[endpoint] = Contact(
                    self._link(endpoint), self._passwords, emit=self._hear, spawn=self._spawn
                )
                self._unprobed.add(endpoint)
            case ev.Close(endpoint):
                self._retire_channel(self._contacts.pop(endpoint).end().channel)
                self._probed(endpoint)
            case ev.Probe(endpoint):
                self._contacts[endpoint].probe(self._config.health.timeout_seconds)
            case ev.AskStatus(endpoint):
                self._contacts[endpoint].ask_status()

    def _tick(self) -> None:
        self._feed(ev.Tick(time.monotonic()))

    def _hear(self, event: ev.Event) -> None:
        """What probes and streams tell."""
        self._feed(event)
        if isinstance(event, ev.ProbeEnded):
            self._probed(event.endpoint)

    def _probed(self, *awaited: str) -> None:
        """The first answer of these is there, or will not come."""
        self._unprobed.difference_update(awaited)
        if not self._unprobed:
            self._first_round.set()

    # Targets and channels

    def _tell_targets(self) -> None:
        """Names stand for something else than before."""
        if self._set_targets() and not self._closed:
            self._feed(ev.Configured(time.monotonic(), self._config, self._targets))

    def _set_targets(self) -> bool:
        """Put together what addresses and names say now; whether it is another set than before."""
        before, self._targets = self._targets, self._resolver.targets(self._config, self._security)
        old = {each: name for each, name in self._server_names.items() if each in self._contacts}
        self._server_names = old | {each.address: host_of(each.name) for each in self._targets}
        return self._targets != before

    def _link(self, endpoint: str) -> Link:
        return Link.open(endpoint, self._certificates, self._server_names.get(endpoint, ""))

    def _renew_channels(self) -> None:
        """Go on over new ones; the old ones live until the calls on them have ended."""
        for endpoint, contact in self._contacts.items():
            self._retire_channel(contact.renew(self._link(endpoint)).channel, grace_s=self._longest_rpc_s)

    def _retire_channel(self, channel: grpc.aio.Channel, *, grace_s: float | None = None) -> None:
        self._closing.add(channel)
        self._spawn(self._close_channel(channel, grace_s))

    async def _close_channel(self, channel: grpc.aio.Channel, grace_s: float | None) -> None:
        await channel.close(grace_s)
        self._closing.discard(channel)

    # Tasks

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


def _check(config: PoolConfig, security: ChannelSecurity) -> Certificates | None:
    """What `security` names, read; raises `ChannelSecurityError` when files or targets cannot be used with it."""
    for target in config.workers:
        security.check_target(target)
    return security.read()


def _longest_rpc_s(config: PoolConfig) -> float:
    """How long an RPC that ends, a call or a probe, may take, in s."""
    attempts_s = (config.dispatch.attempt_timeout_s(slow=slow) for slow in (False, True))
    return max(config.health.timeout_seconds, *attempts_s)
