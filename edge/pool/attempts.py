"""The end of an attempt: what it does to its worker, and what becomes of its request."""

from __future__ import annotations

import math
import random
from functools import partial

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.admission import Place, Request
from edge.pool.agenda import Agenda
from edge.pool.blame import Blame
from edge.pool.brake import Brake
from edge.pool.endpoint import Endpoint, State
from edge.pool.fleet import Fleet
from edge.pool.leases import Lease, Leases
from edge.pool.outbox import Outbox
from edge.pool.passive import Harm, Meaning, cause_of, harm_of, is_gone, meaning_of, proves_slot_free
from edge.pool.requests import Requests
from edge.pool.sleep import Sleep

_FAILURES = frozenset({Meaning.FAILED, Meaning.AUTH, Meaning.TOOK_ITSELF_OUT})
"""What is no failure when the worker drains."""


class Attempts:
    """Judges attempts while they run and when they end."""

    def __init__(
        self,
        *,
        requests: Requests,
        fleet: Fleet,
        leases: Leases,
        blame: Blame,
        brake: Brake,
        sleep: Sleep,
        outbox: Outbox,
        agenda: Agenda,
        chance: random.Random,
    ) -> None:
        self._requests = requests
        self._fleet = fleet
        self._leases = leases
        self._blame = blame
        self._brake = brake
        self._sleep = sleep
        self._outbox = outbox
        self._agenda = agenda
        self._chance = chance
        self._password_s = -math.inf
        """Since when there is the password of now."""

    # While it runs

    def progressed(self, event: ev.CallProgressed) -> None:
        """Its own stream told of a stage or a step."""
        request = self._requests.by_id.get(event.call_id)
        if request is not None:
            request.progressed_s = event.now_s

    def status_told(self, event: ev.StatusTold) -> None:
        """Its worker told how far it is. The first word says where it stands, the next ones whether it moves."""
        request = self._requests.by_id.get(event.call_id)
        if request is None or request.place is not Place.RUNNING or request.endpoint != event.endpoint:
            return
        seen = (event.steps, event.stage)
        if request.seen is not None and request.seen != seen:
            request.progressed_s = event.now_s
        request.seen = seen

    def password_changed(self, now_s: float) -> None:
        """What was refused before says nothing about the new one."""
        self._password_s = now_s

    def gone(self, event: ev.CallGone) -> None:
        """The client left; what ran is cancelled."""
        request = self._requests.by_id[event.call_id]
        running = request.place is Place.RUNNING
        self._requests.gone(event.call_id, event.now_s)
        if self._brake.on:
            self._brake.over(event.call_id)
        if running:
            self._leave_behind(request, event.now_s)

    # Its end

    def ended(self, event: ev.CallEnded) -> None:
        """It ended by itself."""
        now_s = event.now_s
        request = self._requests.by_id[event.call_id]
        endpoint = self._fleet.by_target[request.endpoint]
        if self._brake.on:
            self._brake.over(request.call_id)
        if event.code is ev.Code.OK:
            self._answered(request, endpoint, now_s)
        else:
            self._failed(request, endpoint, event)
        if proves_slot_free(event.code, event.reason):
            self._leases.give_back(endpoint.target, request.call_id)
            self._fleet.place(endpoint, now_s)
        else:
            self._leave_behind(request, now_s)

    def _answered(self, request: Request, endpoint: Endpoint, now_s: float) -> None:
        self._requests.finish(request, now_s)
        self._requests.service_times[request.slow].add(now_s, now_s - request.began_s)
        endpoint.call_good(now_s)
        self._went_well(request, endpoint, now_s)

    def _went_well(self, request: Request, endpoint: Endpoint, now_s: float) -> None:
        """The worker did what it is there for, be it that it refused the photo."""
        self._blame.went_well(request)
        if self._brake.on:
            self._brake.succeeded(endpoint, now_s)

    def _failed(self, request: Request, endpoint: Endpoint, event: ev.CallEnded) -> None:
        now_s = event.now_s
        braked, on_trial = self._brake.on, endpoint.on_trial
        meaning = self._meaning(request, event)
        if meaning in _FAILURES and endpoint.state is State.DRAINING:
            meaning = Meaning.DRAINING
        harm = harm_of(meaning, event.code, event.reason)
        to_blame = harm not in {Harm.NONE, Harm.UNKNOWN} and not on_trial
        if harm is Harm.NONE:
            self._went_well(request, endpoint, now_s)
        elif to_blame:
            self._blame.broke(request, endpoint, harm, event)
            self._refuse_the_same(request, now_s)
        before = endpoint.standing
        spared = harm in {Harm.BROKE, Harm.DIED} and self._blame.holds(request, now_s) and endpoint.spare(now_s)
        if spared and harm is Harm.BROKE:
            what = f"spared: {request.call_id} of a held client failed on it"
            self._fleet.note(endpoint, now_s, what, "worker_spared", call_id=request.call_id)
        else:
            self._judge_worker(endpoint, request, meaning, event)
        input_key = event.input_key or request.call_id
        self._fleet.note_change(endpoint, before, now_s, call_id=request.call_id, input_key=input_key)
        if self._brake.on and meaning in _FAILURES and (on_trial or not braked):  # else it may be its own affair
            self._blame.shared_cause()
        if to_blame:
            self._pardon(request, now_s, spared=spared)
        self._judge_request(request, meaning, event)

    def _refuse_the_same(self, request: Request, now_s: float) -> None:
        """Who waits with an input that is no longer to touch a worker waits in vain."""
        refused_s = self._blame.refuses_for_s(request, now_s)
        if refused_s > 0:
            for other in self._requests.admission.everyone_waiting():
                if other.input_key == request.input_key:
                    self._blame.note_refusal(other)
                    self._requests.fail(other, "POISON_INPUT", now_s, retry_after_s=refused_s)

    def _meaning(self, request: Request, event: ev.CallEnded) -> Meaning:
        took_s, gave_s = event.now_s - request.began_s, request.attempt_s
        return meaning_of(
            event.code,
            event.reason,
            expired=took_s >= min(fixed.EXPIRED_SHARE * gave_s, gave_s - fixed.EXPIRED_SLACK_S),
            full_time=request.full_time,
            moved=request.progressed_s >= request.began_s + fixed.PROGRESS_SHARE * gave_s,
            late=took_s > gave_s + fixed.LATE_S or self._sleep.covers(request.began_s + gave_s),
            slept=is_gone(event.code, event.reason) and self._sleep.forgives(request.endpoint, event.now_s),
        )

    def _pardon(self, request: Request, now_s: float, *, spared: bool) -> None:
        """What is known to be the doing of its input, or of its client, costs no worker its standing."""
        for broken in self._blame.explained_by_input(request):
            self._fleet.pardon(broken, now_s, self._blame.inputs.tag(request.input_key))
        for broken in self._blame.explained_by_client(request, now_s):
            if spared or broken.worker != request.endpoint:
                self._fleet.pardon(broken, now_s, self._blame.clients.tag(request.client_key))

    def _judge_worker(self, endpoint: Endpoint, request: Request, meaning: Meaning, event: ev.CallEnded) -> None:
        """What an attempt that was not answered does to its worker."""
        now_s = event.now_s
        evidence = f"call: {event.code} {event.reason or event.transport}".rstrip()
        if meaning in {Meaning.FAILED, Meaning.AUTH}:
            endpoint.call_failed(
                now_s,
                began_s=request.began_s,
                cause=ev.Cause.AUTH if meaning is Meaning.AUTH else ev.Cause.PASSIVE,
                evidence=evidence,
                chance=self._chance.random(),
            )
            if meaning is Meaning.AUTH and request.began_s <= self._password_s:
                endpoint.password_changed()
            self._fleet.probe_at(endpoint, now_s + endpoint.cooldown_left_s(now_s))
        elif meaning is Meaning.TOOK_ITSELF_OUT:
            endpoint.told_down(now_s, cause_of(event.reason), evidence)
        elif meaning is Meaning.DRAINING:
            endpoint.refused(now_s, began_s=request.began_s, cause=ev.Cause.DRAINING, evidence=evidence)
        elif meaning is Meaning.SLEPT:
            self._fleet.connection_lost(ev.ConnectionLost(now_s, endpoint.target))  # it may have gone meanwhile
        elif meaning is Meaning.BUSY:
            wait_s = fixed.BUSY_WAIT_S if event.retry_after_s is None else event.retry_after_s
            wait_s = min(max(wait_s, fixed.BUSY_WAIT_MIN_S), fixed.BUSY_WAIT_MAX_S)
            self._fleet.busy(endpoint, now_s + wait_s)
            self._outbox.add(ev.AskStatus(endpoint.target))  # that it is free again may have been said already

    def _judge_request(self, request: Request, meaning: Meaning, event: ev.CallEnded) -> None:
        """What an attempt that was not answered means for its request."""
        now_s, requests = event.now_s, self._requests
        if meaning is Meaning.OUT_OF_TIME:
            requests.fail(request, "DEADLINE", now_s)
        elif meaning is Meaning.PASSED_ON and event.reason:
            requests.finish(request, now_s)
        elif meaning is Meaning.PASSED_ON:  # gRPC's own refusal: nothing in it is meant for a client
            requests.fail(request, "WORKER_FAILED", now_s)
        elif meaning is Meaning.BUSY:
            requests.admission.put_back(request, now_s, afresh=False)
        elif meaning in {Meaning.DRAINING, Meaning.SLEPT}:
            requests.admission.put_back(request, now_s, afresh=True)
        else:
            self._retry(request, meaning, event)

    def _retry(self, request: Request, meaning: Meaning, event: ev.CallEnded) -> None:
        """Try it again on another worker, or say why not."""
        now_s, requests = event.now_s, self._requests
        refused = self._blame.forbids_retry(request, now_s) or self._why_no_retry(request, event)
        self._outbox.add(
            ev.Log(
                "info",
                "attempt_failed",
                {
                    "call_id": request.call_id,
                    "worker": request.endpoint,
                    "attempt": request.attempts,
                    "code": str(event.code),
                    "reason": event.reason,
                    "transport": event.transport,
                    "took_s": round(now_s - request.began_s, 3),
                    "retried": not refused,
                    "because": refused,
                },
            )
        )
        if not refused:
            request.retries += 1
            request.tried = (*request.tried, request.endpoint)
            requests.admission.put_back(request, now_s, afresh=True)
        elif not self._fleet.ranks.any_online:
            requests.fail(request, "NO_WORKER", now_s)
        else:
            requests.fail(request, "DEADLINE" if meaning is Meaning.SLOW else "WORKER_FAILED", now_s)

    def _why_no_retry(self, request: Request, event: ev.CallEnded) -> str:
        """In words for the log; empty when it is tried again."""
        dispatch, now_s = self._requests.dispatch, event.now_s
        if not self._fleet.ranks.any_online:
            return "nobody is online"
        if not dispatch.retry_on_failure or request.retries >= dispatch.max_retries:
            return "no retry left"
        if request.slow and request.progressed_s > -math.inf and not is_gone(event.code, event.reason):
            return "a slow call that had got on, and its worker is not gone"
        needed_s = self._requests.service_times[request.slow].median_s(now_s) or 0.0
        if request.deadline_s - now_s <= needed_s:
            return "too little time"
        return "" if self._requests.retries.spend(now_s) else "retry budget spent"

    # Slots

    def slot_told(self, target: str, asked_s: float, call_id: str, now_s: float) -> None:
        """A status asked for at `asked_s` shows this call in the slot, or none."""
        lease = self._leases.on(target)
        if self._leases.told(target, asked_s=asked_s, call_id=call_id) and lease is not None and lease.missed:
            self._say_of_slot("info", "slot_returned", target, lease, now_s)

    def _leave_behind(self, request: Request, now_s: float) -> None:
        """Its attempt ended without the worker's own answer: ask whether the slot is free."""
        lease = self._leases.leave_behind(request.endpoint, request.call_id, now_s)
        self._outbox.add(ev.AskStatus(request.endpoint))
        self._agenda.at(now_s + fixed.LEFT_BEHIND_WARN_S, partial(self._miss, request.endpoint, lease))

    def _miss(self, target: str, lease: Lease, now_s: float) -> None:
        """No status has given it back. It is not given back by hope: say so, and go on waiting."""
        if self._leases.on(target) is lease:
            lease.missed = True
            self._say_of_slot("warning", "slot_not_returned", target, lease, now_s)

    def _say_of_slot(self, level: ev.Level, event: str, target: str, lease: Lease, now_s: float) -> None:
        since_s = now_s if lease.left_s is None else lease.left_s
        self._outbox.add(
            ev.Log(level, event, {"worker": target, "call_id": lease.call_id, "since_s": round(now_s - since_s, 3)})
        )
