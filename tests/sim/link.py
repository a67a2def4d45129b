"""The connection of one edge to one worker, as gRPC over HTTP/2 behaves.

Messages of one stream arrive in order; those of different streams overtake each other when they are due together. A
silent peer is noticed by pings. A connection that breaks is made anew at once; one that was refused, after a pause.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING

from edge.pool import events as ev
from tests.sim.clock import Act, Clock

if TYPE_CHECKING:
    from tests.sim.worker import SimWorker

PING_S = 10.0
"""A peer that says nothing for so long is taken for gone (`hairmesh.wire`: ping interval and timeout)."""
GIVEN_UP_S = 5.0
"""An edge that stands still for so long has not answered its workers' pings: they have closed its connections."""
CONNECT_TIMEOUT_S = 2.0
REOPEN_S = 0.2
REOPEN_MAX_S = 2.0

Emit = Callable[[ev.Event], None]
EndedCall = Callable[[ev.Code, str, float | None], None]


class Wire(Enum):
    """State of the connection."""

    IDLE = auto()
    CONNECTING = auto()
    UP = auto()
    DOWN = auto()
    """Refused; the next attempt comes by itself."""
    CLOSED = auto()


class Rpc:
    """One attempt of a call. Ends once, by whichever comes first: answer, deadline, broken connection, cancelled."""

    __slots__ = ("_done", "call_id", "input_key", "lane", "link", "on_progress", "open", "poisoned", "slow")

    def __init__(
        self, link: Link, call_id: str, *, slow: bool, input_key: str, done: EndedCall, on_progress: Act
    ) -> None:
        self.link = link
        self.call_id = call_id
        self.slow = slow
        self.input_key = input_key
        self.on_progress = on_progress
        self.lane: deque[Act] = deque()
        self.open = True
        self.poisoned = False
        """Its worker broke of its input."""
        self._done = done

    def end(self, code: ev.Code, reason: str = "", retry_after_s: float | None = None) -> None:
        """At the edge: it is over."""
        if self.open:
            self.close()
            self._done(code, reason, retry_after_s)

    def expire(self) -> None:
        """Its deadline has come."""
        if self.open:
            self.cancel()
            self._done(ev.Code.DEADLINE_EXCEEDED, "", None)

    def cancel(self) -> None:
        """At the edge: nobody waits for it any more."""
        if self.open:
            self.close()
            self.link.send(self.link.down, partial(self.link.worker.abandoned, self))

    def close(self) -> None:
        self.open = False
        self.link.rpcs.pop(self.call_id, None)

    def answer(self, code: ev.Code, reason: str = "", retry_after_s: float | None = None) -> None:
        """At the worker: this is how it ended."""
        self.link.send(self.lane, partial(self.end, code, reason, retry_after_s))

    def progress(self) -> None:
        """At the worker: it has come further."""
        self.link.send(self.lane, lambda: self.on_progress() if self.open else None)


