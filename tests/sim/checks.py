"""What must always hold, checked at every event and every decision of one edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.endpoint import Endpoint, State
from hairmesh.wire import WorkerReason
from tests.sim.blame import Poisons, SharedCause
from tests.sim.books import check_books
from tests.sim.heard import OWN_WORDS, STRIKES, Heard
from tests.sim.held import Holds
from tests.sim.patience import Budget, check_patience, check_time
from tests.sim.rules import require
from tests.sim.turns import able_and_idle, check_idle, check_turn

if TYPE_CHECKING:
    from tests.sim.edge import Client, SimEdge

CALLS = (ev.Submitted, ev.CallEnded, ev.CallGone, ev.Configured)
_BY_INPUT = frozenset({ev.Code.UNAVAILABLE, ev.Code.INTERNAL, ev.Code.UNKNOWN, ev.Code.DATA_LOSS})
"""Failures that an input can bring about."""
ANSWERS = (ev.Start, ev.Finish, ev.Fail)


class Checks:
    """The rules of one edge. Each method is called before what it is named after happens."""

    def __init__(self, edge: SimEdge) -> None:
        self._edge = edge
        self._clock = edge.clock
        self.heard: dict[str, Heard] = {}
        self._former: dict[str, tuple[float, Heard]] = {}
        """Of workers that have left: when, and what was heard of them."""
        self._running: dict[str, Client] = {}
        """By worker."""
        self._full_time: dict[str, bool] = {}
        """By call: whether its last attempt had all the time that one may take."""
        self._ended_ok: dict[str, bool] = {}
        """By call: whether its last end is one that may be handed to a client."""
        self._poisons = Poisons()
        self._brake = SharedCause()
        self._password_s = -math.inf
        self.holds = Holds()
        self._budget = Budget()
        self._online: set[str] = set()
        self._blamed = ""
        """The worker that the event now handled speaks against."""
        self._before: tuple[str, Heard] | None = None
        """That worker as it was."""
        self._slept_s = self._woke_s = -math.inf
        """Beginning and end of the edge's last standstill."""
        self._forgiven: set[str] = set()
        """Workers that lost a call by it."""
        self._broken_by: dict[str, set[str]] = {}
        """By input: the workers that failed on it."""

    def _require(self, holds: object, invariant: str, message: str) -> None:
        require(self._edge, holds, invariant, message)

    # Events, before the pool hears of them

    def hear(self, event: ev.Event) -> None:
        """What follows from what is about to be told."""
        now_s = event.now_s
        if not isinstance(event, ev.CallEnded):
            self._blamed, self._before = "", None
        match event:
            case ev.Woke():
                self._slept_s, self._woke_s = now_s - event.slept_s, now_s
                self._forgiven.clear()
            case ev.CallProgressed(_, call_id) if call_id in self._edge.open:
                self._edge.open[call_id].moved_s = now_s
            case ev.StatusTold(endpoint=target) if target in self.heard:
                self._saw(event)
                self.holds.seen(target, event.boot_id, event.asked_s)
                self.heard[target].status(event, ours=f"{self._edge.edge_id}-")
            case ev.HealthTold(_, target, serving) if target in self.heard and not serving:
                self.heard[target].bad_news(now_s, "Watch")
            case ev.ProbeEnded(_, target, result) if target in self.heard:
                unheard = result not in {ev.ProbeResult.GOOD, ev.ProbeResult.NOT_SERVING, ev.ProbeResult.AUTH}
                if not (unheard and self.heard[target].probed_s <= self._woke_s):
                    self.heard[target].probe_ended(now_s, result)
            case ev.ConnectionLost(_, target) if target in self.heard:
                self.heard[target].lost = True
            case ev.StatusLost(_, target) if target in self.heard:
                self.heard[target].status_lost()
            case ev.Configured(config=config):
                for heard in self._everyone():
                    heard.reconfigured(now_s, config.health)
            case ev.PasswordChanged():
                self._password_s = now_s
                for heard in self._everyone():
                    heard.pardon(now_s)
            case ev.CallGone(_, call_id):
                self._brake.over(call_id)
                for target, client in list(self._running.items()):
                    if client.call_id == call_id:
                        del self._running[target]

    def _saw(self, event: ev.StatusTold) -> None:
        """Whether its slot's call moves."""
        client = self._running.get(event.endpoint)
        if client is not None and client.call_id == event.call_id:
            seen = (event.steps, event.stage)
            if client.seen not in {None, seen}:
                client.moved_s = event.now_s
            client.seen = seen

    def _everyone(self) -> list[Heard]:
        """Those that have left as well."""
        return [*self.heard.values(), *(heard for _, heard in self._former.values())]

    def opened(self, target: str) -> None:
        """An endpoint joins."""
        self._require(target not in self.heard, "offline", f"{target} is opened twice")
        health, now_s = self._edge.config.health, self._clock.now_s
        left_s, former = self._former.pop(target, (-math.inf, Heard(health)))
        known = now_s - left_s <= health.cooldown_max_seconds
        self.heard[target] = former.comes_back(health, now_s) if known else Heard(health)

    def closed(self, target: str) -> None:
        """It leaves."""
        self._require(target in self.heard, "offline", f"{target} is closed twice")
        self._require(target not in self._running, "lost", f"{target} is closed under a call")
        self._former[target] = self._clock.now_s, self.heard.pop(target)

    def probed(self, target: str) -> None:
        """A probe is sent."""
        self.heard[target].probe_began(self._clock.now_s)

    def submitted(self, client: Client) -> None:
        """A request arrives."""
        client.known = self._edge.pool.minds_inputs or self._poisons.condemned(client.input_key, self._clock.now_s)
        self._budget.submitted()

    def forgives(self, target: str, code: ev.Code, reason: str) -> bool:
        """Whether a call that ends so on `target` lost its connection by a standstill of the edge."""
        lost = code is ev.Code.UNAVAILABLE and not reason and target not in self._forgiven
        return lost and self._clock.now_s <= self._woke_s + fixed.WAKING_S

    def ended(self, client: Client, target: str, code: ev.Code, reason: str, *, poisoned: bool) -> None:
        """An attempt ended. `poisoned`: by what its input did to the worker."""
        del self._running[target]
        self._before = None
        self._brake.over(client.call_id)
        now_s, heard, began_s = self._clock.now_s, self.heard[target], client.started[-1][0]
        poisoned &= code in _BY_INPUT  # else it was cut off before, and knows nothing of that
        own_word = code is ev.Code.UNAVAILABLE and reason in OWN_WORDS
        drains = code is ev.Code.UNAVAILABLE and reason == "DRAINING"
        strikes = code in STRIKES and not own_word and not drains
        if code is ev.Code.DEADLINE_EXCEEDED:
            took_s, gave_s = now_s - began_s, client.attempt_s
            moved, late = client.moved_s >= began_s + fixed.PROGRESS_SHARE * gave_s, took_s > gave_s + fixed.LATE_S
            late |= self._slept_s <= began_s + gave_s <= self._woke_s
            least_s = min(fixed.EXPIRED_SHARE * gave_s, gave_s - fixed.EXPIRED_SLACK_S)
            expired = took_s >= least_s  # else the worker says so of its own accord
            strikes = not expired or (self._full_time[client.call_id] and not moved and not late)
        if self.forgives(target, code, reason):
            self._forgiven.add(target)
            heard.lost, strikes = True, False
        self._blamed = target if strikes or own_word or drains else ""
        passed_on = code in {ev.Code.FAILED_PRECONDITION, ev.Code.INVALID_ARGUMENT} and reason != ""
        self._ended_ok[client.call_id] = code is ev.Code.OK or passed_on
        input_failed = passed_on and reason == WorkerReason.INPUT_FAILED
        on_trial = self._brake.on and target in self._on_trial()  # then nobody's input is to blame
        if not on_trial and (input_failed or (strikes and code in _BY_INPUT and not heard.draining)):
            died = code is ev.Code.UNAVAILABLE
            self.holds.broke(client, target, now_s=now_s, boot=heard.boot, died=died)
        if code is ev.Code.OK or (passed_on and not input_failed):
            self.holds.went_well(client, target)
        if code is ev.Code.OK:
            heard.call_good()
            self._poisons.went_well()
        elif strikes:
            self._struck(client, target, auth=code is ev.Code.UNAUTHENTICATED, poisoned=poisoned)
        elif own_word:
            heard.bad_news(now_s, reason)
        elif drains:
            heard.bad_news(now_s, reason)
            heard.drains(now_s)
        elif code is ev.Code.RESOURCE_EXHAUSTED and reason == "BUSY":
            heard.busy_until_s = now_s + fixed.BUSY_WAIT_MIN_S

    def _struck(self, client: Client, target: str, *, auth: bool, poisoned: bool) -> None:
        now_s, heard, began_s = self._clock.now_s, self.heard[target], client.started[-1][0]
        certain = heard.boot != "" and began_s >= heard.booted_s and not heard.draining
        on_trial = self._brake.on and target in self._on_trial()
        self.holds.something_broke(client.client_key, braked=self._brake.on)
        if not poisoned or on_trial:
            self._poisons.something_else_broke()
        elif certain:
            client.broke += 1
            if not self.holds.may_be(client.client_key, now_s):
                self._poisons.broke(client.input_key, target, began_s=began_s, now_s=now_s)
        if auth and began_s <= self._password_s:
            heard.spared(now_s, began_s)
            return
        self._before = target, replace(heard, struck_by=[*heard.struck_by])
        self._broken_by.setdefault(client.input_key, set()).add(target)
        if certain and not auth and target in self._online:
            self._brake.out(now_s, target, client.input_key)
        cause = ev.Cause.AUTH if auth else ev.Cause.PASSIVE
        short = on_trial or (self._brake.on and self._brake.cause == cause)
        shortest_s = fixed.BRAKE_COOLDOWN_S if short else math.inf
        by = client.input_key, client.client_key
        heard.struck(now_s, began_s=began_s, auth=auth, shortest_s=shortest_s, by=by)

    def _on_trial(self) -> set[str]:
        return {each.target for each in self._edge.pool.endpoints() if each.on_trial}

    def logged(self, log: ev.Log) -> None:
        """The pool says what it has concluded."""
        now_s, facts = self._clock.now_s, log.fields
        match log.event:
            case "client_held":
                client = self._edge.clients[str(facts["call_id"])]
                wrong = self.holds.begins(client, str(facts["worker"]), now_s)
                self._require(not wrong, "held", wrong)
            case "worker_state" if facts["to"] == State.SERVING and facts["from"] != State.EJECTED:
                self.holds.is_well(str(facts["worker"]))
            case "worker_spared":
                self._spared(str(facts["worker"]), self._edge.clients[str(facts["call_id"])])
            case "ejection_pardoned":
                self._pardoned(str(facts["worker"]))
            case "slot_not_returned":
                self.heard[str(facts["worker"])].slot_missed(str(facts["call_id"]))
            case "shared_cause":
                self._poisons.something_else_broke()
                self.holds.something_broke("", braked=True)
                wrong = self._brake.begins(now_s, self.heard, facts)
                self._require(not wrong, "brake", wrong)
            case "shared_cause_over":
                self._brake.ends(now_s)

    def _spared(self, target: str, client: Client) -> None:
        """A call is said to have failed by the fault of its client, which is held."""
        held = self.holds.may_be(client.client_key, self._clock.now_s)
        self._require(held, "cooldown", f"{target} is spared, and {client.client_key} is not held")
        self._require(self._before, "cooldown", f"{target} is spared, and nothing failed on it")
        if self._before is not None:
            _, before = self._before
            self.heard[target] = before
            self._brake.not_out(target)
            before.spared(self._clock.now_s, client.started[-1][0])

    def _pardoned(self, target: str) -> None:
        """An ejection is said to be the doing of an input, or of a held client."""
        heard = self.heard[target]
        for input_key, client_key in heard.struck_by:
            broken = self._broken_by.get(input_key, set())
            known = len(broken) >= fixed.POISON_WORKERS or self.holds.may_be(client_key, self._clock.now_s)
            self._require(known, "cooldown", f"{target} is pardoned for {input_key}, which broke {sorted(broken)}")
        heard.excused(self._clock.now_s)

    # Decisions, before they are carried out

    def starts(self, client: Client, start: ev.Start) -> None:
        """An attempt is to start."""
        now_s, target = self._clock.now_s, start.endpoint
        call = f"{client.call_id} on {target}"
        self._require(client.waits and client.call_id in self._edge.open, "once", f"{call}: it runs, or is over")
        self._require(target in self.heard, "offline", f"{call}: not of the pool")
        heard, endpoint = self.heard[target], self._edge.endpoint(target)
        why = heard.forbids(now_s)
        self._require(not why, "cooldown" if why == "cooldown" else "offline", f"{call}: {why}")
        stays = target in self._edge.config.workers or endpoint.awaits_replacement
        self._require(stays, "offline", f"{call}: it has left the configuration")
        self._require(endpoint.online, "monitor", f"{call}: {endpoint!r} does not count as online")
        self._require(target not in client.failed_on, "retry", f"{call}: it has failed there")
        condemned = client.known and self._poisons.condemned(client.input_key, now_s)
        self._require(not condemned, "poison", f"{call}: its input has broken two workers")
        self._require(client.broke < fixed.POISON_WORKERS, "poison", f"{call}: it has broken two workers")
        if self._brake.on and endpoint.on_trial:
            wrong = self._brake.tries(client.call_id, now_s)
            self._require(not wrong, "brake", f"{call}: {wrong}")
        self._check_slot(call, target, heard)
        check_time(self._edge, client, start, call)
        check_turn(self._edge, self._running, client, endpoint, call)
        if self.holds:
            online = {each.target for each in self._edge.pool.endpoints() if each.online}
            self.holds.online(online, self._edge.config.workers, self._running)  # this very event may take one out
            wrong = self.holds.starts(client, target, now_s)
            self._require(not wrong, "held", f"{call}: {wrong}")
        self._running[target] = client
        client.attempt_s, client.moved_s, client.seen = start.timeout_s, -math.inf, None
        full_s = self._edge.config.dispatch.attempt_timeout_s(slow=client.slow)
        self._full_time[client.call_id] = start.timeout_s >= full_s

    def _check_slot(self, call: str, target: str, heard: Heard) -> None:
        worker = self._edge.world.worker(target)
        other = self._running.get(target)
        self._require(other is None, "slot", f"{call}: {other.call_id if other else ''} runs there")
        ours = worker.slot.startswith(f"{self._edge.edge_id}-")
        self._require(not ours, "slot", f"{call}: its thread still computes {worker.slot}")
        self._require(not heard.taken, "slot", f"{call}: another edge is known to be there")
        self._require(heard.busy_until_s <= self._clock.now_s, "slot", f"{call}: it has just refused as busy")

    def answers(self, client: Client, answer: str, *, needed_s: float | None = None) -> None:
        """A request is to be answered. `needed_s`: what it would take by measurements, where its patience is less."""
        call = f"{client.call_id}: {answer}"
        self._require(client.call_id in self._edge.open, "once", f"{call}, again or after it left")
        self._require(not client.running_on, "once", f"{call}, and it still runs")
        check_patience(self._edge, client, answer, measured=needed_s is not None)
        online = any(endpoint.online for endpoint in self._edge.pool.endpoints())
        self._require(answer != "NO_WORKER" or not online, "monitor", f"{call}, but one is online")
        if answer == "ok":
            self._require(self._ended_ok.get(client.call_id, False), "once", f"{call}, but no worker said so")

    # After each event

    def settled(self, event: ev.Event, decisions: Sequence[ev.Decision]) -> None:
        """All decisions are carried out."""
        edge, now_s = self._edge, self._clock.now_s
        endpoints = edge.pool.endpoints()
        online = {endpoint.target for endpoint in endpoints if endpoint.online}
        for target in online:
            if why := self.heard[target].forbids(now_s):
                self._require(False, why if why == "cooldown" else "monitor", f"{target} counts as online: {why}")
        for target in self._online - online - {self._blamed}:
            heard = self.heard.get(target)
            stated = heard is None or heard.unaccounted or heard.forbids(now_s)
            self._require(stated or target not in edge.config.workers, "needless", f"{target} is out for no reason")
        for target in online - self._online:
            self.heard[target].returned()
        self._online = online
        if self.holds:
            self.holds.online(online, edge.config.workers, self._running)
        if isinstance(event, ev.CallEnded):
            self._check_brake(endpoints)
            ended = edge.clients[event.call_id].started[-1][1]
            if ended in self.heard and self.heard[ended].in_doubt:
                self.heard[ended].settled(now_s, ejected=edge.state(ended) == State.EJECTED)
            self._budget.check(edge, event.call_id)
        waiting = len(edge.open) - len(self._running)
        self._require(online or not waiting, "monitor", "requests wait, and nobody is online")
        idle = able_and_idle(edge, self._running, endpoints, braked=self._brake.on) if waiting else set()
        books = isinstance(event, CALLS) or any(isinstance(each, ANSWERS) for each in decisions)
        if not (books or idle):
            return
        snapshot = edge.pool.snapshot(now_s)
        if books:
            check_books(edge, snapshot, self._running)
        if idle:
            check_idle(edge, snapshot, self._running, idle, [each for each in endpoints if each.online])

    def _check_brake(self, endpoints: Sequence[Endpoint]) -> None:
        out = {each.target for each in endpoints if each.cause is ev.Cause.PASSIVE and each.state is State.EJECTED}
        must = self._brake.must_be_on(out, len(endpoints))
        self._require(not must, "brake", f"{sorted(out)} of {len(endpoints)} went out, and nobody says why")
