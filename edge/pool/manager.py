"""The pool itself: one object, events in, decisions out.

Each handler changes state; after every event waiting requests get free workers. A submitted call gets exactly one
`Finish` or `Fail`, unless its client leaves first (`CallGone`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.admission import Admission, Place, Request
from edge.pool.config import PoolConfig
from edge.pool.endpoint import Endpoint, State
from edge.pool.estimates import RetryBudget, ServiceTimes
from edge.pool.fleet import Fleet
from edge.pool.leases import Leases
from edge.pool.outbox import Outbox
from edge.pool.passive import Meaning, cause_of, meaning_of, proves_slot_free
from edge.pool.picker import pick
from edge.pool.snapshot import EndpointSnapshot, PoolSnapshot

_FAILURES = frozenset({Meaning.FAILED, Meaning.AUTH, Meaning.TOOK_ITSELF_OUT})


class Pool:
    """Endpoints, queues and leases.

    `seed` feeds the jitter of probes and cooldowns. `edge_id` begins the id of every call submitted here, so that a
    worker's word about its slot tells our own calls from those of other edges.
    """

    def __init__(self, config: PoolConfig, *, seed: int | None, edge_id: str) -> None:
        self._dispatch = config.dispatch
        self._edge_id = edge_id
        self._chance = random.Random(seed)  # noqa: S311  (jitter, not a secret)
        self._outbox = Outbox()
        self._fleet = Fleet(config, self._chance, self._outbox)
        self._admission = Admission(config.dispatch)
        self._leases = Leases()
        self._requests: dict[str, Request] = {}
        self._arrivals = 0
        self._service_times = {False: ServiceTimes(), True: ServiceTimes()}
        self._retries = RetryBudget()
        self._handlers: dict[type, Callable[[Any], object]] = {
            ev.Started: lambda event: self._fleet.start(event.now_s),
            ev.StartupOver: lambda _: self._fleet.startup_over(),
            ev.Tick: self._on_tick,
            ev.Submitted: self._on_submitted,
            ev.CallEnded: self._on_call_ended,
            ev.CallGone: self._on_call_gone,
            ev.ProbeEnded: self._fleet.probe_ended,
            ev.HealthTold: self._fleet.health_told,
            ev.ConnectionLost: self._fleet.connection_lost,
            ev.StatusTold: self._on_status_told,
            ev.StatusLost: self._on_status_lost,
        }

    def __repr__(self) -> str:
        """States, queues, leases."""
        return f"<Pool {self._fleet!r} {self._admission!r} {self._leases!r}>"

    def handle(self, event: ev.Event) -> list[ev.Decision]:
        """Take one event in and say what is to be done, in order."""
        now_s = event.now_s
        self._handlers[type(event)](event)
        self._fleet.probe_due(now_s)
        if self._admission.anyone_waits:
            self._fail_stranded(now_s)
            self._give_workers(now_s)
            self._mind_patience()
        return self._outbox.empty()

    # What the shell may ask without an event

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All of them, in the order of the configuration; to be read only."""
        return tuple(self._fleet.by_target.values())

    def has_room(self, *, slow: bool) -> bool:
        """Whether a call submitted now comes inside at once, so that its size does not matter."""
        return self._admission.has_room(slow=slow)

    def snapshot(self, now_s: float) -> PoolSnapshot:
        """Everything an operator may want to see of this moment."""
        return PoolSnapshot(
            endpoints=tuple(EndpointSnapshot.of(e, self._leases.on(e.target), now_s) for e in self.endpoints()),
            waiting_fast=self._admission.waiting(slow=False),
            waiting_slow=self._admission.waiting(slow=True),
            waiting_outside=self._admission.outside,
            inside=self._admission.inside,
        )

    # Arrival and leaving

    def _on_submitted(self, event: ev.Submitted) -> None:
        now_s = event.now_s
        timeout_s = event.timeout_s
        if timeout_s is None:
            timeout_s = self._dispatch.default_timeout_s(slow=event.slow)
        self._arrivals += 1
        self._retries.request()
        request = Request(
            call_id=event.call_id,
            number=self._arrivals,
            slow=event.slow,
            deadline_s=now_s + timeout_s,
            waits_since_s=now_s,
            size_bytes=event.size_bytes,
        )
        if not self._fleet.any_online():
            self._fail(request, "NO_WORKER", now_s)
        elif event.timeout_s is not None and (refusal := self._too_late(request, now_s)) is not None:
            reason, needed_s = refusal
            self._fail(request, reason, now_s, needed_s)
        elif not self._admission.arrive(request, now_s):
            self._fail(request, "BUSY", now_s)
        else:
            self._requests[request.call_id] = request

    def _too_late(self, request: Request, now_s: float) -> tuple[ev.FailReason, float] | None:
        """Why a new request cannot be answered in time even if all goes well, and the time it would need, in s."""
        median_s = self._service_times[request.slow].median_s(now_s)
        if median_s is None:
            return None
        patience_s = request.deadline_s - now_s
        if median_s > patience_s:
            return "DEADLINE", median_s
        rounds_before = self._admission.waiting(slow=request.slow) // len(self._fleet.at_work())
        needed_s = (1 + rounds_before) * median_s
        return ("BUSY", needed_s) if needed_s > patience_s else None

    def _on_call_gone(self, event: ev.CallGone) -> None:
        request = self._requests.pop(event.call_id)
        if request.place is Place.RUNNING:
            self._leave_behind(request, event.now_s)
        self._admission.leave(request, event.now_s)

    def _finish(self, request: Request, now_s: float) -> None:
        self._requests.pop(request.call_id)
        self._admission.leave(request, now_s)
        self._outbox.add(ev.Finish(request.call_id, request.endpoint, request.attempts, request.queue_s))

    def _fail(self, request: Request, reason: ev.FailReason, now_s: float, needed_s: float | None = None) -> None:
        self._requests.pop(request.call_id, None)  # a new one is not there yet
        self._admission.leave(request, now_s)
        self._outbox.add(
            ev.Fail(
                call_id=request.call_id,
                reason=reason,
                retry_after_s=max(fixed.RETRY_AFTER_MIN_S, self._retry_after_s(request, reason, now_s)),
                endpoint=request.endpoint,
                attempts=request.attempts,
                queue_s=request.queue_s,
                needed_s=needed_s,
            )
        )

    def _retry_after_s(self, request: Request, reason: ev.FailReason, now_s: float) -> float:
        workers = len(self._fleet.at_work())
        if reason == "NO_WORKER" or workers == 0:
            return self._fleet.back_in_s(now_s)
        if reason == "BUSY":
            median_s = self._service_times[request.slow].median_s(now_s) or 0.0
            return self._admission.waiting(slow=request.slow) / workers * median_s
        return 0.0

    # The end of an attempt

    def _on_call_ended(self, event: ev.CallEnded) -> None:
        now_s = event.now_s
        request = self._requests[event.call_id]
        endpoint = self._fleet.by_target[request.endpoint]
        full_time = request.attempt_s >= self._dispatch.attempt_timeout_s(slow=request.slow)
        meaning = meaning_of(event.code, event.reason, full_time=full_time)
        if proves_slot_free(event.code, event.reason):
            self._leases.give_back(endpoint.target, request.call_id)
        else:
            self._leave_behind(request, now_s)
        if meaning is Meaning.GOOD:
            endpoint.call_good()
            self._service_times[request.slow].add(now_s, now_s - request.began_s)
            self._finish(request, now_s)
            return
        if meaning in _FAILURES and endpoint.state is State.DRAINING:
            meaning = Meaning.DRAINING
        before = endpoint.standing
        self._judge_worker(endpoint, request, meaning, event)
        self._fleet.log_change(endpoint, before, now_s)
        self._judge_request(request, meaning, event)

    def _judge_worker(self, endpoint: Endpoint, request: Request, meaning: Meaning, event: ev.CallEnded) -> None:
        """What a failed attempt does to its worker."""
        now_s = event.now_s
        evidence = f"call: {event.code} {event.reason}".rstrip()
        if meaning in {Meaning.FAILED, Meaning.AUTH}:
            endpoint.call_failed(
                now_s,
                began_s=request.began_s,
                cause=ev.Cause.AUTH if meaning is Meaning.AUTH else ev.Cause.PASSIVE,
                evidence=evidence,
                chance=self._chance.random(),
            )
            self._fleet.probe_at(endpoint, now_s + endpoint.cooldown_left_s(now_s))
        elif meaning is Meaning.TOOK_ITSELF_OUT:
            endpoint.told_down(now_s, cause_of(event.reason), evidence)
        elif meaning is Meaning.DRAINING:
            endpoint.told_down(now_s, ev.Cause.DRAINING, evidence)
        elif meaning is Meaning.BUSY:
            wait_s = fixed.BUSY_WAIT_S if event.retry_after_s is None else event.retry_after_s
            endpoint.busy_until_s = now_s + max(wait_s, fixed.BUSY_WAIT_MIN_S)
            self._outbox.wake(endpoint.busy_until_s)

    def _judge_request(self, request: Request, meaning: Meaning, event: ev.CallEnded) -> None:
        """What a failed attempt means for its request."""
        now_s = event.now_s
        if meaning is Meaning.OUT_OF_TIME:
            self._fail(request, "DEADLINE", now_s)
        elif meaning is Meaning.PASSED_ON and event.reason:
            self._finish(request, now_s)
        elif meaning is Meaning.PASSED_ON:  # gRPC's own refusal: nothing in it is meant for a client
            self._fail(request, "WORKER_FAILED", now_s)
        elif meaning is Meaning.BUSY:
            self._admission.put_back(request, now_s, afresh=False)
        elif meaning is Meaning.DRAINING:
            self._admission.put_back(request, now_s, afresh=True)
        elif not self._fleet.any_online():
            self._fail(request, "NO_WORKER", now_s)
        elif self._may_retry(request, now_s):
            request.retries += 1
            request.tried = (*request.tried, request.endpoint)
            self._admission.put_back(request, now_s, afresh=True)
        else:
            self._fail(request, "WORKER_FAILED", now_s)

    def _may_retry(self, request: Request, now_s: float) -> bool:
        if not self._dispatch.retry_on_failure or request.retries >= self._dispatch.max_retries:
            return False
        needed_s = self._service_times[request.slow].median_s(now_s) or 0.0
        return request.deadline_s - now_s > needed_s and self._retries.spend(now_s)

    # Slots

    def _leave_behind(self, request: Request, now_s: float) -> None:
        """Its attempt ended without the worker's own answer: ask whether the slot is free."""
        if self._leases.leave_behind(request.endpoint, request.call_id, now_s):
            self._outbox.add(ev.AskStatus(request.endpoint))

    def _on_status_told(self, event: ev.StatusTold) -> None:
        endpoint = self._fleet.by_target[event.endpoint]
        call_id = event.call_id if event.taken else ""
        self._fleet.status_told(event)
        self._leases.told(event.endpoint, asked_s=event.asked_s, call_id=call_id)
        # Our own calls are known by their leases; what a late message says of one that has ended means nothing.
        endpoint.taken = event.taken and not call_id.startswith(f"{self._edge_id}-")
        endpoint.stage = event.stage if event.taken else ""
        if not event.taken:
            endpoint.busy_until_s = event.now_s

    def _on_status_lost(self, event: ev.StatusLost) -> None:
        endpoint = self._fleet.by_target[event.endpoint]
        endpoint.taken, endpoint.stage = False, ""

    # Time

    def _on_tick(self, event: ev.Tick) -> None:
        now_s = event.now_s
        self._outbox.woken()
        for request in self._admission.everyone_waiting():
            if request.give_up_s <= now_s:
                self._give_up(request, now_s)
        self._admission.began_waiting = self._admission.everyone_waiting()
        for endpoint in self._fleet.by_use:
            if endpoint.busy_until_s > now_s:
                self._outbox.wake(endpoint.busy_until_s)
        self._fleet.probe_due(now_s)
        self._outbox.wake(self._fleet.next_probe_s())

    def _mind_patience(self) -> None:
        """Have an alarm for everyone who began to wait in this event and still does."""
        for request in self._admission.began_waiting:
            if request.place in {Place.WAITING, Place.OUTSIDE}:
                self._outbox.wake(request.give_up_s)
        self._admission.began_waiting.clear()

    def _give_up(self, request: Request, now_s: float) -> None:
        self._fail(request, "DEADLINE" if request.deadline_s <= now_s else "BUSY", now_s)

    # Dispatch

    def _fail_stranded(self, now_s: float) -> None:
        """End the waiting of those whom no online worker may serve."""
        if not self._fleet.any_online():
            for request in self._admission.everyone_waiting():
                self._fail(request, "NO_WORKER", now_s)
            return
        for request in self._admission.in_order():
            if request.tried and all(e.target in request.tried for e in self._fleet.by_use if e.online):
                self._fail(request, "WORKER_FAILED", now_s)

    def _give_workers(self, now_s: float) -> None:
        """Late binding: whoever waits longest gets a worker in the moment a slot is free."""
        free = {e.target for e in self._fleet.by_use if self._is_free(e, now_s)}
        if not free:
            return
        while late := [request for request in self._admission.in_order() if request.give_up_s <= now_s]:
            for request in late:  # each may let one in from outside that is late as well
                self._give_up(request, now_s)
        for request in self._admission.in_order():
            if not free:
                return
            if not self._must_yield(request):
                endpoint = pick(self._fleet.by_use, free, request.tried)
                if endpoint is not None:
                    free.discard(endpoint.target)
                    self._start(request, endpoint, now_s)

    def _is_free(self, endpoint: Endpoint, now_s: float) -> bool:
        return (
            endpoint.online
            and not endpoint.taken
            and endpoint.busy_until_s <= now_s
            and self._leases.on(endpoint.target) is None
        )

    def _must_yield(self, request: Request) -> bool:
        """Slow calls never hold every worker while a fast one waits, where there is more than one."""
        if not request.slow or self._admission.waiting(slow=False) == 0:
            return False
        at_work = self._fleet.at_work()
        held = sum(lease is not None and lease.slow for lease in (self._leases.on(e.target) for e in at_work))
        return len(at_work) > 1 and held + 1 >= len(at_work)

    def _start(self, request: Request, endpoint: Endpoint, now_s: float) -> None:
        self._admission.start(request, now_s)
        self._leases.take(endpoint.target, request.call_id, now_s, slow=request.slow)
        self._fleet.used(endpoint)
        request.endpoint = endpoint.target
        request.began_s = now_s
        request.attempts += 1
        attempt_s = self._dispatch.attempt_timeout_s(slow=request.slow)
        request.attempt_s = min(attempt_s, request.deadline_s - now_s)
        self._outbox.add(ev.Start(request.call_id, endpoint.target, request.attempt_s))
