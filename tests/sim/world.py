"""A pool, its workers and their clients on one virtual clock, without any I/O.

The world plays the shell's part (`edge.upstream.driver`) and the workers'. At every decision it checks what must always
hold; see `World._check_start` and `World._answer`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from edge.pool import events as ev
from edge.pool.config import PoolConfig
from edge.pool.endpoint import Endpoint, State
from edge.pool.manager import Pool

LATENCY_S = 0.001
RECONNECT_S = 0.3
EDGE_ID = "edge"
OTHER_EDGE = "other-1"


@dataclass(slots=True)
class SimWorker:
    """One worker. Set its attributes to make it misbehave; `World.kill` and `World.boot` for its life."""

    target: str
    call_s: float = 0.5
    alive: bool = True
    boot: int = 1
    serving: bool = True
    """What its health says."""
    cause: ev.Cause | None = None
    probes_hang: bool = False
    fails_with: ev.Code | None = None
    """Every call ends like this, after `call_s`, though health is fine."""
    fails_because: str = ""
    drains: bool = False
    """It got SIGTERM: nothing but its end changes that."""
    refuses_with: str = ""
    """Every call is refused at once, UNAVAILABLE with this reason of the worker's own."""
    hangs: bool = False
    """Calls never end."""
    slot: str = ""
    """The call that computes, with or without a client."""
    slot_epoch: int = 0
    computed: int = 0
    streams: int = 0
    """Number of the status stream that the edge has open; 0: none."""
    asked_s: float = 0.0

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boot}"


@dataclass(slots=True)
class Client:
    """A submitted call, as its client sees it."""

    call_id: str
    slow: bool
    number: int
    submitted_s: float
    timeout_s: float | None = None
    started: list[tuple[float, str]] = field(default_factory=list)
    failed_on: set[str] = field(default_factory=set)
    running_on: str = ""
    answered_s: float | None = None
    answer: str = ""
    """`ok`, a refusal's reason, or the system's."""
    retry_after_s: float | None = None
    attempts: int = 0
    left: bool = False

    @property
    def waits(self) -> bool:
        return self.answered_s is None and not self.left and not self.running_on


