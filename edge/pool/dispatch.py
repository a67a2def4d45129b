"""Late binding: a request gets its worker in the moment a slot is free."""

from __future__ import annotations

import math

from edge.pool import events as ev
from edge.pool.admission import Request
from edge.pool.endpoint import Endpoint
from edge.pool.fleet import Fleet
from edge.pool.leases import Leases
from edge.pool.outbox import Outbox
from edge.pool.requests import Requests


class Dispatch:
    """Brings those who wait and those who are free together."""

    def __init__(self, *, requests: Requests, fleet: Fleet, leases: Leases, outbox: Outbox) -> None:
        self._requests = requests
        self._admission = requests.admission
        self._fleet = fleet
        self._leases = leases
        self._outbox = outbox

    def run(self, now_s: float) -> None:
        """After every event that leaves somebody waiting."""
        self._fail_stranded(now_s)
        self._give_workers(now_s)
        self._requests.mind_patience()

    def _fail_stranded(self, now_s: float) -> None:
        """End the waiting of those whom no online worker may serve."""
        ranks = self._fleet.ranks
        if not ranks.any_online:
            for request in self._admission.everyone_waiting():
                self._requests.fail(request, "NO_WORKER", now_s)
            return
        for request in self._admission.retrying():
            if ranks.all_tried(request.tried):
                self._requests.fail(request, "WORKER_FAILED", now_s)

    def _give_workers(self, now_s: float) -> None:
        while self._fleet.ranks.any_free and self._give_round(now_s):
            pass  # somebody gave up, which may have let another one in

    def _give_round(self, now_s: float) -> bool:
        """Whoever waits longest first; whether somebody gave up instead."""
        gave_up = False
        in_vain = {False: False, True: False}
        """By lane: nobody is free for a request that may go anywhere."""
        for request in self._admission.in_order():
            if request.give_up_s <= now_s:
                self._requests.give_up(request, now_s)
                gave_up = True
                continue
            anywhere = not request.tried and not request.capability
            if anywhere and in_vain[request.slow]:
                continue
            endpoint = self._worker_for(request, now_s)
            if endpoint is not None:
                self._start(request, endpoint, now_s)
                if not self._fleet.ranks.any_free:
                    break
            elif anywhere:
                in_vain[request.slow] = True
        return gave_up

    def _worker_for(self, request: Request, now_s: float) -> Endpoint | None:
        spill = request.spill_s <= now_s
        endpoint = self._fleet.ranks.pick(request.tried, request.capability, spill=spill)
        if endpoint is not None and request.slow and self._must_yield(endpoint):
            return None
        return endpoint

    def _must_yield(self, endpoint: Endpoint) -> bool:
        """Slow calls never hold every worker while a fast one waits, where there is more than one."""
        at_work = self._fleet.ranks.at_work
        if endpoint.target not in at_work.online or self._admission.waiting(slow=False) == 0:
            return False
        return len(at_work.online) > 1 and len(at_work.slow) + 1 >= len(at_work.online)

    def _start(self, request: Request, endpoint: Endpoint, now_s: float) -> None:
        self._admission.start(request, now_s)
        self._leases.take(endpoint.target, request.call_id, now_s, slow=request.slow)
        self._fleet.place(endpoint, now_s)
        request.endpoint = endpoint.target
        request.began_s = now_s
        request.attempts += 1
        request.progressed_s, request.seen = -math.inf, None
        attempt_s = self._requests.dispatch.attempt_timeout_s(slow=request.slow)
        request.attempt_s = min(attempt_s, request.deadline_s - now_s)
        self._outbox.add(ev.Start(request.call_id, endpoint.target, request.attempt_s))
