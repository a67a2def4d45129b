"""When most workers go out together for a cause that they may share, waiting it out one by one helps nobody.

Then there is one alert; cooldowns shorten to `BRAKE_COOLDOWN_S`; and whoever went out for it gets calls again only as
trials, one at a time in the whole pool and one every `BRAKE_TRIAL_S`, until one succeeds. That changes durations and
nothing else: who is online is what it always is.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container
from dataclasses import dataclass

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.agenda import Agenda, look_again
from edge.pool.endpoint import Endpoint, State
from edge.pool.fleet import Fleet
from edge.pool.outbox import Outbox

SHAREABLE = frozenset({ev.Cause.PASSIVE, ev.Cause.DEPENDENCY, ev.Cause.AUTH})
_OUT = frozenset({State.EJECTED, State.NOT_SERVING})


@dataclass(frozen=True, slots=True)
class _Out:
    """A worker went out."""

    at_s: float
    endpoint: Endpoint
    input_key: str
    """Of the call that failed on it; empty: by its own word, or by probes."""


class _Outs:
    """Those of late for one cause."""

    def __init__(self) -> None:
        self._outs: deque[_Out] = deque()
        self._times: Counter[str] = Counter()
        """How often each worker."""
        self._inputs: Counter[str] = Counter()

    def add(self, out: _Out) -> None:
        """One more; what is too old drops out."""
        self._outs.append(out)
        self._times[out.endpoint.target] += 1
        self._inputs[out.input_key] += 1
        while self._outs[0].at_s < out.at_s - fixed.BRAKE_WINDOW_S:
            oldest = self._outs.popleft()
            _take(self._times, oldest.endpoint.target)
            _take(self._inputs, oldest.input_key)

    def of(self, members: Container[Endpoint]) -> _Outs:
        """The same without those that have left."""
        kept = _Outs()
        for out in self._outs:
            if out.endpoint in members:
                kept.add(out)
        return kept

    def endpoints(self) -> list[Endpoint]:
        """Each once, in the order in which they first went out."""
        return list({out.endpoint.target: out.endpoint for out in self._outs}.values())

    @property
    def inputs(self) -> int:
        """How many different ones."""
        return len(self._inputs) - ("" in self._inputs)

    @property
    def without_a_call(self) -> int:
        """How many went out by their own word, or by probes."""
        return self._inputs[""]

    def shared_among(self, workers: int) -> bool:
        """Whether this is more than a coincidence, in a pool of so many."""
        if workers < fixed.BRAKE_WORKERS_MIN or len(self._times) <= fixed.BRAKE_SHARE * workers:
            return False
        return self.inputs == 0 or self.inputs + self.without_a_call >= fixed.SHARED_INPUTS


def _take(counter: Counter[str], key: str) -> None:
    """One less."""
    counter[key] -= 1
    if counter[key] == 0:
        del counter[key]


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

    def changed(self, endpoint: Endpoint, now_s: float, input_key: str) -> None:
        """An endpoint's state or cause is another one, by a call with this input, if by any."""
        cause = endpoint.cause
        if cause is None or cause not in SHAREABLE or endpoint.state not in _OUT or endpoint.leaving:
            return
        if self.on:
            if cause is self.cause:
                self._mark(endpoint, now_s)
            return
        outs = self._outs[cause]
        outs.add(_Out(now_s, endpoint, input_key))
        if outs.shared_among(self._fleet.size):
            self._engage(cause, outs, now_s)

    def _engage(self, cause: ev.Cause, outs: _Outs, now_s: float) -> None:
        self.on, self.cause, self._since_s = True, cause, now_s
        self._trial, self._next_trial_s = "", now_s
        endpoints = outs.endpoints()
        facts = {
            "cause": str(cause),
            "workers": [endpoint.target for endpoint in endpoints],
            "workers_total": self._fleet.size,
            "inputs": outs.inputs,
            "without_a_call": outs.without_a_call,
        }
        self._outbox.add(ev.Log("warning", "shared_cause", facts))
        for endpoint in endpoints:
            self._mark(endpoint, now_s)
        self._outs = {cause: _Outs() for cause in SHAREABLE}

    def _mark(self, endpoint: Endpoint, now_s: float) -> None:
        if not endpoint.on_trial:
            endpoint.on_trial = endpoint.cooldown.short = True
            cooldown_s = round(endpoint.cooldown_left_s(now_s), 3)
            how = "short cooldown, back by a trial" if cooldown_s > 0 else "back by a trial"
            what = f"shared cause {self.cause}: {how}"
            self._fleet.note(endpoint, now_s, what, "worker_on_trial", cause=str(self.cause), cooldown_s=cooldown_s)
            self._fleet.probe_at(endpoint, now_s + endpoint.cooldown_left_s(now_s))
            self._fleet.place(endpoint, now_s)

    # Trials

    def allows_trial(self, now_s: float) -> bool:
        """Whether a call may go to a worker on trial now."""
        return self.on and not self._trial and now_s >= self._next_trial_s

    def started(self, endpoint: Endpoint, call_id: str, now_s: float) -> None:
        """A call begins on `endpoint`."""
        if endpoint.on_trial:
            self._trial, self._next_trial_s = call_id, now_s + fixed.BRAKE_TRIAL_S
            self._fleet.note(endpoint, now_s, f"trial call {call_id}", "trial_call", call_id=call_id)
            self._agenda.at(self._next_trial_s, look_again)

    def over(self, call_id: str) -> None:
        """A call is over, whichever way."""
        if call_id == self._trial:
            self._trial = ""

    def succeeded(self, endpoint: Endpoint, now_s: float) -> None:
        """A worker answered well. While others serve, its workers are treated so only for so long, tried or not."""
        if endpoint.on_trial:
            self.release(f"{endpoint.target} answered", now_s)
        elif now_s - self._since_s >= fixed.BRAKE_MAX_S:
            self.release("it lasts, and other workers serve", now_s)

    def password_changed(self, now_s: float) -> None:
        """A refused password can be the cause no longer."""
        if self.cause is ev.Cause.AUTH:
            self.release("password changed", now_s)

    def settle(self, now_s: float) -> None:
        """The pool is another one: what went out before may not be of it any more."""
        members = self._fleet.members()
        self._outs = {cause: outs.of(members) for cause, outs in self._outs.items()}
        if self.on and not any(endpoint.on_trial for endpoint in members):
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
