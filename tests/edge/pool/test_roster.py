"""Endpoints come, stay and go while calls run."""

from __future__ import annotations

import pytest

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import DispatchConfig, HealthCheckConfig, Target
from edge.pool.endpoint import Endpoint, State
from edge.pool.former import Former
from tests.edge.pool.bench import GOOD, SILENT, A, B, Bench, C


def told(decisions: list[ev.Decision], *which: type) -> list[ev.Decision]:
    return [each for each in decisions if isinstance(each, which)]


def targets(bench: Bench) -> list[str]:
    return [endpoint.target for endpoint in bench.pool.endpoints()]


def serves(bench: Bench, now_s: float) -> str:
    """Who gets a call now; empty: nobody."""
    call_id = bench.call(now_s)
    where = bench.runs_on(call_id)
    if where:
        bench.ended(call_id, now_s, ev.Code.OK)
    return where


def test_at_the_start_every_endpoint_is_opened_before_it_is_probed() -> None:
    bench = Bench(A, B)
    made = bench.tell(ev.Started(0.0)) + bench.tell(ev.Tick(0.5))
    assert told(made, ev.Open, ev.Probe) == [ev.Open(A), ev.Open(B), ev.Probe(A), ev.Probe(B)]


def test_a_new_endpoint_is_opened_probed_and_serves_after_a_good_probe() -> None:
    bench = Bench(A).online()
    assert told(bench.configure(5.0, A, C), ev.Open, ev.Close, ev.Probe) == [ev.Open(C), ev.Probe(C)]
    assert targets(bench) == [A, C]
    assert {serves(bench, 5.1), serves(bench, 5.2)} == {A}
    bench.probed(C, GOOD, 5.3)
    assert {serves(bench, 5.4), serves(bench, 5.5)} == {A, C}


def test_who_stays_keeps_state_cooldown_and_lease() -> None:
    bench = Bench(A, B).online()
    failed = bench.call(1.0)
    bench.ended(failed, 2.0, ev.Code.INTERNAL, "WORKER_FAILED")
    running = failed
    assert bench.runs_on(running) == B
    until_s = bench[A].cooldown_until_s
    made = bench.configure(3.0, B, A)
    assert not told(made, ev.Open, ev.Close)
    assert targets(bench) == [B, A], "in the order of the configuration"
    assert bench[A].cooldown_until_s == until_s
    assert bench.pool.snapshot(4.0).endpoints[0].call_id == running
    bench.ended(running, 5.0, ev.Code.OK)
    assert bench.finished(running)


def test_priorities_change_for_the_next_call() -> None:
    bench = Bench(A, B, primary_workers=(A,)).online()
    assert serves(bench, 1.0) == A
    bench.configure(2.0, A, B, primary_workers=(B,))
    assert {serves(bench, 2.1), serves(bench, 2.2)} == {B}
    assert bench.logs("pool_configured")[0]["priority_changed"] == [A, B]


def test_who_goes_idle_is_closed_at_once() -> None:
    bench = Bench(A, B).online()
    assert told(bench.configure(5.0, B), ev.Close) == [ev.Close(A)]
    assert targets(bench) == [B]
    assert {serves(bench, 5.1), serves(bench, 5.2)} == {B}
    assert bench.logs("pool_configured")[0]["removed"] == [A]
    assert bench.logs("worker_leaves") == [{"worker": A, "call_id": ""}]


def test_what_runs_on_one_that_goes_ends_there_and_then_it_is_closed() -> None:
    bench = Bench(A, B).online()
    running = bench.call(1.0)
    assert not told(bench.configure(2.0, B), ev.Close)
    assert targets(bench) == [B], "it is no longer of the pool"
    snapshot = bench.pool.snapshot(2.0).endpoints
    assert [(each.target, each.leaving) for each in snapshot] == [(B, False), (A, True)]
    assert serves(bench, 2.5) == B
    assert told(bench.ended(running, 3.0, ev.Code.OK), ev.Finish, ev.Close) == [
        ev.Finish(running, A, 1, 0.0),
        ev.Close(A),
    ]


def test_a_call_that_fails_on_one_that_goes_is_tried_again() -> None:
    bench = Bench(A, B).online()
    running = bench.call(1.0)
    bench.configure(2.0, B)
    bench.ended(running, 3.0, ev.Code.INTERNAL, "WORKER_FAILED")
    assert bench.runs_on(running) == B
    assert ev.Close(A) in bench.decisions


