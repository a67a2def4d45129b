"""Requests from arrival to answer: each gets exactly one `Finish` or `Fail`, unless its client leaves first."""

from __future__ import annotations

from functools import partial

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.admission import Admission, Place, Request
from edge.pool.agenda import Agenda, look_again
from edge.pool.config import DispatchConfig
from edge.pool.estimates import RetryBudget, ServiceTimes
from edge.pool.fleet import Fleet
from edge.pool.outbox import Outbox

WAITING = frozenset({Place.WAITING, Place.OUTSIDE})


class Requests:
    """Those that are not answered yet, by call id."""

    def __init__(self, dispatch: DispatchConfig, *, fleet: Fleet, outbox: Outbox, agenda: Agenda) -> None:
        self.dispatch = dispatch
        self.admission = Admission(dispatch)
        self.service_times = {False: ServiceTimes(), True: ServiceTimes()}
        self.retries = RetryBudget()
        self.by_id: dict[str, Request] = {}
        self._fleet = fleet
        self._outbox = outbox
        self._agenda = agenda
        self._arrivals = 0

    def reconfigure(self, dispatch: DispatchConfig, now_s: float) -> None:
        """Other limits and times, for what begins from now on."""
        self.dispatch = dispatch
        self.admission.reconfigure(dispatch, now_s)

    def submitted(self, event: ev.Submitted) -> Request:
        """A client wants a call: in, in line, or refused."""
        now_s, slow = event.now_s, event.slow
        timeout_s = event.timeout_s
        if timeout_s is None:
            timeout_s = self.dispatch.default_timeout_s(slow=slow)
        self._arrivals += 1
        self.retries.request()
        return Request(
            call_id=event.call_id,
            number=self._arrivals,
            slow=slow,
            deadline_s=now_s + timeout_s,
            size_bytes=event.size_bytes,
            capability=event.capability,
            input_key=event.input_key,
            client_key=event.client_key,
            waits_since_s=now_s,
        )

    def arrive(self, request: Request, now_s: float, *, stated: bool) -> None:
        """Have it wait for a worker, or refuse it. `stated`: the client has said how patient it is."""
        if not self._fleet.ranks.any_online:
            self.fail(request, "NO_WORKER", now_s)
        elif stated and (refusal := self._too_late(request, now_s)) is not None:
            reason, needed_s = refusal
            self.fail(request, reason, now_s, needed_s=needed_s)
        elif not self.admission.arrive(request, now_s):
            self.fail(request, "BUSY", now_s)
        else:
            self.by_id[request.call_id] = request

    def _too_late(self, request: Request, now_s: float) -> tuple[ev.FailReason, float] | None:
        """Why a new request cannot be answered in time even if all goes well, and the time it would need, in s."""
        median_s = self.service_times[request.slow].median_s(now_s)
        if median_s is None:
            return None
        patience_s = request.deadline_s - now_s
        if median_s > patience_s:
            return "DEADLINE", median_s
        rounds_before = self.admission.waiting(slow=request.slow) // len(self._fleet.ranks.at_work.online)
        needed_s = (1 + rounds_before) * median_s
        return ("BUSY", needed_s) if needed_s > patience_s else None

    def started(self, request: Request, now_s: float) -> None:
        """It gets a worker."""
        self.admission.start(request, now_s)
        self._waits_no_more(request)

    def gone(self, call_id: str, now_s: float) -> Request:
        """Its client left."""
        request = self.by_id.pop(call_id)
        self._leave(request, now_s)
        return request

    def finish(self, request: Request, now_s: float) -> None:
        """Its worker's last word is the answer."""
        self.by_id.pop(request.call_id)
        self._leave(request, now_s)
        self._outbox.add(ev.Finish(request.call_id, request.endpoint, request.attempts, request.queue_s))

    def fail(
        self,
        request: Request,
        reason: ev.FailReason,
        now_s: float,
        *,
        needed_s: float | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """The system has no answer for it. `retry_after_s`: when it may have one; None: as measured."""
        self.by_id.pop(request.call_id, None)  # a new one is not there yet
        self._leave(request, now_s)
        if retry_after_s is None:
            retry_after_s = self._retry_after_s(request, reason, now_s)
        self._outbox.add(
            ev.Fail(
                call_id=request.call_id,
                reason=reason,
                retry_after_s=max(fixed.RETRY_AFTER_MIN_S, retry_after_s),
                endpoint=request.endpoint,
                attempts=request.attempts,
                queue_s=request.queue_s,
                needed_s=needed_s,
            )
        )

    def _retry_after_s(self, request: Request, reason: ev.FailReason, now_s: float) -> float:
        workers = len(self._fleet.ranks.at_work.online)
        if reason == "NO_WORKER" or workers == 0:
            return self._fleet.back_in_s(now_s)
        if reason == "BUSY":
            median_s = self.service_times[request.slow].median_s(now_s) or 0.0
            return self.admission.waiting(slow=request.slow) / workers * median_s
        return 0.0

    def _leave(self, request: Request, now_s: float) -> None:
        self.admission.leave(request, now_s)
        self._waits_no_more(request)

    # Patience

    def give_up(self, request: Request, now_s: float) -> None:
        """It has waited for as long as it may."""
        self.fail(request, "DEADLINE" if request.deadline_s <= now_s else "BUSY", now_s)

    def mind_patience(self) -> None:
        """Have an alarm for everyone who began to wait in this event and still does."""
        for request in self.admission.began_waiting:
            if request.place in WAITING and request.call_id in self.by_id:
                self._waits_no_more(request)  # not as it did before
                alarms = [self._agenda.at(request.give_up_s, partial(self._look_at, request))]
                if request.spill_s < request.give_up_s:
                    alarms.append(self._agenda.at(request.spill_s, look_again))
                request.alarms = tuple(alarms)
        self.admission.began_waiting.clear()

    def _look_at(self, request: Request, now_s: float) -> None:
        if request.give_up_s <= now_s:  # else it was let in, or got other patience, in this very moment
            self.give_up(request, now_s)

    def _waits_no_more(self, request: Request) -> None:
        """Nobody need look after its patience."""
        for alarm in request.alarms:
            self._agenda.take_off(alarm)
        request.alarms = ()
