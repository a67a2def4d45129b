"""The pool itself: one object, events in, decisions out.

Each handler changes state; after every event waiting requests get free workers. What belongs together stands in one
module each: who is of the pool (`roster`), how each endpoint stands (`fleet`, `endpoint`), requests and their patience
(`requests`, `admission`), who gets which worker (`dispatch`, `picker`, `leases`), what an attempt's end means
(`attempts`, `passive`), whose fault it was (`blame`, `poison`, `clients`), what is everybody's (`brake`), and what is
our own (`sleep`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from edge.pool import events as ev
from edge.pool.agenda import Agenda
from edge.pool.attempts import Attempts
from edge.pool.blame import Blame
from edge.pool.brake import Brake
from edge.pool.config import PoolConfig, Target
from edge.pool.dispatch import Dispatch
from edge.pool.endpoint import Endpoint
from edge.pool.figures import PoolFigures, standings
from edge.pool.fleet import Fleet
from edge.pool.leases import Leases
from edge.pool.outbox import Outbox
from edge.pool.requests import Requests
from edge.pool.roster import Roster
from edge.pool.sleep import Sleep
from edge.pool.snapshot import EndpointSnapshot, PoolSnapshot


class Pool:
    """Endpoints, queues and leases.

    `seed` feeds the jitter of probes and cooldowns. `edge_id` begins the id of every call submitted here, so that a
    worker's word about its slot tells our own calls from those of other edges. `targets`: the endpoints to begin with;
    None: the addresses in `config.workers`. There may be none, for names that lead nowhere yet.
    """

    def __init__(
        self, config: PoolConfig, *, seed: int | None, edge_id: str, targets: Sequence[Target] | None = None
    ) -> None:
        self._edge_id = edge_id
        chance = random.Random(seed)  # noqa: S311  (jitter, not a secret)
        outbox = self._outbox = Outbox()
        agenda = self._agenda = Agenda(outbox)
        leases = self._leases = Leases()
        sleep = self._sleep = Sleep()
        begin_with = config.targets() if targets is None else targets
        fleet = self._fleet = Fleet(
            config, begin_with, chance=chance, outbox=outbox, agenda=agenda, leases=leases, sleep=sleep
        )
        requests = self._requests = Requests(config.dispatch, fleet=fleet, outbox=outbox, agenda=agenda)
        blame = self._blame = Blame(outbox)
        brake = self._brake = Brake(fleet=fleet, outbox=outbox, agenda=agenda)
        fleet.changed = brake.changed
        self._roster = Roster(config, fleet=fleet, leases=leases, outbox=outbox, agenda=agenda)
        self._attempts = Attempts(
            requests=requests,
            fleet=fleet,
            leases=leases,
            blame=blame,
            brake=brake,
            sleep=sleep,
            outbox=outbox,
            agenda=agenda,
            chance=chance,
        )
        self._dispatch = Dispatch(
            requests=requests, fleet=fleet, leases=leases, blame=blame, brake=brake, outbox=outbox
        )
        self._handlers: dict[type, Callable[[Any], object]] = {
            ev.Started: lambda event: fleet.start(fleet.members(), event.now_s),
            ev.StartupOver: lambda _: fleet.startup_over(),
            ev.Configured: self._on_configured,
            ev.PasswordChanged: self._on_password_changed,
            ev.Tick: lambda event: agenda.woken(event.now_s),
            ev.Woke: self._on_woke,
            ev.Submitted: self._on_submitted,
            ev.CallProgressed: self._attempts.progressed,
            ev.CallEnded: self._attempts.ended,
            ev.CallGone: self._attempts.gone,
            ev.ProbeEnded: fleet.probe_ended,
            ev.HealthTold: fleet.health_told,
            ev.ConnectionLost: fleet.connection_lost,
            ev.StatusTold: self._on_status_told,
            ev.StatusLost: fleet.status_lost,
        }

    def __repr__(self) -> str:
        """States, queues, leases."""
        return f"<Pool {self._fleet!r} {self._requests.admission!r} {self._leases!r}>"

    def handle(self, event: ev.Event) -> list[ev.Decision]:
        """Take one event in and say what is to be done, in order."""
        now_s = event.now_s
        self._handlers[type(event)](event)
        self._agenda.run(now_s)
        if self._roster.outgoing:
            self._roster.settle(now_s)
        if self._requests.admission.anyone_waits:
            self._dispatch.run(now_s)
        return self._outbox.empty()

    # What the shell may ask without an event

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Those that are of the pool, in the order of the configuration; to be read only."""
        return self._fleet.members()

    def has_room(self, *, slow: bool) -> bool:
        """Whether a call submitted now comes inside at once, so that its size does not matter."""
        return self._requests.admission.has_room(slow=slow)

    def ahead_of(self, call_id: str) -> int:
        """How many calls of its class are to get a worker before this one, which is not answered yet."""
        return self._requests.admission.ahead_of(self._requests.by_id[call_id])

    @property
    def minds_inputs(self) -> bool:
        """Whether any input is remembered, so that `Submitted.input_key` is looked at."""
        return len(self._blame.inputs) > 0

    def snapshot(self, now_s: float) -> PoolSnapshot:
        """Everything an operator may want to see of this moment."""
        endpoints = self._fleet.by_target.values()
        admission = self._requests.admission
        return PoolSnapshot(
            endpoints=tuple(EndpointSnapshot.of(e, self._leases.on(e.target), now_s) for e in endpoints),
            waiting_fast=admission.waiting(slow=False),
            waiting_slow=admission.waiting(slow=True),
            waiting_outside=admission.outside,
            inside=admission.inside,
            braked=self._brake.on,
            growth_capable=self._growth_capable(),
            shared_cause=str(self._brake.cause or ""),
        )

    def figures(self) -> PoolFigures:
        """How many there are of each kind; with a thousand workers within a millisecond."""
        endpoints = self._fleet.by_target.values()
        admission = self._requests.admission
        return PoolFigures(
            standings=standings(endpoints),
            online={e.target: e.online for e in endpoints},
            growth_capable=self._growth_capable(),
            braked=self._brake.on,
            waiting_fast=admission.waiting(slow=False),
            waiting_slow=admission.waiting(slow=True),
            outside=admission.outside,
            inside=admission.inside,
            slots_busy=len(self._leases),
        )

    def probes_late_s(self, now_s: float) -> float:
        """By how much the latest of all probes is late, in s; 0 when none is, and where nobody is to be probed."""
        return max(0.0, max((e.probe_late_s(now_s) for e in self._fleet.by_target.values()), default=0.0))

    def _growth_capable(self) -> int:
        return sum(e.online and "growth" in e.capabilities for e in self._fleet.by_target.values())

    # Events that concern several parts

    def _on_woke(self, event: ev.Woke) -> None:
        self._sleep.over(event)
        self._outbox.add(ev.Log("warning", "edge_slept", {"slept_s": round(event.slept_s, 3)}))

    def _on_submitted(self, event: ev.Submitted) -> None:
        request = self._requests.submitted(event)
        refused_s = self._blame.refuses_for_s(request, event.now_s)
        if refused_s > 0:
            self._blame.note_refusal(request)
            self._requests.fail(request, "POISON_INPUT", event.now_s, retry_after_s=refused_s)
        else:
            self._requests.arrive(request, event.now_s, stated=event.timeout_s is not None)

    def _on_configured(self, event: ev.Configured) -> None:
        self._fleet.reconfigure(event.config.health, event.now_s)
        self._requests.reconfigure(event.config.dispatch, event.now_s)
        self._roster.reconfigure(event.config, event.targets, event.now_s)
        self._brake.settle(event.now_s)

    def _on_password_changed(self, event: ev.PasswordChanged) -> None:
        self._attempts.password_changed(event.now_s)
        self._fleet.password_changed(event.now_s)
        self._brake.password_changed(event.now_s)

    def _on_status_told(self, event: ev.StatusTold) -> None:
        endpoint = self._fleet.by_target.get(event.endpoint)
        if endpoint is None:
            return  # it has left
        call_id = event.call_id if event.taken else ""
        self._blame.seen(event)
        self._attempts.status_told(event)
        self._attempts.slot_told(event.endpoint, event.asked_s, call_id, event.now_s)
        self._fleet.status_told(endpoint, event, ours=call_id.startswith(f"{self._edge_id}-"))