def test_a_slot_left_behind_is_waited_for_until_a_status_gives_it_back() -> None:
    bench = Bench(A, B).online()
    bench.tell(ev.CallGone(1.5, bench.call(1.0)))
    assert not told(bench.configure(2.0, B), ev.Close)
    assert told(bench.status(A, 3.0), ev.Close) == [ev.Close(A)]


def test_a_status_that_says_two_things_closes_it_once() -> None:
    bench = Bench(A, B).online()
    bench.tell(ev.CallGone(1.5, bench.call(1.0)))
    bench.configure(2.0, B)
    assert told(bench.status(A, 3.0, cause=ev.Cause.DRAINING), ev.Close) == [ev.Close(A)]


def test_and_not_for_ever() -> None:
    bench = Bench(A, B).online()
    bench.tell(ev.CallGone(1.5, bench.call(1.0)))
    bench.configure(2.0, B)
    assert not told(bench.tell(ev.Tick(2.0 + fixed.LEAVING_MAX_S - 0.1)), ev.Close)
    assert told(bench.tell(ev.Tick(2.0 + fixed.LEAVING_MAX_S)), ev.Close) == [ev.Close(A)]
    assert bench.logs("worker_left_with_slot_taken") == [{"worker": A, "call_id": "edge-1"}]


def test_a_call_that_runs_for_longer_is_not_cut_off() -> None:
    bench = Bench(A, B, dispatch=DispatchConfig(growth_timeout_seconds=900)).online()
    running = bench.call(1.0, slow=True)
    bench.configure(2.0, B, dispatch=DispatchConfig(growth_timeout_seconds=900))
    assert not told(bench.tell(ev.Tick(2.0 + fixed.LEAVING_MAX_S)), ev.Close)
    bench.ended(running, 300.0, ev.Code.OK)
    assert bench.finished(running)
    assert ev.Close(A) in bench.decisions
    bench.tell(ev.Tick(2.0 + 2 * fixed.LEAVING_MAX_S))
    assert len(told(bench.decisions, ev.Close)) == 1


def test_one_that_is_called_back_goes_on_as_it_was() -> None:
    bench = Bench(A, B).online()
    running = bench.call(1.0)
    bench.configure(2.0, B)
    assert not told(bench.configure(3.0, A, B), ev.Open, ev.Close)
    assert targets(bench) == [A, B]
    assert bench.pool.snapshot(3.0).endpoints[0].call_id == running, "its slot is still taken"
    bench.ended(running, 4.0, ev.Code.OK)
    assert ev.Close(A) not in bench.decisions
    bench.tell(ev.Tick(300.0))
    assert A in targets(bench)


