"""What must always hold, checked at every event and every decision of one edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.endpoint import Endpoint, State
from tests.sim.blame import Poisons, SharedCause
from tests.sim.books import check_books, check_idle
from tests.sim.heard import OWN_WORDS, STRIKES, Heard
from tests.sim.rules import ViolationError

if TYPE_CHECKING:
    from tests.sim.edge import Client, SimEdge

SLACK_S = 0.01
"""By which an answer may be late, in s: what the wire takes."""
CALLS = (ev.Submitted, ev.CallEnded, ev.CallGone, ev.Configured)
_DIES_OF_POISON = frozenset({ev.Code.UNAVAILABLE, ev.Code.INTERNAL})
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
        self.held: set[str] = set()
        """Clients that were ever held to one worker."""
        self._saved = fixed.RETRY_BURST
        """Retries in the budget."""
        self._spent_s = 0.0
        self._online: set[str] = set()
        self._blamed = ""
        """The worker that the event now handled speaks against."""
        self._before: tuple[str, Heard] | None = None
        """That worker as it was."""
        self._broken_by: dict[str, set[str]] = {}
        """By input: the workers that failed on it."""

    def _require(self, holds: object, invariant: str, message: str) -> None:
        if not holds:
            raise ViolationError(invariant, f"{self._clock.now_s:.6f} {self._edge.edge_id}: {message}")

    # Events, before the pool hears of them

    def hear(self, event: ev.Event) -> None:
        """What follows from what is about to be told."""
        now_s = event.now_s
        if not isinstance(event, ev.CallEnded):
            self._blamed, self._before = "", None
        match event:
            case ev.CallProgressed(_, call_id) if call_id in self._edge.open:
                self._edge.open[call_id].moved_s = now_s
            case ev.StatusTold(endpoint=target) if target in self.heard:
                self._saw(event)
                self.heard[target].status(event, ours=f"{self._edge.edge_id}-")
            case ev.HealthTold(_, target, serving) if target in self.heard and not serving:
                self.heard[target].bad_news(now_s, "Watch")
            case ev.ProbeEnded(_, target, result) if target in self.heard:
                self.heard[target].probe_ended(now_s, result)
            case ev.ConnectionLost(_, target) if target in self.heard:
                self.heard[target].lost = True
            case ev.StatusLost(_, target) if target in self.heard:
                self.heard[target].taken = False
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
        self.heard[target].probe_began()

    def submitted(self, client: Client) -> None:
        """A request arrives."""
        client.condemned = self._poisons.condemned(client.input_key, self._clock.now_s)
        self._saved = min(fixed.RETRY_BURST, self._saved + fixed.RETRY_SHARE)

    def ended(self, client: Client, target: str, code: ev.Code, reason: str, *, poisoned: bool) -> None:
        """An attempt ended. `poisoned`: by what its input did to the worker."""
        del self._running[target]
        self._before = None
        self._brake.over(client.call_id)
        now_s, heard, began_s = self._clock.now_s, self.heard[target], client.started[-1][0]
        poisoned &= code in _DIES_OF_POISON  # else it was cut off before, and knows nothing of that
        own_word = code is ev.Code.UNAVAILABLE and reason in OWN_WORDS
        drains = code is ev.Code.UNAVAILABLE and reason == "DRAINING"
        strikes = code in STRIKES and not own_word and not drains
        if code is ev.Code.DEADLINE_EXCEEDED:
            moving_s = began_s + fixed.PROGRESS_SHARE * client.attempt_s
            strikes = self._full_time[client.call_id] and client.moved_s < moving_s
        self._blamed = target if strikes or own_word or drains else ""
        passed_on = code in {ev.Code.FAILED_PRECONDITION, ev.Code.INVALID_ARGUMENT} and reason != ""
        self._ended_ok[client.call_id] = code is ev.Code.OK or passed_on
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
        if not poisoned:
            self._poisons.something_else_broke()
        elif certain and not self._brake.on and client.client_key not in self.held:
            client.broke += 1
            self._poisons.broke(client.input_key, target, began_s=began_s, now_s=now_s)
        if client.client_key in self.held or (auth and began_s <= self._password_s):
            heard.spared(now_s, began_s)
            return
        self._before = target, replace(heard, struck_by=[*heard.struck_by])
        self._broken_by.setdefault(client.input_key, set()).add(target)
        if certain and not auth and target in self._online:
            self._brake.out(now_s, target, client.input_key)
        heard.struck(
            now_s, began_s=began_s, auth=auth, shortest_s=fixed.BRAKE_COOLDOWN_S if self._brake.on else math.inf
        )
        heard.struck_by.append((client.input_key, client.client_key))

    def logged(self, log: ev.Log) -> None:
        """The pool says what it has concluded."""
        now_s, facts = self._clock.now_s, log.fields
        if log.event == "client_held":
            client = self._edge.clients[str(facts["call_id"])]
            self.held.add(client.client_key)
            if self._before is not None:  # the very call that shows it may be the client's doing as well
                target, before = self._before
                self.heard[target] = before
                self._brake.not_out(target)
                before.spared(now_s, client.started[-1][0])
        elif log.event == "ejection_pardoned":
            self._pardoned(str(facts["worker"]))
        elif log.event == "shared_cause_over":
            self._brake.ends(now_s)
        elif log.event == "shared_cause":
            workers, total = facts["workers"], facts["workers_total"]
            assert isinstance(workers, list)
            assert isinstance(total, int)
            wrong = self._brake.begins(now_s, self.heard, workers, total)
            self._require(not wrong, "brake", wrong)

    def _pardoned(self, target: str) -> None:
        """An ejection is said to be the doing of an input, or of a held client."""
        heard = self.heard[target]
        for input_key, client_key in heard.struck_by:
            broken = self._broken_by.get(input_key, set())
            known = len(broken) >= fixed.POISON_WORKERS or client_key in self.held
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
        self._require(not client.condemned, "poison", f"{call}: its input has broken two workers")
        self._require(client.broke < fixed.POISON_WORKERS, "poison", f"{call}: it has broken two workers")
        if self._brake.on and endpoint.on_trial:
            wrong = self._brake.tries(client.call_id, now_s)
            self._require(not wrong, "brake", f"{call}: {wrong}")
        self._check_slot(call, target, heard)
        self._check_time(client, start, call)
        self._check_turn(client, endpoint, call)
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

    def _check_time(self, client: Client, start: ev.Start, call: str) -> None:
        full_s = self._edge.config.dispatch.attempt_timeout_s(slow=client.slow)
        self._require(0 < start.timeout_s <= full_s, "patience", f"{call}: {start.timeout_s} s for an attempt")
        late_s = self._clock.now_s + start.timeout_s - self._deadline_s(client)
        self._require(late_s <= SLACK_S, "patience", f"{call}: may run {late_s} s past its deadline")

    def _check_turn(self, client: Client, endpoint: Endpoint, call: str) -> None:
        edge = self._edge
        now_s, target = self._clock.now_s, endpoint.target
        online = [each for each in edge.pool.endpoints() if each.online]
        spill_s = edge.config.dispatch.spill_after_seconds
        spilled = False
        if not endpoint.primary:
            better = {each.target for each in online if each.primary} - client.failed_on
            spilled = spill_s is not None and now_s >= client.waits_since_s + spill_s
            spilled |= client.client_key in self.held
            self._require(not better or spilled, "priority", f"{call}: {sorted(better)} are online")
        fast_waits = False
        for other in edge.open.values():
            if other.running_on or other is client or (other.slow and not client.slow):
                continue
            fast_waits |= not other.slow
            if other.number > client.number or target in other.failed_on or spilled or other.client_key in self.held:
                continue
            if other.capability and other.capability not in self.heard[target].capabilities:
                continue
            self._require(False, "order", f"{call}: {other.call_id} came before")
        if client.slow and fast_waits and not spilled:
            sharing = [each for each in online if each.primary] or online
            slow = sum(self._running[each.target].slow for each in sharing if each.target in self._running)
            self._require(len(sharing) < 2 or slow + 1 < len(sharing), "share", f"{call}: the last one for fast calls")

    def _check_budget(self, call_id: str) -> None:
        """Whether an attempt that has just failed may be tried again; it is, when its request is still open."""
        client = self._edge.open.get(call_id)
        if client is None or len(client.failed_on) == client.retries:
            return
        now_s, most = self._clock.now_s, self._edge.config.dispatch.max_retries
        client.retries = len(client.failed_on)
        self._require(client.retries <= most, "budget", f"{call_id}: retry {client.retries} of {most}")
        self._saved = min(fixed.RETRY_BURST, self._saved + (now_s - self._spent_s) * fixed.RETRY_FLOOR_PER_S)
        self._spent_s = now_s
        self._require(self._saved > 1 - 1e-6, "budget", f"{call_id}: a retry, and {self._saved:.3f} are left")
        self._saved -= 1

    def answers(self, client: Client, answer: str) -> None:
        """A request is to be answered."""
        call = f"{client.call_id}: {answer}"
        self._require(client.call_id in self._edge.open, "once", f"{call}, again or after it left")
        self._require(not client.running_on, "once", f"{call}, and it still runs")
        at_s = max(self._deadline_s(client), self._clock.jumped_s)
        self._require(self._clock.now_s <= at_s + SLACK_S, "patience", f"{call} after its deadline")
        waited_s = max(client.waits_since_s + self._longest_wait_s(), client.ended_s, self._clock.jumped_s)
        self._require(self._clock.now_s <= waited_s + SLACK_S, "patience", f"{call} after too long a wait")
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
                name = "cooldown" if why == "cooldown" else "monitor"
                raise ViolationError(name, f"{now_s:.6f} {edge.edge_id}: {target} counts as online: {why}")
        for target in self._online - online - {self._blamed}:
            why = self.heard[target].forbids(now_s) if target in self.heard else "closed"
            self._require(why or target not in edge.config.workers, "needless", f"{target} is out for no reason")
        for target in online - self._online:
            self.heard[target].returned()
        self._online = online
        if isinstance(event, ev.CallEnded):
            self._check_brake(endpoints)
            ended = edge.clients[event.call_id].started[-1][1]
            if ended in self.heard and self.heard[ended].in_doubt:
                self.heard[ended].settled(now_s, ejected=edge.state(ended) == State.EJECTED)
            self._check_budget(event.call_id)
        waiting = len(edge.open) - len(self._running)
        self._require(online or not waiting, "monitor", "requests wait, and nobody is online")
        if isinstance(event, CALLS) or any(isinstance(each, ANSWERS) for each in decisions):
            check_books(edge, self._running)
        if waiting and (idle := self._idle(endpoints)):
            patient = [client for client in edge.open.values() if client.client_key not in self.held]
            check_idle(edge, idle, patient)

    def _check_brake(self, endpoints: Sequence[Endpoint]) -> None:
        out = {each.target for each in endpoints if each.cause is ev.Cause.PASSIVE and each.state is State.EJECTED}
        must = self._brake.must_be_on(out, len(endpoints))
        self._require(not must, "brake", f"{sorted(out)} of {len(endpoints)} went out, and nobody says why")

    def _idle(self, endpoints: Sequence[Endpoint]) -> set[str]:
        """Those that may get a call now, but for slots that calls have left behind."""
        now_s = self._clock.now_s
        able = [
            each
            for each in endpoints
            if each.online
            and each.target not in self._running
            and not self.heard[each.target].taken
            and each.busy_until_s <= now_s
            and not (self._brake.on and each.on_trial)
        ]
        if able and any(each.online and each.primary for each in endpoints):
            able = [each for each in able if each.primary]
        return {each.target for each in able}

    def _deadline_s(self, client: Client) -> float:
        dispatch = self._edge.config.dispatch
        patience_s = dispatch.default_timeout_s(slow=client.slow) if client.timeout_s is None else client.timeout_s
        return client.submitted_s + patience_s

    def _longest_wait_s(self) -> float:
        dispatch = self._edge.config.dispatch
        return dispatch.max_queue_wait_seconds + dispatch.queue_wait_seconds