class Link:
    """Channel, probes and both streams of one endpoint."""

    def __init__(self, clock: Clock, worker: SimWorker, emit: Emit, *, latency_s: float, tokens: list[str]) -> None:
        self.clock = clock
        self.worker = worker
        self.tokens = tokens
        """The edge's password, then the one before; the edge may change the list."""
        self.latency_s = latency_s
        self.wire = Wire.IDLE
        self.rpcs: dict[str, Rpc] = {}
        self.down: deque[Act] = deque()
        """To the worker."""
        self.health_open = self.status_open = False
        """Whether the worker knows the stream."""
        self._emit = emit
        self.checks: deque[Act] = deque()
        """Answers to probes."""
        self._health: deque[Act] = deque()
        self._status: deque[Act] = deque()
        self._status_number = 0
        self._asked_s = 0.0
        self._watching = False
        self._resting = False
        """The streams broke a moment ago and are opened again after a pause."""
        self._epoch = 0
        self._blocked = 0
        self._blocks = 0
        self._held: list[Act] = []
        self._waiters: list[tuple[Act, Act]] = []
        self._pause_s = REOPEN_S
        self._probe: Callable[[ev.ProbeResult, str], None] | None = None
        worker.links.append(self)
        for silent in (worker.frozen, worker.hidden):
            if silent:
                self.block()

    # What the edge does with it

    def call(self, rpc: Rpc, timeout_s: float) -> None:
        """Start an attempt."""
        self.rpcs[rpc.call_id] = rpc
        self.clock.after(timeout_s, rpc.expire)
        self._reach(
            lambda: self.send(self.down, partial(self.worker.arrived, rpc)), lambda: rpc.end(ev.Code.UNAVAILABLE)
        )

    def probe(self, timeout_s: float, done: Callable[[ev.ProbeResult, str], None]) -> None:
        """One active check; the first one also opens the streams."""

        def end(result: ev.ProbeResult, evidence: str) -> None:
            if self._probe is end:
                self._probe = None
                done(result, evidence)

        self._probe = end
        self.clock.after(timeout_s, lambda: end(ev.ProbeResult.TIMEOUT, "DEADLINE_EXCEEDED"))
        self._reach(
            lambda: self.send(self.down, partial(self.worker.checked, self, end)),
            lambda: end(ev.ProbeResult.UNREACHABLE, "UNAVAILABLE"),
        )
        if not self._watching:
            self._watching = True
            self._open_streams()

    def ask_status(self) -> None:
        """Open the status stream anew: what the old one may still bring is lost."""
        self._status_number += 1
        self._asked_s = self.clock.now_s
        self.status_open = False
        if self.wire is Wire.UP:
            self._send_status_request()

    def close(self) -> None:
        """The endpoint is no longer of the pool."""
        self._broken(Wire.CLOSED)
        self._refuse_waiters()
        self.worker.links.remove(self)

    # What happens to it

    def break_(self) -> None:
        """Reset; the process at the other end may live on."""
        if self.wire is Wire.UP:
            self._broken(Wire.IDLE)
            if self._watching:
                self.clock.after(0.0, lambda: self._say(ev.ConnectionLost(self.clock.now_s, self.worker.target)))
                self.clock.after(0.0, lambda: self._say(ev.StatusLost(self.clock.now_s, self.worker.target)))
                self._resting = True
                self.clock.after(REOPEN_S, self._reopen)

    def block(self) -> None:
        """Nothing goes through, and nobody is told."""
        self._blocked += 1
        if self._blocked == 1:
            self._ping()

    def _ping(self) -> None:
        self._blocks += 1
        block = self._blocks

        def pinged() -> None:
            if self._blocked and block == self._blocks:
                self.break_()

        self.clock.after(PING_S, pinged)

    def hush(self) -> None:
        """Its edge stands still: nothing goes through, and it pings nobody."""
        self._blocked += 1

    def speak(self, *, slept_s: float) -> None:
        """Its edge goes on, and finds what its worker has made of the silence."""
        if slept_s > GIVEN_UP_S:
            self.break_()
        self.unblock()
        if self._blocked:
            self._ping()

    def unblock(self) -> None:
        """What was under way arrives, if the connection still stands."""
        self._blocked -= 1
        if self._blocked == 0:
            held, self._held = self._held, []
            for act in held:
                act()

    def send(self, lane: deque[Act], act: Act) -> None:
        """A message on one stream."""
        lane.append(act)
        self.clock.after(self.latency_s, partial(self._deliver, lane, self._epoch))

    def tell_health(self, *, serving: bool) -> None:
        """The worker's word on the health stream."""
        if self.health_open:
            target = self.worker.target
            self.send(self._health, lambda: self._say(ev.HealthTold(self.clock.now_s, target, serving)))

    def tell_status(self) -> None:
        """The worker's word on the status stream: how it is at this moment."""
        if self.status_open:
            number, told = self._status_number, self.worker.status(self._asked_s)

            def arrive() -> None:
                if number == self._status_number:
                    self._say(told(self.clock.now_s))

            self.send(self._status, arrive)

    # Inside

    def _say(self, event: ev.Event) -> None:
        if self.wire is not Wire.CLOSED:
            self._emit(event)

    def _deliver(self, lane: deque[Act], epoch: int) -> None:
        if epoch != self._epoch or not lane:
            return
        act = lane.popleft()
        if self._blocked:
            self._held.append(act)
        else:
            act()

    def _reach(self, go: Act, refused: Act) -> None:
        if self.wire is Wire.UP:
            go()
        elif self.wire in {Wire.DOWN, Wire.CLOSED}:
            self.clock.after(self.latency_s, refused)
        else:
            self._waiters.append((go, refused))
            self._connect()

    def _connect(self) -> None:
        if self.wire in {Wire.IDLE, Wire.DOWN}:
            self.wire = Wire.CONNECTING
            self.clock.after(CONNECT_TIMEOUT_S if self._blocked else self.latency_s, partial(self._tried, self._epoch))

    def _tried(self, epoch: int) -> None:
        if epoch != self._epoch or self.wire is not Wire.CONNECTING:
            return
        if self.worker.alive and not self._blocked:
            waiters, self._waiters = self._waiters, []
            self.wire, self._pause_s = Wire.UP, REOPEN_S
            for go, _ in waiters:
                go()
            if self._watching and not self._resting:
                self._open_streams()
            return
        self.wire = Wire.DOWN
        self._refuse_waiters()
        self.clock.after(self._pause_s, self._connect)
        self._pause_s = min(2 * self._pause_s, REOPEN_MAX_S)

    def _refuse_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for _, refused in waiters:
            self.clock.after(0.0, refused)

    def _reopen(self) -> None:
        self._resting = False
        self._open_streams()

    def _open_streams(self) -> None:
        if self.wire is Wire.UP and not self.health_open:
            self.send(self.down, self._health_asked)
            self._send_status_request()
        elif self.wire is Wire.IDLE:
            self._connect()
        if self.wire is not Wire.UP:
            self._status_number += 1
            self._asked_s = self.clock.now_s

    def _send_status_request(self) -> None:
        self.send(self.down, partial(self._status_asked, self._status_number))

    def _health_asked(self) -> None:
        if self.worker.alive and self.worker.knows(self.tokens):
            self.health_open = True
            self.tell_health(serving=self.worker.watch_says)
        elif self.worker.alive:
            self.clock.after(REOPEN_MAX_S, self._open_streams)

    def _status_asked(self, number: int) -> None:
        if not self.worker.alive or number != self._status_number:
            return
        if self.worker.knows(self.tokens):
            self.status_open = True
            self.tell_status()
        else:
            self.clock.after(REOPEN_MAX_S, lambda: self.ask_status() if number == self._status_number else None)

    def _broken(self, wire: Wire) -> None:
        self._epoch += 1
        self.wire = wire
        self.health_open = self.status_open = False
        self.down, self.checks, self._health, self._status = deque(), deque(), deque(), deque()
        self._held.clear()
        for rpc in list(self.rpcs.values()):
            self.worker.abandoned(rpc)
            self.clock.after(0.0, partial(rpc.end, ev.Code.UNAVAILABLE))
        if self._probe is not None:
            self.clock.after(0.0, partial(self._probe, ev.ProbeResult.UNREACHABLE, "UNAVAILABLE"))
