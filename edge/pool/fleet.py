"""The endpoints together: when each is probed, what is heard of it, which are free, what is logged."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.agenda import Agenda
from edge.pool.config import HealthCheckConfig, PoolConfig, Target
from edge.pool.endpoint import Endpoint, State
from edge.pool.former import Former
from edge.pool.leases import Leases
from edge.pool.outbox import Outbox
from edge.pool.picker import Ranks
from edge.pool.poison import Break
from edge.pool.sleep import Sleep

Standing = tuple[State, ev.Cause | None]


def _nobody_is_told(_endpoint: Endpoint, _now_s: float, _input_key: str) -> None:
    """Until somebody wants to be."""


class Fleet:
    """All endpoints, by target: those of the configuration in its order, then those that are leaving."""

    def __init__(
        self,
        config: PoolConfig,
        targets: Sequence[Target],
        *,
        chance: random.Random,
        outbox: Outbox,
        agenda: Agenda,
        leases: Leases,
        sleep: Sleep,
    ) -> None:
        self.health: HealthCheckConfig = config.health
        self.ranks = Ranks()
        self.changed: Callable[[Endpoint, float, str], None] = _nobody_is_told
        """Told of every endpoint whose state or cause is another than before; takes the moment and, if a call brought
        it about, what names its input."""
        self._chance = chance
        self._outbox = outbox
        self._agenda = agenda
        self._leases = leases
        self._sleep = sleep
        self._turns = 0
        self._leaving: set[str] = set()
        self._back_s = -math.inf
        """End of the first cooldown that ends, until something changes."""
        self._all_cool = False
        """Whether everybody is in one."""
        self._former = Former()
        self.by_target = {target.address: self.make(target, -math.inf) for target in targets}

    def __repr__(self) -> str:
        """Every endpoint with its state."""
        return f"<Fleet {' '.join(map(repr, self.by_target.values()))}>"

    def make(self, target: Target, now_s: float) -> Endpoint:
        """A new endpoint, not yet of the fleet; at a known address, with what its failures have earned it there."""
        endpoint = Endpoint(target.address, primary=target.primary, health=self.health, name=target.name)
        self._to_the_end(endpoint)
        known = self._former.take(target.address, now_s, kept_s=self.health.cooldown_max_seconds)
        if known is not None:
            former, lease = known
            endpoint.succeed(former, now_s)
            if lease is not None:
                self._leases.restore(target.address, lease)
            cooldown_s = round(endpoint.cooldown_left_s(now_s), 3)
            call_id = "" if lease is None else lease.call_id
            facts = {"cooldown_s": cooldown_s, "ejections": endpoint.ejections, "call_id": call_id}
            self.note(endpoint, now_s, "back at its address: what it did there still counts", "worker_returns", **facts)
        return endpoint

    def _to_the_end(self, endpoint: Endpoint) -> None:
        """Everybody else is to get a call before it."""
        self._turns += 1
        endpoint.turn = self._turns

    def members(self) -> tuple[Endpoint, ...]:
        """Those that are not leaving, in the order of the configuration."""
        return tuple(endpoint for endpoint in self.by_target.values() if not endpoint.leaving)

    @property
    def size(self) -> int:
        """How many are not leaving."""
        return len(self.by_target) - len(self._leaving)

    def leave(self, endpoint: Endpoint, now_s: float) -> None:
        """It gets no new calls, and is closed as soon as nothing of ours runs there."""
        endpoint.leaving = True
        self._leaving.add(endpoint.target)
        self.place(endpoint, now_s)

    def stay(self, endpoint: Endpoint, now_s: float) -> None:
        """It is of the configuration, be it new, known or called back."""
        endpoint.leaving = False
        self._leaving.discard(endpoint.target)
        self.place(endpoint, now_s)

    # Who may be used

    def place(self, endpoint: Endpoint, now_s: float) -> None:
        """Something about it or its slot is different: let the ranks know."""
        self._back_s = -math.inf
        lease = self._leases.on(endpoint.target)
        free = lease is None and not endpoint.taken and endpoint.busy_until_s <= now_s
        self.ranks.place(endpoint, free=free, slow=lease is not None and lease.slow)
        if endpoint.leaving and lease is None:
            self.close(endpoint, now_s)

    def used(self, endpoint: Endpoint, now_s: float) -> None:
        """It gets a call."""
        self.place(endpoint, now_s)  # first out of the line, where its turn is its place
        self._to_the_end(endpoint)

    def busy(self, endpoint: Endpoint, until_s: float) -> None:
        """It refused as busy: leave it alone until then."""
        endpoint.busy_until_s = until_s
        self._agenda.at(until_s, partial(self._busy_over, endpoint))

    def _busy_over(self, endpoint: Endpoint, now_s: float) -> None:
        if self._is_here(endpoint):
            self.place(endpoint, now_s)

    def close(self, endpoint: Endpoint, now_s: float) -> None:
        """It has left, and nothing of ours runs there."""
        if self._is_here(endpoint):
            del self.by_target[endpoint.target]
            self._leaving.discard(endpoint.target)
            self.ranks.remove(endpoint)
            self._former.keep(endpoint, self._leases.forget(endpoint.target), now_s)
            self._outbox.add(ev.Log("info", "worker_left", {"worker": endpoint.target}))
            self._outbox.add(ev.Close(endpoint.target))

    def _is_here(self, endpoint: Endpoint) -> bool:
        """Whether it has not left, be it that its address has come back since."""
        return self.by_target.get(endpoint.target) is endpoint

    def back_in_s(self, now_s: float) -> float:
        """Soonest that one may be back, in s, as a promise to clients when nobody is online."""
        if now_s >= self._back_s:
            ends = [e.cooldown_until_s for e in self.members() if e.cooldown_left_s(now_s) > 0]
            self._back_s = min(ends, default=math.inf)
            self._all_cool = 0 < len(ends) == len(self.members())
        interval_s = math.inf if self._all_cool else self.health.interval_seconds
        return min(self._back_s - now_s, interval_s)

    # Probes

    def start(self, endpoints: Sequence[Endpoint], now_s: float) -> None:
        """Open these, and have their first probes slightly spread."""
        step_s = min(fixed.START_STEP_S, fixed.START_SPREAD_S / max(1, len(endpoints)))
        for endpoint in endpoints:
            self._outbox.add(ev.Open(endpoint.target))
        for number, endpoint in enumerate(endpoints):
            self.probe_at(endpoint, now_s + number * step_s)

    def probe_at(self, endpoint: Endpoint, at_s: float) -> None:
        """Have it probed at this moment, or before. One that is being probed waits for the end of that."""
        if at_s < endpoint.next_probe_s:
            endpoint.next_probe_s = at_s
            if not endpoint.probing:
                self._plan(endpoint)

    def _plan(self, endpoint: Endpoint) -> None:
        self._agenda.at(endpoint.next_probe_s, partial(self._probe, endpoint))

    def _probe(self, endpoint: Endpoint, now_s: float) -> None:
        """Send a probe, if its time has come: it may have been moved forward, and been sent."""
        if endpoint.next_probe_s <= now_s and not endpoint.probing and self._is_here(endpoint):
            endpoint.probe_began()
            endpoint.probing_since_s, endpoint.next_probe_s = now_s, math.inf
            self._outbox.add(ev.Probe(endpoint.target))

    def probe_ended(self, event: ev.ProbeEnded) -> None:
        """Judge it and plan the next one."""
        now_s, endpoint = event.now_s, self.by_target.get(event.endpoint)
        if endpoint is None or not endpoint.probing:
            return  # it has left, or has come back since
        lease = self._leases.on(endpoint.target)
        if event.result is ev.ProbeResult.GOOD and lease is not None and lease.unaccounted:
            evidence = f"no status says whether {lease.call_id} still holds its slot"
            event = replace(event, result=ev.ProbeResult.ERROR, evidence=evidence)
        before, were_bad = endpoint.standing, endpoint.probes_bad
        slept = endpoint.probing_since_s <= self._sleep.woke_s
        endpoint.probe_ended(now_s, event.result, event.evidence, slept=slept)
        self.note_change(endpoint, before, now_s)
        cooldown_left_s = endpoint.cooldown_left_s(now_s)
        if cooldown_left_s > 0 and endpoint.probes_bad is not were_bad:
            self._note_turn(endpoint, event, cooldown_left_s)
        settled = event.result is ev.ProbeResult.GOOD and (endpoint.online or cooldown_left_s > 0)
        wait_s = self._jittered(self.health.interval_seconds if settled else fixed.REPROBE_S)
        if endpoint.connection_lost:
            wait_s = 0.0
        if cooldown_left_s > 0:
            wait_s = min(wait_s, cooldown_left_s)
        endpoint.next_probe_s = min(endpoint.next_probe_s, now_s + wait_s)
        self._plan(endpoint)

    def _note_turn(self, endpoint: Endpoint, event: ev.ProbeEnded, cooldown_left_s: float) -> None:
        """In its cooldown probes decide nothing, but what they find there may be that the process is gone."""
        how = "bad" if endpoint.probes_bad else "good again"
        what = f"probes {how}: {event.result.name} {event.evidence}".rstrip()
        facts = {"result": event.result.name, "evidence": event.evidence, "cooldown_s": round(cooldown_left_s, 3)}
        event_name = "probes_bad" if endpoint.probes_bad else "probes_good"
        self.note(endpoint, event.now_s, what, event_name, **facts)

    def _jittered(self, wait_s: float) -> float:
        return wait_s * (1 + fixed.PROBE_JITTER * (2 * self._chance.random() - 1))

    def reconfigure(self, health: HealthCheckConfig, now_s: float) -> None:
        """Other thresholds and times: a shorter interval and a shorter cooldown begin now."""
        self.health = health
        for endpoint in self.by_target.values():
            endpoint.health = health
            if endpoint.state is State.EJECTED:
                self.probe_at(endpoint, now_s + endpoint.cooldown_left_s(now_s))
            self.probe_at(endpoint, now_s + self._jittered(health.interval_seconds))

    def password_changed(self, now_s: float) -> None:
        """Whoever was out because of the old one may try again at once."""
        for endpoint in self._former:
            endpoint.password_changed()
        for endpoint in self.by_target.values():
            if endpoint.password_changed():
                self.note(endpoint, now_s, "password changed: probed at once", "probed_for_password")
                self.probe_at(endpoint, now_s)

    def pardon(self, broken: Break, now_s: float, to_blame: str) -> None:
        """The ejection by this break was not the worker's fault: it makes no later one longer; if it still lasts it
        ends, and the next good probe brings the worker back.
        """
        endpoint = self.by_target.get(broken.worker)
        if endpoint is None or not endpoint.pardon(broken.at_s):
            return
        self.note(endpoint, now_s, f"pardoned: {to_blame} is to blame", "ejection_pardoned", to_blame=to_blame)
        if endpoint.state is State.EJECTED:
            self.probe_at(endpoint, now_s)

    # What is heard

    def health_told(self, event: ev.HealthTold) -> None:
        """`Watch` takes out at once, and brings nothing back but a probe."""
        now_s, endpoint = event.now_s, self.by_target.get(event.endpoint)
        if endpoint is None:
            return
        before = endpoint.standing
        if not event.serving:
            endpoint.told_down(now_s, None, "Watch: NOT_SERVING")
        else:
            endpoint.told_serving()
            self._probe_for_return(endpoint, now_s)
        self.note_change(endpoint, before, now_s)

    def connection_lost(self, event: ev.ConnectionLost) -> None:
        """Probe at once; refused as well means gone."""
        endpoint = self.by_target.get(event.endpoint)
        if endpoint is not None:
            endpoint.connection_lost = True
            self.probe_at(endpoint, event.now_s)

    def status_told(self, endpoint: Endpoint, event: ev.StatusTold, *, ours: bool) -> None:
        """The worker's own account of itself. `ours`: the call in its slot is one of this edge."""
        now_s = event.now_s
        before = endpoint.standing
        new_boot = endpoint.boot_seen(now_s, event.boot_id)
        if event.cause is not None:
            endpoint.told_down(now_s, event.cause, f"status: {event.evidence}")
        elif endpoint.told_serving() or new_boot:
            self._probe_for_return(endpoint, now_s)
        if new_boot:
            self.note(endpoint, now_s, f"new process {event.boot_id}", "worker_booted", boot_id=event.boot_id)
        self.note_change(endpoint, before, now_s)
        endpoint.capabilities, endpoint.lacks = event.capabilities, event.lacks
        # Our own calls are known by their leases; what a late message says of one that has ended means nothing.
        endpoint.taken = event.taken and not ours
        endpoint.stage = event.stage if event.taken else ""
        if not event.taken:
            endpoint.busy_until_s = now_s
        self.place(endpoint, now_s)

    def status_lost(self, event: ev.StatusLost) -> None:
        """What it said of its slot is out of date."""
        endpoint = self.by_target.get(event.endpoint)
        if endpoint is not None:
            endpoint.taken, endpoint.stage = False, ""
            self._leases.unheard(endpoint.target)
            self.place(endpoint, event.now_s)

    def _probe_for_return(self, endpoint: Endpoint, now_s: float) -> None:
        """Something speaks for it: see whether it may come back. A cooldown ends with a probe of its own."""
        if not endpoint.online and endpoint.cooldown_left_s(now_s) == 0:
            self.probe_at(endpoint, now_s)

    # What is told

    def note(self, endpoint: Endpoint, now_s: float, what: str, event: str, **facts: object) -> None:
        """A decision about it: one entry in its history, one line."""
        endpoint.remember(now_s, what)
        self._outbox.add(ev.Log("info", event, {"worker": endpoint.target, **facts}))

    def note_change(
        self, endpoint: Endpoint, before: Standing, now_s: float, *, call_id: str = "", input_key: str = ""
    ) -> None:
        """One line, one entry in its history and a word to the rest of the pool when state or cause are other ones.

        `call_id`, `input_key`: of the call that brought it about.
        """
        if endpoint.standing == before:
            return
        self.changed(endpoint, now_s, input_key)
        cause = "" if endpoint.cause is None else str(endpoint.cause)
        fields: dict[str, object] = {
            "worker": endpoint.target,
            "from": str(before[0]),
            "to": str(endpoint.state),
            "cause": cause,
            "evidence": endpoint.evidence,
            "cooldown_s": round(endpoint.cooldown_left_s(now_s), 3),
            "ejections": endpoint.ejections,
        }
        if call_id:
            fields["call_id"] = call_id
        self._outbox.add(ev.Log("info" if endpoint.online else "warning", "worker_state", fields))
        because = f" {cause}" if cause else ""
        endpoint.remember(now_s, f"{before[0]} → {endpoint.state}{because}: {endpoint.evidence}")
        self.place(endpoint, now_s)

    def startup_over(self) -> None:
        """Say what the pool begins with."""
        members, health = self.members(), self.health
        facts = {
            "interval_s": health.interval_seconds,
            "timeout_s": health.timeout_seconds,
            "unhealthy_threshold": health.unhealthy_threshold,
            "healthy_threshold": health.healthy_threshold,
            "cooldown_s": health.cooldown_seconds,
            "cooldown_max_s": health.cooldown_max_seconds,
            "workers_total": len(members),
            "workers_online": sum(e.online for e in members),
            "workers_primary": sum(e.primary for e in members),
            "workers_primary_online": sum(e.online and e.primary for e in members),
        }
        self._outbox.add(ev.Log("info", "pool_started", facts))
        never = [e.target for e in members if not e.ever_online]
        if never:
            self._outbox.add(ev.Log("warning", "workers_never_online", {"workers": never}))
