"""One simulated worker: a process with one slot, a compute thread, health, and a word about itself for every edge."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from edge.pool import events as ev
from hairmesh.wire import WorkerReason
from tests.sim.clock import Clock
from tests.sim.link import Link, Rpc

LATENCY_S = 0.001
OTHER_EDGE = "other-1"
"""In the slot: the call of an edge that is not simulated."""
PASSWORD = "old"


@dataclass(slots=True, eq=False)
class Job:
    """What the compute thread does."""

    call_id: str
    epoch: int
    ends_s: float
    """Infinite for one that hangs."""
    begun_s: float
    rpc: Rpc | None
    steps: int = 0


@dataclass(slots=True, eq=False)
class SimWorker:
    """Set its attributes to make it misbehave; its methods are its life."""

    target: str
    clock: Clock
    call_s: float = 0.5
    slow_call_s: float | None = None
    """None: as fast calls."""
    step_s: float | None = None
    """A slow call tells of progress so often; an abandoned thread of any call ends at the next multiple. None: no
    progress, and an abandoned thread computes to its end."""
    alive: bool = True
    frozen: bool = False
    boot: int = 1
    serving: bool = True
    """What its health says."""
    cause: ev.Cause | None = None
    slowness: float = 1.0
    """Calls take so many times their time."""
    hidden: bool = False
    """Nothing from or to its host arrives."""
    watch_lies: bool = False
    """Its health stream says the opposite of what its probes say."""
    probes_hang: bool = False
    fails_with: ev.Code | None = None
    """Every call ends like this, after its time, though health is fine."""
    fails_because: str = ""
    drains: bool = False
    """It got SIGTERM: nothing but its end changes that."""
    refuses_with: str = ""
    """Every call is refused at once, UNAVAILABLE with this reason of the worker's own."""
    hangs: bool = False
    """Calls never end."""
    accepts: set[str] = field(default_factory=lambda: {PASSWORD})
    """Passwords."""
    capabilities: frozenset[str] = frozenset()
    poisons: dict[str, ev.Code | None] = field(default_factory=dict)
    """By input, or by what stands before the `/` in its name: how a call with it ends; None: the process dies of it."""
    restarts_in_s: float | None = None
    """When a process that died of an input is replaced; None: never."""
    status_gap_s: float = 0.0
    """Two status messages are never closer."""
    job: Job | None = None
    slot_epoch: int = 0
    computed: int = 0
    steps: int = 0
    links: list[Link] = field(default_factory=list)
    _told_s: float = -1.0
    _tells: bool = False
    _paused_s: float = 0.0

    @property
    def slot(self) -> str:
        """The call that computes, with or without a client."""
        return "" if self.job is None else self.job.call_id

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boot}"

    @property
    def hung(self) -> bool:
        """Whether the call in its slot will never end."""
        return self.job is not None and self.job.ends_s == math.inf

    @property
    def watch_says(self) -> bool:
        return self.serving is not self.watch_lies

    def knows(self, tokens: list[str]) -> bool:
        """Whether it takes one of them."""
        return not self.accepts.isdisjoint(tokens)

    # Its life

    def kill(self) -> None:
        """SIGKILL: its calls fail, its connections break."""
        if not self.alive:
            return
        self.alive, self.job = False, None
        self.slot_epoch += 1
        if self.frozen:
            self.thaw()
        for link in self.links:
            self.clock.after(LATENCY_S, partial(self._broken, link, self.boot))

    def _broken(self, link: Link, boot: int) -> None:
        if self.boot == boot:
            link.break_()

    def boot_up(self) -> None:
        """A new process at the same address, in good health."""
        if self.alive:
            return
        for link in self.links:
            link.break_()  # one that was made with the last process and has not broken yet
        self.alive, self.boot, self.drains, self.steps = True, self.boot + 1, False, 0
        self.heal()

    def heal(self) -> None:
        """Whatever was wrong is over; a call that hangs and a worker that drains stay so until the process ends."""
        if self.frozen:
            self.thaw()
        if self.drains:
            return
        self.probes_hang, self.fails_with, self.fails_because = False, None, ""
        self.refuses_with, self.hangs = "", False
        lied, self.watch_lies = self.watch_lies, False
        if not self.serving or lied:
            self.tell(serving=True)

    def freeze(self) -> None:
        """SIGSTOP: nothing answers, nothing breaks."""
        if self.alive and not self.frozen:
            self.frozen, self._paused_s = True, self.clock.now_s
            for link in self.links:
                link.block()

    def thaw(self) -> None:
        """SIGCONT: it goes on where it was."""
        if self.frozen:
            self.frozen = False
            if self.job is not None:
                self.job.ends_s += self.clock.now_s - self._paused_s
                self._plan(self.job)
            for link in self.links:
                link.unblock()

    def reset(self) -> None:
        """Its connections break, and may be made again at once; the process lives on and so does its slot."""
        for link in self.links:
            link.break_()

    def hide(self) -> None:
        """The network to its host is silent; it computes on."""
        if not self.hidden:
            self.hidden = True
            for link in self.links:
                link.block()

    def unhide(self) -> None:
        """The network is back."""
        if self.hidden:
            self.hidden = False
            for link in self.links:
                link.unblock()

    def tell(self, *, serving: bool, cause: ev.Cause | None = None) -> None:
        """Its health changes, and both streams say so."""
        if self.drains:
            return
        self.serving, self.cause = serving, None if serving else cause
        self._tell_health()
        self._tell_status()

    def lie(self) -> None:
        """Its health stream says the opposite from now on."""
        self.watch_lies = True
        self._tell_health()

    def stop_lying(self) -> None:
        """It says again what is so."""
        if self.watch_lies:
            self.watch_lies = False
            self._tell_health()

    def drain(self) -> None:
        """SIGTERM: not serving at once, new calls are refused, the running one ends."""
        self.tell(serving=False, cause=ev.Cause.DRAINING)
        self.drains, self.refuses_with = True, "DRAINING"

    def can(self, capabilities: frozenset[str]) -> None:
        """It can do other things than before."""
        self.capabilities = capabilities
        self._tell_status()

    # What reaches it

    def arrived(self, rpc: Rpc) -> None:
        """A call."""
        if not self.alive:
            return  # its connection is about to break
        if not self.knows(rpc.link.tokens):
            rpc.answer(ev.Code.UNAUTHENTICATED, "WRONG_PASSWORD")
        elif self.refuses_with:
            rpc.answer(ev.Code.UNAVAILABLE, self.refuses_with)
        elif self.job is not None:
            rpc.answer(ev.Code.RESOURCE_EXHAUSTED, "BUSY", 0.05)
        else:
            takes_s = self.slow_call_s if rpc.slow and self.slow_call_s is not None else self.call_s
            self._compute(rpc.call_id, takes_s * self.slowness, rpc)

    def abandoned(self, rpc: Rpc) -> None:
        """Nobody waits for this call any more."""
        job = self.job
        if job is None or job.rpc is not rpc or job.ends_s == math.inf:
            return
        if self.step_s is not None and not self.frozen:
            over_s = (self.clock.now_s - job.begun_s) % self.step_s
            job.ends_s = min(job.ends_s, round(self.clock.now_s + self.step_s - over_s, 6))
            self._plan(job)

    def checked(self, link: Link, answer: Callable[[ev.ProbeResult, str], None]) -> None:
        """A probe."""
        if not self.alive or self.probes_hang:
            return
        if not self.knows(link.tokens):
            result = ev.ProbeResult.AUTH
        else:
            result = ev.ProbeResult.GOOD if self.serving else ev.ProbeResult.NOT_SERVING
        link.send(link.checks, lambda: answer(result, result.name))

    def occupy(self, duration_s: float) -> None:
        """A call of an edge that is not simulated gets the slot, if it is free."""
        if self.alive and self.job is None:
            self._compute(OTHER_EDGE, duration_s, None)

    # Its word

    def status(self, asked_s: float) -> Callable[[float], ev.StatusTold]:
        """How it is at this moment, as a message of a stream asked for at `asked_s`; takes when it arrives."""
        return partial(
            ev.StatusTold,
            endpoint=self.target,
            asked_s=asked_s,
            boot_id=self.boot_id,
            cause=None if self.serving else self.cause or ev.Cause.PROBE,
            taken=self.job is not None,
            call_id=self.slot,
            steps=self.steps,
            capabilities=self.capabilities,
        )

    def _tell_health(self) -> None:
        for link in self.links:
            link.tell_health(serving=self.watch_says)

    def _tell_status(self) -> None:
        if self._tells:
            return
        wait_s = self._told_s + self.status_gap_s - self.clock.now_s
        if wait_s > 0:
            self._tells = True
            self.clock.after(wait_s, self._tell_now)
        else:
            self._tell_now()

    def _tell_now(self) -> None:
        self._tells, self._told_s = False, self.clock.now_s
        if self.alive:
            for link in self.links:
                link.tell_status()

    # Its thread

    def _compute(self, call_id: str, takes_s: float, rpc: Rpc | None) -> None:
        self.slot_epoch += 1
        ends_s = math.inf if self.hangs and rpc else self.clock.now_s + takes_s
        self.job = Job(call_id, self.slot_epoch, ends_s, self.clock.now_s, rpc)
        self._tell_status()
        self._plan(self.job)
        if rpc is not None and rpc.slow and self.step_s is not None and not self.hangs:
            self.clock.after(self.step_s, partial(self._step, self.job))

    def _plan(self, job: Job) -> None:
        if job.ends_s < math.inf:
            self.clock.at(round(job.ends_s, 6), partial(self._end, job, job.ends_s))

    def _step(self, job: Job) -> None:
        if self.job is not job or self.step_s is None:
            return
        if not self.frozen:
            self.steps += 1
            if job.rpc is not None:
                job.rpc.progress()
            self._tell_status()
        self.clock.after(self.step_s, partial(self._step, job))

    def _end(self, job: Job, planned_s: float) -> None:
        if self.job is not job or self.frozen or job.ends_s != planned_s:
            return
        rpc, poison = job.rpc, "" if job.rpc is None else job.rpc.input_key.partition("/")[0]
        code, reason = self.fails_with or ev.Code.OK, self.fails_because
        if rpc is not None and poison in self.poisons:
            rpc.poisoned, ends = True, self.poisons[poison]
            if ends is None:
                self.kill()
                if self.restarts_in_s is not None:
                    self.clock.after(self.restarts_in_s, self.boot_up)
                return
            code, reason = ends, WorkerReason.INPUT_FAILED if ends is ev.Code.FAILED_PRECONDITION else ""
        self.job = None
        self.computed += 1
        self._tell_status()
        if rpc is not None:
            rpc.answer(code, reason)
