"""Queue, leases, picker and estimates, each alone."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.pool import config as fixed
from edge.pool.admission import Admission, Place, Request
from edge.pool.config import DispatchConfig, HealthCheckConfig
from edge.pool.endpoint import Endpoint
from edge.pool.estimates import RetryBudget, ServiceTimes
from edge.pool.events import ProbeResult
from edge.pool.leases import Leases
from edge.pool.picker import Ranks


def request(number: int, *, slow: bool = False, deadline_s: float = 1_000.0, size_bytes: int = 1) -> Request:
    return Request(
        call_id=f"c{number}",
        number=number,
        slow=slow,
        deadline_s=deadline_s,
        waits_since_s=0.0,
        size_bytes=size_bytes,
    )


def numbers(requests: Iterable[Request]) -> list[int]:
    return [each.number for each in requests]


def test_a_place_inside_is_given_by_arrival_and_passed_on_when_left() -> None:
    admission = Admission(DispatchConfig(max_in_flight=2))
    first, second, third, fourth = (request(n) for n in range(4))
    for each in (first, second, third, fourth):
        assert admission.arrive(each, 0.0)
    assert numbers(admission.in_order()) == [0, 1]
    assert (admission.inside, admission.outside) == (2, 2)
    admission.leave(first, 1.0)
    assert numbers(admission.in_order()) == [1, 2]
    assert third.give_up_s == 31.0, "the wait for a worker begins inside"
    admission.leave(fourth, 2.0)
    assert admission.outside == 0


def test_outside_the_bodies_count_and_too_many_bytes_are_refused() -> None:
    admission = Admission(DispatchConfig(max_in_flight=1, max_queued_bytes=100))
    assert admission.arrive(request(0, size_bytes=10_000), 0.0), "inside, size does not matter"
    waiting = request(1, size_bytes=60)
    assert admission.arrive(waiting, 0.0)
    assert not admission.arrive(request(2, size_bytes=60), 0.0)
    admission.leave(waiting, 1.0)
    assert admission.arrive(request(3, size_bytes=60), 1.0), "the bytes of one who left are free again"


def test_patience_outside_inside_and_the_request_s_own() -> None:
    admission = Admission(DispatchConfig(max_in_flight=1))
    inside, outside, hasty = request(0), request(1), request(2, deadline_s=5.0)
    for each in (inside, outside, hasty):
        admission.arrive(each, 0.0)
    assert [each.give_up_s for each in (inside, outside, hasty)] == [30.0, 590.0, 5.0]


def test_a_place_in_the_queue_is_told_by_arrival_and_by_lane() -> None:
    admission = Admission(DispatchConfig(max_in_flight=3))
    running, first, fast, second, outside, last = (request(n, slow=n != 2) for n in range(6))
    for each in (running, first, fast, second, outside, last):
        admission.arrive(each, 0.0)
    admission.start(running, 1.0)
    ahead = {each.number: admission.ahead_of(each) for each in (running, first, second, outside, last)}
    assert ahead == {0: 0, 1: 0, 3: 1, 4: 2, 5: 3}, "fast ones are in nobody's way"
    admission.put_back(running, 2.0, afresh=False)
    assert [admission.ahead_of(each) for each in (running, first, last)] == [0, 1, 4]


def test_one_put_back_stands_at_its_old_place() -> None:
    admission = Admission(DispatchConfig())
    first, second = request(0), request(1)
    admission.arrive(first, 0.0)
    admission.start(first, 4.0)
    admission.arrive(second, 5.0)
    admission.put_back(first, 10.0, afresh=False)
    assert numbers(admission.in_order()) == [0, 1]
    assert first.give_up_s == 30.0, "busy workers do not make it wait longer in all"
    assert first.queue_s == 4.0
    admission.start(first, 11.0)
    admission.put_back(first, 71.0, afresh=True)
    assert first.give_up_s == 101.0, "after a failed attempt it may wait for a worker again"
    assert first.queue_s == 5.0


def test_slow_calls_leave_places_inside_to_fast_ones() -> None:
    admission = Admission(DispatchConfig(max_in_flight=4))
    for number in range(4):
        admission.arrive(request(number, slow=True), 0.0)
    assert (admission.inside, admission.outside) == (2, 2)
    assert admission.has_room(slow=False)
    assert not admission.has_room(slow=True)
    fast = request(9)
    admission.arrive(fast, 0.0)
    assert fast.place is Place.WAITING


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=60), st.integers(1, 5))
def test_order_and_counts_hold_for_any_coming_and_going(steps: list[tuple[bool, int]], places: int) -> None:
    admission = Admission(DispatchConfig(max_in_flight=places, max_queued_bytes=10))
    present: list[Request] = []
    for number, (slow, what) in enumerate(steps):
        here = request(number, slow=slow, size_bytes=2)
        if what in {0, 1} and admission.arrive(here, 0.0):
            present.append(here)
        elif what == 2 and present:
            if present[0].place is Place.RUNNING:
                admission.put_back(present[0], 0.0, afresh=True)
            elif present[0].place is Place.WAITING:
                admission.start(present[0], 0.0)
        elif what == 3 and present:
            admission.leave(present.pop(len(present) // 2), 0.0)
        inside = [each for each in present if each.place in {Place.WAITING, Place.RUNNING}]
        assert admission.inside == len(inside) <= places
        assert admission.outside == len(present) - len(inside) <= 5
        assert numbers(admission.in_order()) == sorted(each.number for each in inside if each.place is Place.WAITING)
        for lane in (False, True):
            let_in = [each.number for each in inside if each.slow is lane]
            outside = [each.number for each in present if each.slow is lane and each.place is Place.OUTSIDE]
            assert not outside or max(let_in, default=-1) < min(outside), "nobody is overtaken at the door"


def test_a_slot_is_leased_once() -> None:
    leases = Leases()
    leases.take("w:1", "a", 0.0, slow=False)
    with pytest.raises(RuntimeError, match="w:1 is leased to a"):
        leases.take("w:1", "b", 0.0, slow=False)
    leases.give_back("w:1", "b")
    assert leases.on("w:1") is not None, "another call cannot give it back"
    leases.give_back("w:1", "a")
    leases.take("w:1", "b", 0.0, slow=False)
    leases.forget("w:1")
    assert leases.on("w:1") is None


def test_a_lease_left_behind_ends_by_a_status_asked_for_later_that_shows_the_call_gone() -> None:
    leases = Leases()
    leases.take("w:1", "a", 10.0, slow=False)
    assert not leases.told("w:1", asked_s=11.0, call_id=""), "while it runs no status ends it"
    assert leases.leave_behind("w:1", "a", 20.0)
    assert repr(leases) == "<Leases w:1=(a)>"
    assert not leases.told("w:1", asked_s=19.0, call_id=""), "an older status may be from before it began"
    assert not leases.told("w:1", asked_s=21.0, call_id="a"), "its thread still runs"
    assert leases.told("w:1", asked_s=21.0, call_id="")
    assert leases.on("w:1") is None
    with pytest.raises(RuntimeError, match="w:1 is not leased to a"):
        leases.leave_behind("w:1", "a", 22.0)


def test_another_call_in_the_slot_proves_that_ours_has_left_it() -> None:
    leases = Leases()
    leases.take("w:1", "a", 10.0, slow=False)
    leases.leave_behind("w:1", "a", 20.0)
    assert leases.told("w:1", asked_s=21.0, call_id="another-edge-7")


def worker(target: str, turn: int, *, primary: bool = True, can: str = "") -> Endpoint:
    """One that is online."""
    endpoint = Endpoint(target, primary=primary, health=HealthCheckConfig())
    endpoint.turn = turn
    endpoint.probe_ended(0.0, ProbeResult.GOOD, "")
    endpoint.capabilities = frozenset({can} if can else ())
    return endpoint


def ranks(*free: Endpoint, busy: tuple[Endpoint, ...] = ()) -> Ranks:
    made = Ranks()
    for endpoint in (*free, *busy):
        made.place(endpoint, free=endpoint not in busy, slow=False)
    return made


def picked(pool: Ranks, tried: tuple[str, ...] = (), capability: str = "", **how: bool) -> str | None:
    endpoint = pool.pick(tried, capability, **how)
    return None if endpoint is None else endpoint.target


P1, P2, B1 = worker("p1", 1), worker("p2", 2), worker("b1", 3, primary=False)


def test_the_one_whose_last_use_is_longest_ago_is_first_whenever_it_became_free() -> None:
    pool = ranks(P2, P1)
    assert picked(pool) == "p1"
    pool.place(P1, free=True, slow=False)
    pool.place(P1, free=False, slow=False)
    assert picked(pool) == "p2", "it stood there once"
    pool.place(P1, free=False, slow=False)
    pool.place(P1, free=True, slow=False)
    assert picked(pool) == "p1"


def test_primaries_get_the_work_even_when_they_are_full() -> None:
    assert picked(ranks(P2, B1, busy=(P1,))) == "p2"
    full = ranks(B1, busy=(P1, P2))
    assert picked(full) is None
    assert full.at_work.online == {"p1", "p2"}
    assert picked(full, spill=True) == "b1"


def test_backups_help_when_no_primary_is_online_or_all_have_been_tried() -> None:
    assert picked(ranks(B1)) == "b1"
    assert picked(ranks(P1, B1), tried=("p1",)) == "b1"
    pool = ranks(P1, B1)
    pool.remove(P1)
    assert picked(pool) == "b1"
    assert pool.at_work.online == {"b1"}


def test_a_tried_worker_is_never_picked_again() -> None:
    assert picked(ranks(P1), tried=("p1",)) is None
    assert picked(ranks(P1, P2), tried=("p1",)) == "p2"
    assert ranks(P1, P2).all_tried(("p1", "p2", "gone"))
    assert not ranks(P1, P2).all_tried(("p1", "gone"))


def test_a_capability_is_preferred_waited_for_and_done_without_when_nobody_has_it() -> None:
    plain, able = worker("plain", 1), worker("able", 2, can="growth")
    backup = worker("b1", 3, primary=False, can="growth")
    pool = ranks(plain, able, backup)
    assert picked(pool) == "plain"
    assert picked(pool, capability="growth") == "able"
    pool.place(able, free=False, slow=True)
    assert picked(pool, capability="growth") is None, "it is online: worth waiting for"
    assert picked(pool, capability="growth", spill=True) == "b1"
    assert picked(pool, tried=("able",), capability="growth") == "plain", "nobody else of the primaries has it"
    able.capabilities = frozenset()
    pool.place(able, free=False, slow=True)
    assert picked(pool, capability="growth") == "plain"
    plain.capabilities = frozenset({"growth"})
    pool.place(plain, free=True, slow=False)
    pool.place(able, free=True, slow=False)
    assert picked(pool, capability="growth") == "plain"


def test_one_on_trial_is_used_only_for_a_trial_and_then_first() -> None:
    suspect, sound = worker("suspect", 2), worker("sound", 1)
    suspect.on_trial = True
    pool = ranks(sound, suspect)
    assert picked(pool) == "sound"
    assert picked(pool, trial=True) == "suspect"
    assert picked(pool, tried=("suspect",), trial=True) == "sound"
    suspect.on_trial = False
    pool.place(suspect, free=True, slow=False)
    assert picked(pool, tried=("sound",)) == "suspect"


def test_a_median_needs_enough_fresh_samples() -> None:
    times = ServiceTimes()
    for number in range(fixed.SERVICE_SAMPLES_MIN - 1):
        times.add(float(number), 1.0)
    assert times.median_s(5.0) is None
    times.add(5.0, 9.0)
    assert times.median_s(5.0) == 1.0
    assert times.median_s(5.0 + fixed.SERVICE_SAMPLE_AGE_S) is None, "a slow spell is forgotten"


def test_a_lone_failure_can_always_be_retried() -> None:
    budget = RetryBudget()
    budget.request()
    assert budget.spend(0.0)


@given(st.lists(st.tuples(st.integers(0, 20), st.floats(0, 2)), max_size=50))
def test_retries_stay_within_share_floor_and_burst(steps: list[tuple[int, float]]) -> None:
    budget, now_s, requests, retries = RetryBudget(), 0.0, 0, 0
    for arrivals, pause_s in steps:
        now_s += pause_s
        for _ in range(arrivals):
            budget.request()
            requests += 1
        while budget.spend(now_s):
            retries += 1
        assert retries <= fixed.RETRY_BURST + fixed.RETRY_SHARE * requests + fixed.RETRY_FLOOR_PER_S * now_s + 1e-6