@pytest.mark.parametrize(
    "late",
    [
        ev.ProbeEnded(6.0, A, GOOD),
        ev.HealthTold(6.0, A, serving=False),
        ev.ConnectionLost(6.0, A),
        ev.StatusTold(6.0, A, 5.0, "boot-1", taken=True, call_id="edge-1", steps=3),
        ev.StatusLost(6.0, A),
        ev.CallProgressed(6.0, "edge-99"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_is_still_heard_of_one_that_has_left_means_nothing(late: ev.Event) -> None:
    bench = Bench(A, B).online()
    bench.configure(5.0, B)
    before = repr(bench.pool)
    assert bench.tell(late) == []
    assert repr(bench.pool) == before


def test_an_address_that_comes_back_is_a_new_endpoint() -> None:
    bench = Bench(A, B).online()
    bench.ended(bench.call(1.0), 2.0, ev.Code.RESOURCE_EXHAUSTED, "BUSY", retry_after_s=9.0)
    bench.configure(5.0, B)
    assert told(bench.configure(6.0, A, B), ev.Open) == [ev.Open(A)]
    assert not bench[A].online
    bench.tell(ev.Tick(11.0))  # when the one before would have been asked again
    bench.probed(A, GOOD, 11.1)
    assert bench[A].online


# A change that would leave nobody online


def test_the_last_ones_serve_until_somebody_new_is_online() -> None:
    bench = Bench(A).online()
    made = bench.configure(5.0, C)
    assert told(made, ev.Open, ev.Close, ev.Probe) == [ev.Open(C), ev.Probe(C)]
    assert bench.logs("replacement_awaited") == [{"workers": [A], "wait_s": 10.0}]
    assert [endpoint.online for endpoint in bench.pool.endpoints()] == [False, True], "monitoring sees who serves"
    assert bench.pool.snapshot(5.0).endpoints[1].leaving
    assert serves(bench, 6.0) == A
    assert told(bench.probed(C, GOOD, 7.0), ev.Close) == [ev.Close(A)]
    assert serves(bench, 7.1) == C
    bench.tell(ev.Tick(15.0))
    assert bench.logs("workers_left_unreplaced") == []


def test_one_of_them_that_serves_no_longer_leaves_and_the_others_go_on() -> None:
    bench = Bench(A, B).online()
    bench.configure(5.0, C)
    assert told(bench.tell(ev.HealthTold(6.0, A, serving=False)), ev.Close) == [ev.Close(A)]
    assert serves(bench, 7.0) == B


def test_after_ten_seconds_they_leave_all_the_same() -> None:
    bench = Bench(A).online()
    bench.configure(5.0, C)
    bench.tell(ev.Tick(14.9))
    bench.probed(C, SILENT, 14.9)
    assert serves(bench, 14.9) == A
    waiting = [bench.call(14.95), bench.call(14.95)]
    made = bench.tell(ev.Tick(15.0))
    assert bench.logs("workers_left_unreplaced") == [{"workers": [A]}]
    assert not told(made, ev.Close)
    assert bench.reason(waiting[1]) == "NO_WORKER"
    bench.ended(waiting[0], 15.5, ev.Code.OK)
    assert bench.finished(waiting[0])
    assert ev.Close(A) in bench.decisions


def test_who_is_offline_need_not_be_waited_for() -> None:
    bench = Bench(A, B).online()
    bench.tell(ev.HealthTold(1.0, A, serving=False))
    made = bench.configure(5.0, C)
    assert told(made, ev.Close) == [ev.Close(A)]
    assert targets(bench) == [C, B]


def test_where_somebody_stays_online_nobody_is_waited_for() -> None:
    bench = Bench(A, B).online()
    assert told(bench.configure(5.0, B, C), ev.Close) == [ev.Close(A)]
    assert bench.logs("replacement_awaited") == []


def test_a_second_change_decides_anew_about_those_that_wait() -> None:
    bench = Bench(A, B).online()
    bench.configure(5.0, C)
    bench.configure(9.0, A, C)
    assert bench.logs("worker_leaves") == [{"worker": B, "call_id": ""}], "with A in the pool it need not wait"
    bench.tell(ev.Tick(15.0))
    assert targets(bench) == [A, C]
    assert serves(bench, 16.0) == A
    assert "stays after all" in bench.history(A)


# Names


def test_a_pool_may_be_without_endpoints_until_its_names_lead_somewhere() -> None:
    bench = Bench("dns:///workers:1", targets=())
    bench.tell(ev.Started(0.0))
    bench.tell(ev.StartupOver(3.0))
    failed = bench.failed(bench.call(4.0))
    assert failed is not None
    assert (failed.reason, failed.retry_after_s) == ("NO_WORKER", 8.0)
    found = (Target(A, name="dns:///workers:1"), Target(B, name="dns:///workers:1"))
    made = bench.tell(ev.Configured(5.0, bench.config, found))
    assert told(made, ev.Open) == [ev.Open(A), ev.Open(B)]
    bench.probed(A, GOOD, 5.1)
    assert serves(bench, 5.2) == A
    assert [each.name for each in bench.pool.snapshot(6.0).endpoints] == ["dns:///workers:1"] * 2
    assert told(bench.tell(ev.Configured(6.0, bench.config, ())), ev.Close) == [ev.Close(B)]
    assert serves(bench, 7.0) == A, "and it may be so again, when nobody has come for ten seconds"
    assert told(bench.tell(ev.Tick(16.0)), ev.Close) == [ev.Close(A)]


def test_without_targets_the_addresses_of_the_configuration_are_the_pool() -> None:
    assert targets(Bench(A, "dns:///workers:1", B)) == [A, B]


def test_an_address_that_two_names_lead_to_is_one_endpoint_primary_if_any_says_so() -> None:
    bench = Bench("dns:///one:1", "dns:///two:1", "dns:///three:1", primary_workers=("dns:///two:1",), targets=())
    bench.tell(ev.Started(0.0))
    names = (
        Target(A, primary=False, name="dns:///one:1"),
        Target(A, primary=True, name="dns:///two:1"),
        Target(A, primary=True, name="dns:///three:1"),
    )
    bench.tell(ev.Configured(1.0, bench.config, names))
    assert targets(bench) == [A]
    assert (bench[A].primary, bench[A].name) == (True, "dns:///two:1")


# Settings


def test_a_cooldown_of_zero_brings_everybody_back_by_the_next_good_probe() -> None:
    bench = Bench(A, B).online()
    bench.ended(bench.call(1.0), 2.0, ev.Code.INTERNAL)
    made = bench.configure(5.0, A, B, health=HealthCheckConfig(cooldown_seconds=0))
    assert ev.Probe(A) in made
    bench.probed(A, GOOD, 5.1)
    assert bench[A].online


def test_a_shorter_interval_begins_now() -> None:
    bench = Bench(A, health=HealthCheckConfig(interval_seconds=3_600)).online()
    bench.configure(5.0, A, health=HealthCheckConfig(interval_seconds=2))
    assert ev.Probe(A) in bench.tell(ev.Tick(7.3))


def test_thresholds_hold_for_what_has_begun() -> None:
    bench = Bench(A, B).online()
    bench.tell(ev.Tick(10.0))
    bench.probed(A, SILENT, 10.1)
    bench.configure(10.5, A, B, health=HealthCheckConfig(unhealthy_threshold=3))
    bench.tell(ev.Tick(12.0))
    bench.probed(A, SILENT, 12.1)
    assert bench[A].online


def test_limits_hold_for_who_comes_and_let_in_who_waits() -> None:
    bench = Bench(A, dispatch=DispatchConfig(max_in_flight=1)).online()
    bench.call(1.0)
    bench.call(1.0)
    assert bench.pool.snapshot(1.0).waiting_outside == 1
    bench.configure(2.0, A, dispatch=DispatchConfig(max_in_flight=8, queue_wait_seconds=5, request_timeout_seconds=3))
    assert (bench.pool.snapshot(2.0).waiting_outside, bench.pool.snapshot(2.0).inside) == (0, 2)
    made = bench.ended("edge-1", 3.0, ev.Code.OK)
    assert told(made, ev.Start) == [ev.Start("edge-2", A, 3.0)]
    waits = bench.call(4.0)
    bench.tell(ev.Tick(9.0))
    assert bench.reason(waits) == "BUSY"


def test_the_log_says_what_is_different() -> None:
    bench = Bench(A, B).online()
    bench.configure(5.0, B, C, health=HealthCheckConfig(cooldown_seconds=30), dispatch=DispatchConfig(max_retries=2))
    assert bench.logs("pool_configured") == [
        {
            "added": [C],
            "removed": [A],
            "priority_changed": [],
            "settings": {"health.cooldown_seconds": "60.0 → 30", "dispatch.max_retries": "1 → 2"},
        }
    ]


@pytest.mark.parametrize("change_first", [True, False])
def test_a_change_and_the_end_of_a_call_lead_to_the_same_end_in_either_order(change_first: bool) -> None:
    bench = Bench(A, B, C).online()
    going, staying = bench.call(1.0), bench.call(1.0)
    health = HealthCheckConfig(cooldown_seconds=30)
    if change_first:
        bench.configure(2.0, B, C, health=health)
    bench.ended(going, 2.0, ev.Code.OK)
    bench.ended(staying, 2.0, ev.Code.INTERNAL)
    if not change_first:
        bench.configure(2.0, B, C, health=health)
    assert targets(bench) == [B, C]
    assert ev.Close(A) in bench.decisions
    assert 30 <= bench[B].cooldown_left_s(2.0) <= 33
    assert bench.runs_on(staying) in {A, C}


# Addresses that come back


def ejected(bench: Bench, target: str, now_s: float, how: ev.Code = ev.Code.INTERNAL) -> None:
    """A call fails on it; its retry goes well elsewhere."""
    call_id = bench.call(now_s)
    while bench.runs_on(call_id) != target:
        bench.ended(call_id, now_s, ev.Code.OK)
        call_id = bench.call(now_s)
    bench.ended(call_id, now_s, how, "WORKER_FAILED")
    bench.ended(call_id, now_s, ev.Code.OK)


def probed_well(bench: Bench, target: str, now_s: float) -> None:
    bench.tell(ev.Tick(now_s))
    bench.probed(target, GOOD, now_s)


def test_a_cooldown_outlives_a_removal() -> None:
    bench = Bench(A, B).online()
    ejected(bench, A, 2.0)
    until_s = bench[A].cooldown_until_s
    bench.configure(3.0, B)
    assert ev.Close(A) in bench.decisions
    assert bench.logs("worker_left") == [{"worker": A}]
    bench.configure(4.0, A, B)
    probed_well(bench, A, 5.0)
    assert (bench[A].state, bench[A].cause) == (State.EJECTED, ev.Cause.PASSIVE)
    assert bench[A].cooldown_until_s == until_s
    assert bench.logs("worker_returns") == [
        {"worker": A, "cooldown_s": round(until_s - 4.0, 3), "ejections": 1, "call_id": ""}
    ]
    assert bench.history(A)[0] == "back at its address: what it did there still counts"
    probed_well(bench, A, until_s + 0.1)
    assert bench[A].online


def test_so_do_its_doublings() -> None:
    bench = Bench(A, B).online()
    ejected(bench, A, 2.0)
    bench.back(A, 70.0)
    bench.configure(71.0, B)
    bench.configure(72.0, A, B)
    assert bench[A].state is State.UNKNOWN
    probed_well(bench, A, 72.1)
    ejected(bench, A, 73.0)
    assert bench[A].cooldown_left_s(73.0) >= 120


def test_but_not_for_longer_than_the_longest_cooldown() -> None:
    bench = Bench(A, B).online()
    ejected(bench, A, 2.0)
    bench.configure(3.0, B)
    bench.configure(303.5, A, B)
    assert (bench[A].state, bench[A].ejections) == (State.UNKNOWN, 0)


def test_one_that_leaves_in_good_standing_comes_back_like_a_new_one() -> None:
    bench = Bench(A, B).online()
    bench.configure(3.0, B)
    bench.configure(4.0, A, B)
    assert bench.logs("worker_returns") == []


def test_the_emergency_switch_and_a_new_password_hold_for_those_that_are_away() -> None:
    bench = Bench(A, B, C).online()
    ejected(bench, A, 2.0)
    ejected(bench, B, 2.1, ev.Code.UNAUTHENTICATED)
    bench.configure(3.0, C)
    bench.tell(ev.PasswordChanged(3.5))
    bench.configure(4.0, A, B, C)
    assert [bench[each].state for each in (A, B)] == [State.EJECTED, State.UNKNOWN]
    bench.configure(5.0, C)
    bench.configure(6.0, A, C, health=HealthCheckConfig(cooldown_seconds=0))
    assert bench[A].state is State.UNKNOWN


def test_a_slot_left_behind_is_not_free_because_its_address_came_back() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0)
    bench.tell(ev.CallGone(3.0, call_id))
    bench.configure(4.0, B)
    bench.tell(ev.Tick(4.0 + fixed.LEAVING_MAX_S))
    assert bench.logs("worker_left_with_slot_taken")
    bench.configure(190.0, A, B)
    bench.status(A, 190.0, taken=True, call_id=call_id)
    probed_well(bench, A, 190.1)
    assert bench[A].online
    calls = [bench.call(191.0) for _ in range(2)]
    assert [bench.runs_on(each) for each in calls] == [B, ""]
    bench.status(A, 192.0, taken=True, call_id=call_id)
    assert bench.runs_on(calls[1]) == ""
    bench.status(A, 193.0)
    assert bench.runs_on(calls[1]) == A


def test_only_so_many_are_remembered() -> None:
    former = Former()
    for number in range(fixed.FORMER_MAX + 5):
        endpoint = Endpoint(f"w{number}:1", primary=True, health=HealthCheckConfig())
        endpoint.cooldown.doublings = 1
        former.keep(endpoint, None, 1.0)
    assert len(former) == fixed.FORMER_MAX
    assert former.take("w4:1", 2.0, kept_s=300.0) is None
    assert former.take("w5:1", 2.0, kept_s=300.0) is not None
    assert former.take("w6:1", 302.0, kept_s=300.0) is None
    assert len(former) == 0


def test_a_slot_left_behind_by_a_call_that_outlived_the_wait_is_given_up_as_well() -> None:
    settings = DispatchConfig(growth_timeout_seconds=900)
    bench = Bench(A, B, dispatch=settings).online()
    running = bench.call(1.0, slow=True)
    bench.configure(2.0, B, dispatch=settings)
    bench.tell(ev.Tick(2.0 + fixed.LEAVING_MAX_S))
    bench.tell(ev.CallGone(200.0, running))
    assert told(bench.tell(ev.Tick(2.0 + 2 * fixed.LEAVING_MAX_S)), ev.Close) == [ev.Close(A)]
