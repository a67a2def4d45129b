"""Late binding: a request gets its worker in the moment a slot is free."""

from __future__ import annotations

import math

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.admission import Request
from edge.pool.blame import Blame
from edge.pool.brake import Brake
from edge.pool.endpoint import Endpoint
from edge.pool.fleet import Fleet
from edge.pool.leases import Leases
from edge.pool.outbox import Outbox
from edge.pool.requests import Requests


class Dispatch:
    """Brings those who wait and those who are free together."""

    def __init__(
        self, *, requests: Requests, fleet: Fleet, leases: Leases, blame: Blame, brake: Brake, outbox: Outbox
    ) -> None:
        self._requests = requests
        self._admission = requests.admission
        self._fleet = fleet
        self._leases = leases
        self._blame = blame
        self._brake = brake
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
        if self._blame.clients.held:
            self._fail_held(now_s)

    def _fail_held(self, now_s: float) -> None:
        """Of those whose clients are held to one worker: who waits in vain, and who would take others' places."""
        places = max(1, int(self._requests.dispatch.max_in_flight * fixed.HELD_SHARE_INSIDE))
        for request in self._admission.everyone_waiting():
            endpoint = self._held_to(request, now_s)
            if endpoint is not None and endpoint.target in request.tried:
                self._requests.fail(request, "WORKER_FAILED", now_s)
            elif endpoint is not None and not endpoint.online and not self._runs_on(endpoint, request.client_key):
                back_s = endpoint.cooldown_left_s(now_s) or self._fleet.health.interval_seconds
                self._requests.fail(request, "BUSY", now_s, retry_after_s=back_s)
            elif self._blame.holds(request, now_s):
                places -= 1
                if places < 0:
                    self._requests.fail(request, "BUSY", now_s)

    def _held_to(self, request: Request, now_s: float) -> Endpoint | None:
        """The one worker that a held client may use; None: it is not held, or is to be given another one."""
        if not self._blame.holds(request, now_s):
            return None
        clients = self._blame.clients
        endpoint = self._fleet.by_target.get(clients.worker_of(request.client_key))
        out = endpoint is None or endpoint.leaving
        if endpoint is not None and not endpoint.online:  # it waits for what it has done, and for nothing else
            done = clients.put_out(request.client_key, endpoint.target, endpoint.good_s)
            out |= not (done or self._runs_on(endpoint, request.client_key))
        if out:
            clients.hold_to(request.client_key, "")
            return None
        return endpoint

    def _runs_on(self, endpoint: Endpoint, client_key: str) -> bool:
        """Whether a call of this client runs there, whose end will tell whether it took the worker out."""
        lease = self._leases.on(endpoint.target)
        return (
            lease is not None and lease.left_s is None and self._requests.by_id[lease.call_id].client_key == client_key
        )

    def _give_workers(self, now_s: float) -> None:
        while self._fleet.ranks.any_free and self._give_round(now_s):
            pass  # somebody gave up, which may have let another one in, or there is nobody left to yield to

    def _give_round(self, now_s: float) -> bool:
        """Whoever waits longest first; whether it is worth another round."""
        ranks, gave_up, yielded = self._fleet.ranks, False, False
        trial = self._brake.on and self._brake.allows_trial(now_s)
        in_vain = {False: False, True: False}
        """By lane: nobody is free for a request that may go anywhere."""
        for request in self._admission.in_order():
            if request.give_up_s <= now_s:
                self._requests.give_up(request, now_s)
                gave_up = True
                continue
            held = self._held_to(request, now_s) if self._blame.clients.held else None
            anywhere = not (request.tried or request.capability or held)
            if anywhere and in_vain[request.slow]:
                continue
            if held is None:
                spill = request.spill_s <= now_s
                endpoint = ranks.pick(request.tried, request.capability, spill=spill, trial=trial)
            else:
                endpoint = held if ranks.is_free(held, trial=trial) else None
            if endpoint is not None and not (request.slow and self._must_yield(endpoint, behind=yielded)):
                self._start(request, endpoint, now_s)
                trial = trial and not endpoint.on_trial
                if not ranks.any_free:
                    break
                continue
            yielded |= endpoint is not None
            in_vain[request.slow] |= anywhere
        return gave_up or (yielded and self._admission.waiting(slow=False) == 0)

    def _must_yield(self, endpoint: Endpoint, *, behind: bool) -> bool:
        """Slow calls never hold every worker while a fast one waits, where there is more than one; nor the trial.

        `behind`: an earlier slow one has yielded in this round, so that later ones wait with it: a fast one that got
        its worker meanwhile must not let them pass.
        """
        at_work = self._fleet.ranks.at_work
        if endpoint.target not in at_work.online:
            return False
        if behind or self._admission.waiting(slow=False) == 0:
            return behind
        if endpoint.on_trial:
            return True
        return len(at_work.online) > 1 and len(at_work.slow) + 1 >= len(at_work.online)

    def _start(self, request: Request, endpoint: Endpoint, now_s: float) -> None:
        self._requests.started(request, now_s)
        self._leases.take(endpoint.target, request.call_id, now_s, slow=request.slow)
        self._fleet.used(endpoint, now_s)
        if self._brake.on:
            self._brake.started(endpoint, request.call_id, now_s)
        if self._blame.holds(request, now_s):  # from now on to this one
            self._blame.clients.hold_to(request.client_key, endpoint.target)
        request.endpoint = endpoint.target
        request.began_s = now_s
        request.attempts += 1
        request.progressed_s, request.seen = -math.inf, None
        attempt_s = self._requests.dispatch.attempt_timeout_s(slow=request.slow)
        request.attempt_s = min(attempt_s, request.deadline_s - now_s)
        request.full_time = request.attempt_s >= attempt_s
        self._outbox.add(ev.Start(request.call_id, endpoint.target, request.attempt_s))
