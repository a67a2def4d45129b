"""One simulated edge: a real `Pool` with the part of the shell around it (`edge.upstream.driver`), and its clients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import PoolConfig
from edge.pool.endpoint import Endpoint, State
from edge.pool.manager import Pool
from tests.sim.checks import Checks
from tests.sim.clock import Act, Clock
from tests.sim.link import Link, Rpc
from tests.sim.worker import PASSWORD

if TYPE_CHECKING:
    from tests.sim.world import World


@dataclass(slots=True, eq=False)
class Client:
    """A submitted call, as its client sees it."""

    call_id: str
    slow: bool
    number: int
    submitted_s: float
    timeout_s: float | None = None
    capability: str = ""
    input_key: str = ""
    client_key: str = ""
    size_bytes: int = 0
    started: list[tuple[float, str]] = field(default_factory=list)
    waits_since_s: float = 0.0
    ended_s: float = -math.inf
    """When its last attempt ended."""
    failed_on: set[str] = field(default_factory=set)
    running_on: str = ""
    attempt_s: float = 0.0
    """Time its last attempt was given, in s."""
    moved_s: float = -math.inf
    """When its running attempt was last heard to get on."""
    seen: tuple[int, str] | None = None
    answered_s: float | None = None
    answer: str = ""
    """`ok`, a refusal's reason, or the system's."""
    retry_after_s: float | None = None
    attempts: int = 0
    left: bool = False
    retries: int = 0
    broke: int = 0
    """Workers that its input broke for certain."""
    known: bool = False
    """The pool knows its input."""
    rpc: Rpc | None = None

    @property
    def waits(self) -> bool:
        return self.answered_s is None and not self.left and not self.running_on


class SimEdge:
    """Feeds events in, carries decisions out, and has every decision checked."""

    def __init__(self, world: World, config: PoolConfig, *, seed: int, edge_id: str) -> None:
        self.world = world
        self.clock: Clock = world.clock
        self.config = config
        self.edge_id = edge_id
        self.pool = Pool(config, seed=seed, edge_id=edge_id)
        self.links: dict[str, Link] = {}
        self.tokens = [PASSWORD]
        self.clients: dict[str, Client] = {}
        self.open: dict[str, Client] = {}
        """Those without an answer."""
        self.log: list[tuple[float, ev.Log]] = []
        self.probes: list[tuple[float, str]] = []
        self.cut_off = False
        self.asleep = 0
        """Reasons for which its process stands still."""
        self._since_s = 0.0
        self.woke_s = -1.0
        """When it last went on after a standstill."""
        self._unheard: list[Act] = []
        """What happened meanwhile."""
        self.checks = Checks(self)
        self._alarm = 0

    def start(self) -> None:
        """First probes."""
        self.feed(ev.Started(self.clock.now_s))
        self.clock.after(self.config.health.timeout_seconds, lambda: self.feed(ev.StartupOver(self.clock.now_s)))

    def submit(
        self,
        *,
        slow: bool = False,
        timeout_s: float | None = None,
        size_bytes: int = 0,
        capability: str = "",
        input_key: str = "",
        client_key: str = "",
    ) -> Client:
        """A client calls."""
        number, now_s = len(self.clients) + 1, self.clock.now_s
        client = Client(f"{self.edge_id}-{number}", slow, number, now_s, timeout_s, capability, input_key, client_key)
        client.size_bytes = size_bytes
        self.clients[client.call_id] = client
        self._when_awake(partial(self._submitted, client))
        return client

    def _submitted(self, client: Client) -> None:
        client.submitted_s = client.waits_since_s = now_s = self.clock.now_s
        self.open[client.call_id] = client
        self.checks.submitted(client)
        self.feed(
            ev.Submitted(
                now_s,
                client.call_id,
                client.slow,
                client.timeout_s,
                client.size_bytes,
                client.capability,
                client.input_key if self.pool.minds_inputs else "",  # as the shell: it hashes only while that matters
                client.client_key,
            )
        )

    def leave(self, client: Client) -> None:
        """Its client goes away; the shell cancels its RPC."""
        self._when_awake(partial(self._left, client))

    def _left(self, client: Client) -> None:
        if client.call_id not in self.open:
            return
        del self.open[client.call_id]
        client.left, client.running_on = True, ""
        if client.rpc is not None:
            client.rpc.cancel()
        self.feed(ev.CallGone(self.clock.now_s, client.call_id))

    def endpoint(self, target: str) -> Endpoint:
        """As the pool sees it."""
        return next(endpoint for endpoint in self.pool.endpoints() if endpoint.target == target)

    def state(self, target: str) -> str:
        """Also of one that is leaving."""
        each = self.pool.snapshot(self.clock.now_s).endpoints
        return next(endpoint.state for endpoint in each if endpoint.target == target)

    def configure(self, config: PoolConfig) -> None:
        """Another configuration is live."""
        self._when_awake(partial(self._configured, config))

    def _configured(self, config: PoolConfig) -> None:
        self.config = config
        self.feed(ev.Configured(self.clock.now_s, config, config.targets()))

    def change_password(self, password: str) -> None:
        """The configuration has another password; the one before is tried as well."""
        self._when_awake(partial(self._password_changed, password))

    def _password_changed(self, password: str) -> None:
        self.tokens[:] = [password, *self.tokens[:1]]
        self.feed(ev.PasswordChanged(self.clock.now_s))

    def partition(self, *, on: bool) -> None:
        """The network between this edge and all workers is silent, or back."""
        if self.cut_off is not on:
            self.cut_off = on
            for link in list(self.links.values()):  # what arrives may close some
                (link.block if on else link.unblock)()

    def sleep(self) -> None:
        """Its process stands still, and nothing else does."""
        self.asleep += 1
        if self.asleep == 1:
            self._since_s = self.clock.now_s
            for link in self.links.values():
                link.hush()

    def wake(self, *, sockets_first: bool) -> None:
        """It goes on. `sockets_first`: what became of its connections is heard before what else has happened."""
        self.asleep -= 1
        if self.asleep:
            return
        slept_s, links = self.clock.now_s - self._since_s, list(self.links.values())
        self.slept(slept_s)
        unheard, self._unheard = self._unheard, []
        acts: list[Act] = [partial(link.speak, slept_s=slept_s) for link in links]
        for act in [*acts, *unheard] if sockets_first else [*unheard, *acts]:
            act()

    def slept(self, slept_s: float) -> None:
        """It stood still for so long, with or without everybody else."""
        self.woke_s = self.clock.now_s
        if slept_s > fixed.SLEPT_S:
            self.feed(ev.Woke(self.clock.now_s, slept_s))

    def _when_awake(self, act: Act) -> None:
        """Now, or when it goes on."""
        if self.asleep:
            self._unheard.append(act)
        else:
            act()

    def _hear(self, event: ev.Event) -> None:
        """What streams tell."""
        self._when_awake(lambda: self.feed(replace(event, now_s=self.clock.now_s)))

    def feed(self, event: ev.Event) -> None:
        """Into the pool, and out of it."""
        trace = self.world.trace
        if trace is not None:
            trace(self, event)
        self.checks.hear(event)
        decisions = self.pool.handle(event)
        for decision in decisions:
            if trace is not None:
                trace(self, decision)
            self._carry_out(decision)
        self.checks.settled(event, decisions)

    def _carry_out(self, decision: ev.Decision) -> None:
        match decision:
            case ev.Start():
                self._start_call(decision)
            case ev.Finish(call_id, _, attempts):
                client = self.clients[call_id]
                self._answer(client, client.answer or "ok", attempts)
            case ev.Fail(call_id, reason, retry_after_s, _, attempts):
                self.clients[call_id].retry_after_s = retry_after_s
                self._answer(self.clients[call_id], reason, attempts, decision.needed_s)
            case ev.Open(target):
                self._open(target)
            case ev.Close(target):
                self.checks.closed(target)
                self.links.pop(target).close()
            case ev.Probe(target):
                self.probes.append((self.clock.now_s, target))
                self.checks.probed(target)
                timeout_s = self.config.health.timeout_seconds
                link = self.links[target]
                link.probe(timeout_s, lambda *found: self._when_awake(lambda: self._probed(link, *found)))
            case ev.AskStatus(target):
                self.links[target].ask_status()
            case ev.Wake(at_s):
                self._set_alarm(at_s)
            case ev.Log():
                self.checks.logged(decision)
                self.log.append((self.clock.now_s, decision))

    def _open(self, target: str) -> None:
        worker = self.world.worker(target)
        link = Link(self.clock, worker, self._hear, latency_s=self.world.latency_s, tokens=self.tokens)
        self.links[target] = link
        self.checks.opened(target)
        if self.cut_off:
            link.block()

    def _probed(self, link: Link, result: ev.ProbeResult, evidence: str) -> None:
        if self.links.get(link.worker.target) is link:
            self.feed(ev.ProbeEnded(self.clock.now_s, link.worker.target, result, evidence))

    def _set_alarm(self, at_s: float) -> None:
        self._alarm += 1
        alarm = self._alarm

        def ring() -> None:
            if alarm == self._alarm:
                self.feed(ev.Tick(self.clock.now_s))

        self.clock.at(at_s, lambda: self._when_awake(ring))

    def _start_call(self, start: ev.Start) -> None:
        client, link = self.clients[start.call_id], self.links[start.endpoint]
        self.checks.starts(client, start)
        client.started.append((self.clock.now_s, start.endpoint))
        client.running_on = start.endpoint
        attempt = len(client.started)
        client.rpc = Rpc(
            link,
            client.call_id,
            slow=client.slow,
            input_key=client.input_key,
            done=lambda *end: self._when_awake(lambda: self._ended(client, attempt, *end)),
            on_progress=lambda: self._when_awake(lambda: self._progressed(client, attempt)),
        )
        link.call(client.rpc, start.timeout_s)

    def _progressed(self, client: Client, attempt: int) -> None:
        if client.running_on and len(client.started) == attempt:
            self.feed(ev.CallProgressed(self.clock.now_s, client.call_id))

    def _ended(self, client: Client, attempt: int, code: ev.Code, reason: str, retry_after_s: float | None) -> None:
        if not client.running_on or len(client.started) != attempt:
            return
        target = client.running_on
        excused = reason == "DRAINING" or code in {ev.Code.OK, ev.Code.RESOURCE_EXHAUSTED}
        excused |= self.checks.forgives(target, code, reason)
        if not excused and self.state(target) != State.DRAINING:
            client.failed_on.add(target)
        poisoned = client.rpc is not None and client.rpc.poisoned
        client.answer, client.running_on, client.rpc = reason, "", None
        client.ended_s = self.clock.now_s
        if reason != "BUSY":  # who found the slot taken keeps the place and the time that it had
            client.waits_since_s = self.clock.now_s
        input_key = "" if code is ev.Code.OK else client.input_key
        self.checks.ended(client, target, code, reason, poisoned=poisoned)
        self.feed(ev.CallEnded(self.clock.now_s, client.call_id, code, reason, retry_after_s, input_key))

    def _answer(self, client: Client, answer: str, attempts: int, needed_s: float | None = None) -> None:
        self.checks.answers(client, answer, needed_s=needed_s)
        del self.open[client.call_id]
        client.answered_s, client.answer, client.attempts = self.clock.now_s, answer, attempts


Trace = Callable[[SimEdge, ev.Event | ev.Decision], None]