class World:
    """Everything, and its clock."""

    def __init__(self, config: PoolConfig, *, seed: int = 1) -> None:
        self.config = config
        self.now_s = 0.0
        self.pool = Pool(config, seed=seed, edge_id=EDGE_ID)
        self.workers = {target: SimWorker(target) for target in config.workers}
        self.clients: dict[str, Client] = {}
        self.log: list[tuple[float, ev.Log]] = []
        self.probes: list[tuple[float, str]] = []
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._alarm = 0

    # Clock

    def start(self) -> None:
        """Streams open, first probes, and the time these take."""
        self.feed(ev.Started(self.now_s))
        for worker in self.workers.values():
            self._after(0.05, partial(self._connect, worker, worker.boot))
        self.run(self.config.health.timeout_seconds)
        self.feed(ev.StartupOver(self.now_s))

    def run(self, duration_s: float) -> None:
        """Let time pass."""
        until_s = self.now_s + duration_s
        while self._agenda and self._agenda[0][0] <= until_s:
            self.now_s, _, act = heapq.heappop(self._agenda)
            act()
        self.now_s = until_s

    def _after(self, delay_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now_s + delay_s, next(self._order), act))

    # Clients

    def submit(self, *, slow: bool = False, timeout_s: float | None = None, size_bytes: int = 0) -> Client:
        """A client calls."""
        number = len(self.clients) + 1
        client = Client(f"{EDGE_ID}-{number}", slow, number, self.now_s, timeout_s)
        self.clients[client.call_id] = client
        self.feed(ev.Submitted(self.now_s, client.call_id, slow, timeout_s, size_bytes))
        return client

    def leave(self, client: Client) -> None:
        """It goes away; the shell cancels its RPC, the worker's thread computes on."""
        if client.answered_s is None and not client.left:
            client.left, client.running_on = True, ""
            self.feed(ev.CallGone(self.now_s, client.call_id))

    # Workers

    def endpoint(self, target: str) -> Endpoint:
        """As the pool sees it."""
        return next(endpoint for endpoint in self.pool.endpoints() if endpoint.target == target)

    def kill(self, target: str) -> None:
        """SIGKILL: its calls fail, its connections break."""
        worker = self.workers[target]
        if not worker.alive:
            return
        worker.alive, worker.slot = False, ""
        worker.slot_epoch += 1
        streamed, worker.streams = worker.streams, 0
        for client in self.clients.values():
            if client.running_on == target:
                self._end_later(client, LATENCY_S, ev.Code.UNAVAILABLE)
        if streamed:
            self._after(LATENCY_S, lambda: self.feed(ev.ConnectionLost(self.now_s, target)))
            self._after(LATENCY_S, lambda: self.feed(ev.StatusLost(self.now_s, target)))

    def boot_up(self, target: str) -> None:
        """A new process at the same address, in good health."""
        worker = self.workers[target]
        if worker.alive:
            return
        worker.alive, worker.boot, worker.drains = True, worker.boot + 1, False
        self.heal(target)
        self._after(RECONNECT_S, lambda: self._connect(worker, worker.boot))

    def heal(self, target: str) -> None:
        """Whatever was wrong is over; a call that hangs and a worker that drains stay so until the process ends."""
        worker = self.workers[target]
        if worker.drains:
            return
        worker.probes_hang, worker.fails_with, worker.fails_because = False, None, ""
        worker.refuses_with, worker.hangs = "", False
        if not worker.serving:
            self.tell(target, serving=True)

    def tell(self, target: str, *, serving: bool, cause: ev.Cause | None = None) -> None:
        """Its health changes, and both streams say so."""
        worker = self.workers[target]
        if worker.drains:
            return
        worker.serving, worker.cause = serving, None if serving else cause
        if worker.streams:
            self._after(LATENCY_S, lambda: self.feed(ev.HealthTold(self.now_s, target, serving)))
        self._push_status(worker)

    def drain(self, target: str) -> None:
        """SIGTERM: not serving at once, new calls are refused, the running one ends."""
        self.tell(target, serving=False, cause=ev.Cause.DRAINING)
        self.workers[target].drains, self.workers[target].refuses_with = True, "DRAINING"

    def drop_streams(self, target: str) -> None:
        """The connection breaks and is made again; the process lives on and so does its slot."""
        worker = self.workers[target]
        if not (worker.alive and worker.streams):
            return
        worker.streams = 0
        self.feed(ev.ConnectionLost(self.now_s, target))
        self.feed(ev.StatusLost(self.now_s, target))
        self._after(RECONNECT_S, lambda: self._connect(worker, worker.boot))

    def other_edge_calls(self, target: str, duration_s: float) -> None:
        """Another edge's call gets its slot, if it is free."""
        worker = self.workers[target]
        if worker.alive and not worker.slot:
            worker.slot, worker.slot_epoch = OTHER_EDGE, worker.slot_epoch + 1
            epoch = worker.slot_epoch
            self._push_status(worker)
            self._after(duration_s, lambda: self._vacate(worker, epoch))

    def _connect(self, worker: SimWorker, boot: int) -> None:
        """The edge's streams reach it."""
        if worker.alive and worker.boot == boot and not worker.streams:
            self.feed(ev.HealthTold(self.now_s, worker.target, worker.serving))
            self._open_status(worker)

    def _open_status(self, worker: SimWorker) -> None:
        worker.streams += 1
        worker.asked_s = self.now_s
        self._push_status(worker)

    def _push_status(self, worker: SimWorker) -> None:
        """Send the state of this moment over the open stream, if it is still that one when it arrives."""
        stream, boot = worker.streams, worker.boot
        if not stream:
            return
        told = ev.StatusTold(
            now_s=0.0,
            endpoint=worker.target,
            asked_s=worker.asked_s,
            boot_id=worker.boot_id,
            cause=None if worker.serving else worker.cause or ev.Cause.PROBE,
            taken=bool(worker.slot),
            call_id=worker.slot,
        )

        def arrive() -> None:
            if worker.streams == stream and worker.boot == boot:
                self.feed(replace(told, now_s=self.now_s))

        self._after(LATENCY_S, arrive)

    def _vacate(self, worker: SimWorker, epoch: int) -> None:
        if worker.slot and worker.slot_epoch == epoch:
            worker.slot = ""
            worker.computed += 1
            self._push_status(worker)

    # The shell's part

    def feed(self, event: ev.Event) -> None:
        """Into the pool, and out of it."""
        for decision in self.pool.handle(event):
            match decision:
                case ev.Start():
                    self._start_call(decision)
                case ev.Finish(call_id, _, attempts):
                    client = self.clients[call_id]
                    self._answer(client, client.answer or "ok", attempts)
                case ev.Fail(call_id, reason, retry_after_s, _, attempts):
                    self.clients[call_id].retry_after_s = retry_after_s
                    self._answer(self.clients[call_id], reason, attempts)
                case ev.Probe(target):
                    self.probes.append((self.now_s, target))
                    self._probe(self.workers[target])
                case ev.AskStatus(target):
                    worker = self.workers[target]
                    if worker.alive:
                        worker.streams += 1  # what is on its way over the old one is lost
                        self._after(LATENCY_S, partial(self._reopen, worker, worker.boot))
                case ev.Wake(at_s):
                    self._set_alarm(at_s)
                case ev.Log():
                    self.log.append((self.now_s, decision))

    def _reopen(self, worker: SimWorker, boot: int) -> None:
        if worker.alive and worker.boot == boot:
            self._open_status(worker)

    def _set_alarm(self, at_s: float) -> None:
        self._alarm += 1
        alarm = self._alarm

        def ring() -> None:
            if alarm == self._alarm:
                self.feed(ev.Tick(self.now_s))

        self._after(max(0.0, at_s - self.now_s), ring)

    def _probe(self, worker: SimWorker) -> None:
        boot = worker.boot

        def end(*, hung: bool) -> None:
            if hung:
                result = ev.ProbeResult.TIMEOUT
            elif not worker.alive or worker.boot != boot:
                result = ev.ProbeResult.UNREACHABLE
            else:
                result = ev.ProbeResult.GOOD if worker.serving else ev.ProbeResult.NOT_SERVING
            self.feed(ev.ProbeEnded(self.now_s, worker.target, result))

        hangs = worker.alive and worker.probes_hang
        self._after(self.config.health.timeout_seconds if hangs else LATENCY_S, lambda: end(hung=hangs))

    def _start_call(self, start: ev.Start) -> None:
        client, worker = self.clients[start.call_id], self.workers[start.endpoint]
        self._check_start(client, worker)
        client.started.append((self.now_s, worker.target))
        client.running_on = worker.target
        if not worker.alive:
            self._end_later(client, LATENCY_S, ev.Code.UNAVAILABLE)
        elif worker.slot:
            self._end_later(client, LATENCY_S, ev.Code.RESOURCE_EXHAUSTED, "BUSY", retry_after_s=0.05)
        elif worker.refuses_with:
            self._end_later(client, LATENCY_S, ev.Code.UNAVAILABLE, worker.refuses_with)
        else:
            self._compute(client, worker, start.timeout_s)

    def _compute(self, client: Client, worker: SimWorker, timeout_s: float) -> None:
        worker.slot, worker.slot_epoch = client.call_id, worker.slot_epoch + 1
        epoch = worker.slot_epoch
        self._push_status(worker)
        code, reason = worker.fails_with or ev.Code.OK, worker.fails_because
        if not worker.hangs:
            self._after(worker.call_s, lambda: self._vacate(worker, epoch))
        if worker.hangs or worker.call_s > timeout_s:
            self._end_later(client, timeout_s, ev.Code.DEADLINE_EXCEEDED)
        else:
            self._end_later(client, worker.call_s, code, reason)

    def _end_later(
        self,
        client: Client,
        delay_s: float,
        code: ev.Code,
        reason: str = "",
        *,
        retry_after_s: float | None = None,
    ) -> None:
        attempt = len(client.started)

        def end() -> None:
            if client.left or client.answered_s is not None or len(client.started) != attempt or not client.running_on:
                return
            told_to_drain = reason == "DRAINING" or self.endpoint(client.running_on).state is State.DRAINING
            if code not in {ev.Code.OK, ev.Code.RESOURCE_EXHAUSTED} and not told_to_drain:
                client.failed_on.add(client.running_on)
            client.answer, client.running_on = reason, ""
            self.feed(ev.CallEnded(self.now_s, client.call_id, code, reason, retry_after_s))

        self._after(delay_s, end)

    # What must always hold

    def _check_start(self, client: Client, worker: SimWorker) -> None:
        endpoint = self.endpoint(worker.target)
        assert endpoint.online, f"{client.call_id} sent to {endpoint!r}"
        assert endpoint.cooldown_left_s(self.now_s) == 0
        assert client.waits, f"{client.call_id} started twice or after its answer"
        assert worker.target not in client.failed_on, f"{client.call_id} sent again to {worker.target}"
        sharing = [other.call_id for other in self.clients.values() if other.running_on == worker.target]
        assert not sharing, f"{worker.target} has {sharing} and gets {client.call_id}"
        assert worker.slot in {"", OTHER_EDGE}, f"{worker.target} still computes {worker.slot} of this edge"
        if not endpoint.primary:
            better = [e.target for e in self.pool.endpoints() if e.online and e.primary]
            assert set(better) <= client.failed_on, f"a backup is used while {better} are online"
        for other in self.clients.values():
            if other.waits and other.slow == client.slow and other.number < client.number:
                assert worker.target in other.failed_on, f"{client.call_id} overtook {other.call_id}"

    def _answer(self, client: Client, answer: str, attempts: int) -> None:
        assert client.answered_s is None, f"{client.call_id} answered twice"
        assert not client.left, f"{client.call_id} answered after it left"
        assert not client.running_on, f"{client.call_id} answered while it runs"
        patience_s = self.config.dispatch.default_timeout_s(slow=client.slow)
        took_s, allowed_s = (
            self.now_s - client.submitted_s,
            patience_s if client.timeout_s is None else client.timeout_s,
        )
        assert took_s <= allowed_s + 3 * LATENCY_S, f"{client.call_id} answered after {took_s} s, not {allowed_s}"
        client.answered_s, client.answer, client.attempts = self.now_s, answer, attempts
