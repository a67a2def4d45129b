"""Pools that lack one behaviour: what each of the simulator's rules is there to catch.

Each row takes a behaviour out of `edge.pool` at run time, and names the rules of which one must notice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from edge.pool import clients, passive
from edge.pool import config as fixed
from edge.pool import endpoint as endpoints
from edge.pool import events as ev
from edge.pool.admission import Admission, Place, Request
from edge.pool.brake import Brake
from edge.pool.clients import Clients
from edge.pool.cooldown import Cooldown
from edge.pool.dispatch import Dispatch
from edge.pool.endpoint import Endpoint, State, Trigger
from edge.pool.estimates import RetryBudget
from edge.pool.fleet import Fleet
from edge.pool.leases import Leases
from edge.pool.picker import Ranks
from edge.pool.poison import PoisonMemory
from edge.pool.requests import Requests
from edge.pool.sleep import Sleep
from hairmesh.wire import WorkerReason

Patch = pytest.MonkeyPatch


class Mutation(NamedTuple):
    """One behaviour less."""

    takes_out: str
    trips: frozenset[str]
    """Rules of which one must be broken."""
    kinds: tuple[str, ...]
    """Troubles that bring it to light; empty: any."""
    apply: Callable[[Patch], None]


def _method(owner: type, name: str, instead: Callable[..., object]) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(owner, name, instead)


def _around(
    owner: type, name: str, make: Callable[[Callable[..., Any]], Callable[..., object]]
) -> Callable[[Patch], None]:
    """Replace a method by one that is made of it."""
    return lambda patch: patch.setattr(owner, name, make(getattr(owner, name)))


def _move(state: State, trigger: Trigger, after: State | None) -> Callable[[Patch], None]:
    """Another row in the table of transitions."""

    def apply(patch: Patch) -> None:
        table = {each: dict(row) for each, row in endpoints.TRANSITIONS.items()}
        table[state][trigger] = after
        patch.setattr(endpoints, "TRANSITIONS", table)

    return apply


def _backwards(original: Callable[[Admission], Iterator[Request]]) -> Callable[[Admission], Iterator[Request]]:
    return lambda self: iter(sorted(original(self), key=lambda request: -request.number))


def _by_hope(self: Leases, target: str, call_id: str, now_s: float) -> None:
    self.give_back(target, call_id)


def _tried_again(original: Callable[..., Endpoint | None]) -> Callable[..., Endpoint | None]:
    return lambda self, _tried=(), *args, **options: original(self, (), *args, **options)


def _spilling(original: Callable[..., Endpoint | None]) -> Callable[..., Endpoint | None]:
    return lambda self, *args, **options: original(self, *args, **options | {"spill": True})


def _twice(original: Callable[..., None]) -> Callable[..., None]:
    def finish(self: Any, request: Request, now_s: float) -> None:
        original(self, request, now_s)
        self._outbox.add(ev.Finish(request.call_id, request.endpoint, request.attempts, request.queue_s))

    return finish


def _lost(self: Any, request: Request, now_s: float) -> None:
    self.by_id.pop(request.call_id)
    self.admission.leave(request, now_s)


def _back_by_word(original: Callable[..., bool]) -> Callable[..., bool]:
    def told_serving(self: Endpoint) -> bool:
        if self.state is State.NOT_SERVING:
            self.state = State.SERVING
        return original(self)

    return told_serving


def _blind_to_others(original: Callable[..., None]) -> Callable[..., None]:
    def status_told(self: Fleet, endpoint: Endpoint, event: ev.StatusTold, *, ours: bool) -> None:
        original(self, endpoint, event, ours=True)

    return status_told


def _free_later(original: Callable[..., None]) -> Callable[..., None]:
    def status_told(self: Fleet, endpoint: Endpoint, event: ev.StatusTold, *, ours: bool) -> None:
        place = self.place
        with pytest.MonkeyPatch.context() as patch:
            if not event.taken:
                patch.setattr(self, "place", lambda each, now_s: None if each is endpoint else place(each, now_s))
            original(self, endpoint, event, ours=ours)

    return status_told


def _one_is_enough(original: Callable[..., None]) -> Callable[..., None]:
    def probe_ended(self: Endpoint, *args: Any, **options: Any) -> None:
        self.bad_probes = self.health.unhealthy_threshold
        original(self, *args, **options)

    return probe_ended


def _never_busy(self: Fleet, endpoint: Endpoint, until_s: float) -> None:
    pass


def _never_doubled(original: Callable[..., None]) -> Callable[..., None]:
    def begin(self: Cooldown, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        self.doublings = 0

    return begin


def _without_retry_budget(patch: Patch) -> None:
    """A small budget, and nobody who minds it."""
    patch.setattr(fixed, "RETRY_BURST", 2.0)
    patch.setattr(fixed, "RETRY_SHARE", 0.0)
    patch.setattr(fixed, "RETRY_FLOOR_PER_S", 0.0)
    patch.setattr(RetryBudget, "spend", lambda _self, _now_s: True)


def _keeps_all(original: Callable[..., None]) -> Callable[..., None]:
    kept: list[Request] = []

    def finish(self: Any, request: Request, now_s: float) -> None:
        original(self, request, now_s)
        kept.append(request)
        self.kept = kept

    return finish


def _never_mind(original: Callable[..., None]) -> Callable[..., None]:
    """That a slot is free."""

    def status_told(self: Fleet, endpoint: Endpoint, event: ev.StatusTold, *, ours: bool) -> None:
        original(self, endpoint, event, ours=ours)
        if not event.taken and endpoint.online:
            self.ranks.place(endpoint, free=False, slow=False)

    return status_told


def _whoever(original: Callable[..., Endpoint | None]) -> Callable[..., Endpoint | None]:
    return lambda self, tried=(), _capability="", **options: original(self, tried, "", **options)


def _impatient(original: Callable[..., None]) -> Callable[..., None]:
    """Waiting ends after a tenth of the time."""

    def waits(self: Admission, request: Request, place: Place, give_up_s: float) -> None:
        original(self, request, place, request.waits_since_s + (give_up_s - request.waits_since_s) / 10)

    return waits


MUTATIONS = (
    Mutation(
        "a cooldown outranks good probes",
        frozenset({"cooldown"}),
        ("lying health",),
        _method(Endpoint, "cooldown_left_s", lambda _self, _now_s: 0.0),
    ),
    Mutation(
        "each further ejection is longer",
        frozenset({"cooldown"}),
        ("lying health",),
        _around(Cooldown, "begin", _never_doubled),
    ),
    Mutation(
        "a failed call ejects",
        frozenset({"cooldown", "monitor"}),
        ("lying health",),
        _move(State.SERVING, Trigger.CALL_FAILED, endpoints.STAYS),
    ),
    Mutation(
        "a failed call ejects one that has said it is down, too",
        frozenset({"cooldown", "monitor"}),
        ("disk full", "crash", "lying health"),
        _move(State.NOT_SERVING, Trigger.CALL_FAILED, endpoints.STAYS),
    ),
    Mutation(
        "a slot comes back by the worker's word alone",
        frozenset({"slot"}),
        ("cancel storm", "slow"),
        _method(Leases, "leave_behind", _by_hope),
    ),
    Mutation(
        "a call of another edge keeps us away",
        frozenset({"slot"}),
        ("others",),
        _around(Fleet, "status_told", _blind_to_others),
    ),
    Mutation(
        "one that refused as busy is left alone",
        frozenset({"slot"}),
        ("others",),
        _method(Fleet, "busy", _never_busy),
    ),
    Mutation(
        "first come, first served",
        frozenset({"order"}),
        (),
        _around(Admission, "in_order", _backwards),
    ),
    Mutation(
        "slow calls leave one worker to fast ones",
        frozenset({"share"}),
        (),
        _method(Dispatch, "_must_yield", lambda _self, _endpoint, *, behind: False),
    ),
    Mutation(
        "backups wait for the primaries' end",
        frozenset({"priority"}),
        (),
        _around(Ranks, "pick", _spilling),
    ),
    Mutation(
        "a retry goes to another worker",
        frozenset({"retry"}),
        ("lying health",),
        _around(Ranks, "pick", _tried_again),
    ),
    Mutation(
        "retries have a budget",
        frozenset({"budget"}),
        ("lying health", "crash"),
        _without_retry_budget,
    ),
    Mutation("nobody is answered twice", frozenset({"once"}), (), _around(Requests, "finish", _twice)),
    Mutation("everybody is answered", frozenset({"lost"}), (), _method(Requests, "finish", _lost)),
    Mutation(
        "waiting has an end",
        frozenset({"patience"}),
        ("slow",),
        _method(Requests, "_look_at", lambda _self, _request, _now_s: None),
    ),
    Mutation(
        "a worker's own word takes it out",
        frozenset({"monitor"}),
        ("disk full",),
        _method(Endpoint, "told_down", lambda *_: None),
    ),
    Mutation(
        "only a probe brings one back",
        frozenset({"monitor"}),
        ("flapping health",),
        _around(Endpoint, "told_serving", _back_by_word),
    ),
    Mutation(
        "bad probes take it out",
        frozenset({"monitor"}),
        ("freeze", "black hole"),
        _move(State.SERVING, Trigger.PROBES_BAD, endpoints.STAYS),
    ),
    Mutation(
        "one bad probe changes nothing",
        frozenset({"needless"}),
        ("probes hang", "freeze"),
        _around(Endpoint, "probe_ended", _one_is_enough),
    ),
    Mutation(
        "busy is not sick",
        frozenset({"needless"}),
        ("others",),
        lambda patch: patch.setitem(
            passive.BY_REASON,
            (ev.Code.RESOURCE_EXHAUSTED, WorkerReason.BUSY),
            passive.Meaning.FAILED,
        ),
    ),
    Mutation(
        "a slot that is free again is given away at once",
        frozenset({"idle"}),
        ("others",),
        _around(Fleet, "status_told", _free_later),
    ),
    Mutation(
        "one that has left the configuration gets no more calls",
        frozenset({"offline"}),
        ("reload",),
        _method(Fleet, "leave", lambda *_: None),
    ),
    Mutation(
        "one that is well again is probed soon",
        frozenset({"recovery"}),
        ("disk full", "black hole", "crash"),
        lambda patch: patch.setattr(fixed, "REPROBE_S", math.inf),
    ),
    Mutation(
        "a cause that many share is noticed",
        frozenset({"brake"}),
        ("lying health", "line flaps"),
        _method(Brake, "changed", lambda *_: None),
    ),
    Mutation(
        "one trial call at a time",
        frozenset({"brake"}),
        ("lying health", "line flaps"),
        _method(Brake, "allows_trial", lambda _self, _now_s: True),
    ),
    Mutation(
        "an input that broke two workers is refused",
        frozenset({"poison"}),
        ("slow",),
        _method(PoisonMemory, "refused_for_s", lambda *_: 0.0),
    ),
    Mutation(
        "a client whose inputs break workers gets one of them",
        frozenset({"held"}),
        ("slow",),
        _method(Dispatch, "_held_to", lambda *_: None),
    ),
    Mutation(
        "one input that broke a worker holds nobody",
        frozenset({"held"}),
        ("slow",),
        lambda patch: patch.setattr(clients, "_enough", bool),
    ),
    Mutation(
        "a client is not locked out because its worker went down by itself",
        frozenset({"held"}),
        ("disk full", "crash", "freeze"),
        _method(Clients, "put_out", lambda *_: True),
    ),
    Mutation(
        "who asks for a capability gets it",
        frozenset({"capability"}),
        ("growth gone",),
        _around(Ranks, "pick", _whoever),
    ),
    Mutation(
        "BUSY is said after the agreed wait",
        frozenset({"busy"}),
        ("slow",),
        _around(Admission, "_waits", _impatient),
    ),
    Mutation(
        "a connection lost over a standstill of ours is no strike",
        frozenset({"needless"}),
        ("edge asleep",),
        _method(Sleep, "forgives", lambda *_: False),
    ),
    Mutation(
        "only a standstill excuses a lost connection",
        frozenset({"cooldown", "monitor"}),
        ("edge asleep", "crash", "line flaps"),
        _method(Sleep, "forgives", lambda *_: True),
    ),
    Mutation(
        "a probe that we slept through says nothing",
        frozenset({"needless"}),
        ("edge asleep",),
        lambda patch: patch.setattr(endpoints, "NO_ANSWER", frozenset()),
    ),
    Mutation("what is over is forgotten", frozenset({"memory"}), (), _around(Requests, "finish", _keeps_all)),
)
