"""When most workers go out together for a cause that they may share, waiting it out one by one helps nobody.

Then there is one alert; cooldowns shorten to `BRAKE_COOLDOWN_S`; and whoever went out for it gets calls again only as
trials, one at a time in the whole pool and one every `BRAKE_TRIAL_S`, until one succeeds. That changes durations and
nothing else: who is online is what it always is.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.agenda import Agenda, look_again
from edge.pool.endpoint import Endpoint, State
from edge.pool.fleet import Fleet
from edge.pool.outbox import Outbox

SHAREABLE = frozenset({ev.Cause.PASSIVE, ev.Cause.DEPENDENCY, ev.Cause.AUTH})
_OUT = frozenset({State.EJECTED, State.NOT_SERVING})


class _Outs:
    """Who went out for one cause of late."""

    def __init__(self) -> None:
        self.by_target: OrderedDict[str, tuple[float, Endpoint, str]] = OrderedDict()
        """When, who, and by which input; the oldest first. Empty input: by its own word, or by probes."""
        self.inputs: Counter[str] = Counter()

    def add(self, now_s: float, endpoint: Endpoint, input_key: str) -> None:
        """One more."""
        self._drop(endpoint.target)
        self.by_target[endpoint.target] = (now_s, endpoint, input_key)
        self.inputs[input_key] += 1
        while (oldest := next(iter(self.by_target.values())))[0] < now_s - fixed.BRAKE_WINDOW_S:
            self._drop(oldest[1].target)

    def _drop(self, target: str) -> None:
        if target in self.by_target:
            _, _, input_key = self.by_target.pop(target)
            self.inputs[input_key] -= 1
            if self.inputs[input_key] == 0:
                del self.inputs[input_key]

    def shared_among(self, workers: int) -> bool:
        """Whether this is more than a coincidence, in a pool of so many."""
        if workers < fixed.BRAKE_WORKERS_MIN or len(self.by_target) <= fixed.BRAKE_SHARE * workers:
            return False
        told = self.inputs[""]
        shown = len(self.inputs) - (told > 0)
        return shown == 0 or shown + told >= fixed.SHARED_INPUTS


class Brake:
    """Notices a shared cause, and sees to the way back."""

    def __init__(self, *, fleet: Fleet, outbox: Outbox, agenda: Agenda) -> None:
        self._fleet = fleet
        self._outbox = outbox
        self._agenda = agenda
        self._outs = {cause: _Outs() for cause in SHAREABLE}
        self.cause: ev.Cause | None = None
        """The one that is shared; None while there is none."""
        self.on = False
        """Whether there is one."""
        self._since_s = 0.0
        self._trial = ""
        """The call that is one."""
        self._next_trial_s = 0.0
        self._elsewhere_s = -math.inf
        """When a worker that did not go out for it last answered well."""

    def changed(self, endpoint: Endpoint, now_s: float, input_key: str) -> None:
        """An endpoint's state or cause is another one, by a call with this input, if by any."""
        cause = endpoint.cause
        if cause is None or cause not in SHAREABLE or endpoint.state not in _OUT or endpoint.leaving:
            return
        if self.on:
            self._mark(endpoint, now_s)
            return
        outs = self._outs[cause]
        outs.add(now_s, endpoint, input_key)
        if outs.shared_among(self._fleet.size):
            self._engage(cause, outs, now_s)

    def _engage(self, cause: ev.Cause, outs: _Outs, now_s: float) -> None:
        self.on, self.cause, self._since_s = True, cause, now_s
        self._trial, self._next_trial_s = "", now_s
        self._elsewhere_s = -math.inf
        facts = {
            "cause": str(cause),
            "workers": list(outs.by_target),
            "workers_total": self._fleet.size,
            "inputs": sum(input_key != "" for input_key in outs.inputs),
        }
        self._outbox.add(ev.Log("warning", "shared_cause", facts))
        for _, endpoint, _ in outs.by_target.values():
            self._mark(endpoint, now_s)
        self._outs = {cause: _Outs() for cause in SHAREABLE}

    def _mark(self, endpoint: Endpoint, now_s: float) -> None:
        if not endpoint.on_trial:
            endpoint.on_trial = endpoint.cooldown.short = True
            endpoint.remember(now_s, f"shared cause {self.cause}: short cooldown, back by a trial")
            self._fleet.probe_at(endpoint, now_s + endpoint.cooldown_left_s(now_s))

    # Trials

    def allows_trial(self, now_s: float) -> bool:
        """Whether a call may go to a worker on trial now."""
        return self.on and not self._trial and now_s >= self._next_trial_s

    def started(self, endpoint: Endpoint, call_id: str, now_s: float) -> None:
        """A call begins on `endpoint`."""
        if endpoint.on_trial:
            self._trial, self._next_trial_s = call_id, now_s + fixed.BRAKE_TRIAL_S
            endpoint.remember(now_s, f"trial call {call_id}")
            self._agenda.at(self._next_trial_s, look_again)

    def over(self, call_id: str) -> None:
        """A call is over, whichever way."""
        if call_id == self._trial:
            self._trial = ""

    def succeeded(self, endpoint: Endpoint, now_s: float) -> None:
        """A worker answered well."""
        if endpoint.on_trial:
            self.release(f"{endpoint.target} answered", now_s)
        else:
            self._elsewhere_s = now_s

    def failed(self, now_s: float) -> None:
        """A trial may have failed. While others serve, trying goes on only for so long."""
        others_serve = now_s - self._elsewhere_s <= fixed.STREAK_S
        if self.on and others_serve and now_s - self._since_s >= fixed.BRAKE_MAX_S:
            self.release("it lasts, and other workers serve", now_s)

    def password_changed(self, now_s: float) -> None:
        """A refused password can be the cause no longer."""
        if self.cause is ev.Cause.AUTH:
            self.release("password changed", now_s)

    def settle(self, now_s: float) -> None:
        """The pool is another one: whoever shared the cause may have left it."""
        if self.on and not any(endpoint.on_trial for endpoint in self._fleet.members()):
            self.release("none of its workers is left", now_s)

    def release(self, because: str, now_s: float) -> None:
        """The shared cause is over. Short cooldowns that run stay short."""
        facts = {"cause": str(self.cause), "because": because, "lasted_s": round(now_s - self._since_s, 3)}
        self._outbox.add(ev.Log("info", "shared_cause_over", facts))
        self.on, self.cause, self._trial = False, None, ""
        for endpoint in self._fleet.by_target.values():
            if endpoint.on_trial:
                endpoint.on_trial = False
                self._fleet.place(endpoint, now_s)
