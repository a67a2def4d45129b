"""Attempts that move, slots that do not come back, workers that can do more than others."""

from __future__ import annotations

import pytest

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import DispatchConfig, HealthCheckConfig
from tests.edge.pool.bench import GOOD, A, B, Bench, C

GROWTH = frozenset({"measure", "growth"})


def status_moves(bench: Bench, call_id: str, at_s: float) -> None:
    """Two words of the worker about its slot, the second with another step."""
    for steps in (1, 2):
        bench.status(A, at_s, taken=True, call_id=call_id, stage="drawing", steps=steps)


def stream_moves(bench: Bench, call_id: str, at_s: float) -> None:
    bench.tell(ev.CallProgressed(at_s, call_id))


# An attempt that ran out of its time


@pytest.mark.parametrize("moves", [status_moves, stream_moves])
def test_a_worker_that_was_moving_late_in_the_attempt_is_slow_and_not_ejected(moves: object) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    moves(bench, call_id, 32.0)  # type: ignore[operator]
    bench.ended(call_id, 61.0, ev.Code.DEADLINE_EXCEEDED)
    assert bench[A].online
    assert bench.runs_on(call_id) == B, "a fast call is tried again all the same"


@pytest.mark.parametrize("at_s", [1.1, 30.9])
def test_one_that_moved_early_and_then_hung_is_ejected(at_s: float) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    stream_moves(bench, call_id, at_s)
    bench.ended(call_id, 61.0, ev.Code.DEADLINE_EXCEEDED)
    assert not bench[A].online


def test_one_that_tells_the_same_again_and_again_does_not_move() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    for now_s in (32.0, 40.0, 50.0):
        bench.status(A, now_s, taken=True, call_id=call_id, stage="parsing", steps=7)
    bench.ended(call_id, 61.0, ev.Code.DEADLINE_EXCEEDED)
    assert not bench[A].online


def test_what_it_tells_of_other_calls_is_no_progress_of_this_one() -> None:
    bench = Bench(A, B).online()
    on_a, on_b = bench.call(1.0), bench.call(1.0)
    for steps in (1, 2):
        bench.status(A, 40.0 + steps, taken=True, call_id="other-1", steps=steps)
        bench.status(A, 40.0 + steps, taken=True, call_id=on_b, steps=steps)
    for call_id in (on_a, on_b):
        bench.ended(call_id, 61.0, ev.Code.DEADLINE_EXCEEDED)
    assert [bench[A].online, bench[B].online] == [False, False]


def test_progress_of_one_attempt_says_nothing_about_the_next() -> None:
    bench = Bench(A, B, C, dispatch=DispatchConfig(max_retries=2)).online()
    call_id = bench.call(1.0)
    stream_moves(bench, call_id, 50.0)
    bench.ended(call_id, 61.0, ev.Code.DEADLINE_EXCEEDED)
    bench.ended(call_id, 121.0, ev.Code.DEADLINE_EXCEEDED)
    assert [bench[A].online, bench[B].online] == [True, False]


# A slow call that had got on

LOST = [(ev.Code.UNAVAILABLE, ""), (ev.Code.UNAVAILABLE, "DRAINING")]
NOT_LOST = [
    (ev.Code.INTERNAL, "WORKER_FAILED"),
    (ev.Code.UNAVAILABLE, "STALLED"),
    (ev.Code.ABORTED, ""),
    (ev.Code.DEADLINE_EXCEEDED, ""),
]


@pytest.mark.parametrize(("code", "reason"), LOST)
def test_it_is_tried_again_when_its_worker_is_gone(code: ev.Code, reason: str) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0, slow=True)
    stream_moves(bench, call_id, 2.0)
    bench.ended(call_id, 181.0, code, reason)
    assert bench.runs_on(call_id) == B


@pytest.mark.parametrize(("code", "reason"), NOT_LOST)
def test_and_only_then(code: ev.Code, reason: str) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0, slow=True)
    stream_moves(bench, call_id, 100.0)
    bench.ended(call_id, 181.0, code, reason)
    failed = bench.failed(call_id)
    assert failed is not None
    assert (failed.reason, failed.attempts) == (
        "DEADLINE" if code is ev.Code.DEADLINE_EXCEEDED else "WORKER_FAILED",
        1,
    )
    assert bench.logs("attempt_failed")[0]["because"] == "a slow call that had got on, and its worker is not gone"


@pytest.mark.parametrize(("code", "reason"), NOT_LOST)
def test_one_that_had_not_is_tried_again_for_any_failure(code: ev.Code, reason: str) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0, slow=True)
    bench.ended(call_id, 181.0, code, reason)
    assert bench.runs_on(call_id) == B


# Why it was not tried again stands in the log


def test_every_failed_attempt_is_a_line_that_says_what_became_of_it() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 2.0, ev.Code.ABORTED)
    bench.ended(call_id, 4.0, ev.Code.UNAVAILABLE, "DISK")
    facts = [(each["worker"], each["code"], each["took_s"], each["because"]) for each in bench.logs("attempt_failed")]
    assert facts == [(A, "ABORTED", 1.0, ""), (B, "UNAVAILABLE", 2.0, "nobody is online")]


def test_a_spent_budget_is_said() -> None:
    bench = Bench(*(f"w:{number}" for number in range(1, 40))).online()
    calls = [bench.call(1.0) for _ in range(20)]
    for call_id in calls:
        bench.ended(call_id, 1.5, ev.Code.UNAVAILABLE, "DISK")
    reasons = {each["because"] for each in bench.logs("attempt_failed")}
    assert reasons == {"", "retry budget spent"}


# A slot that does not come back


def test_a_slot_that_no_status_gives_back_is_named_and_never_given_back_by_hope() -> None:
    bench = Bench(A, B).online()
    bench.tell(ev.CallGone(2.0, bench.call(1.0)))
    bench.tell(ev.Tick(2.0 + fixed.LEFT_BEHIND_WARN_S))
    assert bench.logs("slot_not_returned") == [{"worker": A, "call_id": "edge-1", "since_s": 60.0}]
    assert bench.pool.snapshot(900.0).endpoints[0].left_behind
    assert {bench.runs_on(bench.call(900.0)), bench.runs_on(bench.call(900.0))} == {B, ""}
    bench.status(A, 901.0)
    assert bench.logs("slot_returned") == [{"worker": A, "call_id": "edge-1", "since_s": 899.0}]


def test_one_that_comes_back_in_time_is_no_news() -> None:
    bench = Bench(A).online()
    bench.tell(ev.CallGone(2.0, bench.call(1.0)))
    bench.status(A, 2.1)
    bench.tell(ev.Tick(100.0))
    assert not bench.logs("slot_not_returned")
    assert not bench.logs("slot_returned")


# Capabilities and spill


def test_growth_goes_where_it_can_be_done_waits_there_and_does_without_when_nobody_can() -> None:
    bench = Bench(A, B, dispatch=DispatchConfig(queue_wait_seconds=10)).online()
    bench.status(B, 1.0, capabilities=GROWTH)
    assert bench.pool.snapshot(1.0).growth_capable == 1
    first, second, third = (bench.call(1.0, slow=True, capability="growth") for _ in range(3))
    assert [bench.runs_on(each) for each in (first, second)] == [B, ""]
    assert bench.runs_on(bench.call(1.5)) == A, "others are not kept waiting by that"
    bench.ended(first, 3.0, ev.Code.OK)
    assert bench.runs_on(second) == B
    bench.tell(ev.Tick(11.0))
    assert bench.reason(third) == "BUSY"
    bench.ended("edge-4", 11.1, ev.Code.OK)
    bench.status(B, 12.0, taken=True, call_id=second)
    assert bench.runs_on(bench.call(12.1, slow=True, capability="growth")) == A


def test_backups_help_a_full_group_of_primaries_only_after_the_wait_that_is_set() -> None:
    bench = Bench(A, B, primary_workers=(A,), dispatch=DispatchConfig(spill_after_seconds=2)).online()
    bench.call(1.0)
    waits = bench.call(1.0)
    assert ev.Wake(3.0) in bench.decisions
    bench.tell(ev.Tick(2.9))
    assert bench.runs_on(waits) == ""
    bench.tell(ev.Tick(3.0))
    assert bench.runs_on(waits) == B


def test_without_that_setting_they_never_do() -> None:
    bench = Bench(A, B, primary_workers=(A,)).online()
    bench.call(1.0)
    waits = bench.call(1.0)
    bench.tell(ev.Tick(30.9))
    assert bench.runs_on(waits) == ""


def test_a_client_that_leaves_the_queue_costs_nobody_anything() -> None:
    bench = Bench(A).online()
    running, waiting = bench.call(1.0), bench.call(1.0)
    assert bench.tell(ev.CallGone(2.0, waiting)) == []
    assert bench.pool.snapshot(2.0).inside == 1
    bench.ended(running, 3.0, ev.Code.OK)
    assert bench.runs_on(waiting) == ""


def test_a_request_without_any_time_is_refused_at_once() -> None:
    bench = Bench(A).online()
    assert bench.reason(bench.call(1.0, timeout_s=0.0)) == "DEADLINE"


def test_one_that_gives_up_lets_the_next_one_in_to_the_worker_that_is_free() -> None:
    bench = Bench(A, dispatch=DispatchConfig(max_in_flight=2)).online()
    running = bench.call(1.0)
    late, outside = bench.call(1.0, timeout_s=1.0), bench.call(1.0)
    bench.tell(ev.CallGone(1.5, running))
    bench.status(A, 5.0, asked_s=4.0)
    assert bench.reason(late) == "DEADLINE"
    assert bench.runs_on(outside) == A


# Passwords


def test_another_password_brings_back_who_was_out_for_the_old_one() -> None:
    bench = Bench(A, B).online()
    bench.ended(bench.call(1.0), 1.1, ev.Code.UNAUTHENTICATED, "WRONG_PASSWORD")
    assert ev.Probe(A) in bench.tell(ev.PasswordChanged(2.0))
    bench.probed(A, GOOD, 2.1)
    assert (bench[A].online, bench[A].ejections) == (True, 0)
    assert bench.history(A)[1] == "password changed: probed at once"


@pytest.mark.parametrize("change_first", [True, False])
def test_a_call_refused_as_the_password_changes_leads_to_the_same_end_in_either_order(change_first: bool) -> None:
    bench = Bench(A, B, health=HealthCheckConfig(interval_seconds=3_600)).online()
    call_id = bench.call(1.0)
    if change_first:
        bench.tell(ev.PasswordChanged(1.1))
    bench.ended(call_id, 1.1, ev.Code.UNAUTHENTICATED, "WRONG_PASSWORD")
    if not change_first:
        bench.tell(ev.PasswordChanged(1.1))
    assert bench.runs_on(call_id) == B
    assert ev.Probe(A) in bench.decisions[-4:], "at once"
    bench.probed(A, GOOD, 1.2)
    assert (bench[A].online, bench[A].ejections) == (True, 0)


def test_a_probe_refused_with_the_old_password_is_asked_again_at_once() -> None:
    bench = Bench(A, health=HealthCheckConfig(unhealthy_threshold=1)).online()
    bench.tell(ev.Tick(10.0))
    bench.tell(ev.PasswordChanged(10.1))
    bench.probed(A, ev.ProbeResult.AUTH, 10.2)
    assert bench[A].online


# What operators see


def test_the_snapshot_tells_of_each_worker_what_it_is_and_how_it_came_to_that() -> None:
    bench = Bench(A, B).online()
    bench.status(A, 1.0, capabilities=GROWTH)
    bench.status(A, 2.0, boot_id="boot-2", capabilities=GROWTH)
    bench.status(B, 2.0, lacks={"growth": "backend_none"})
    bench.tell(ev.HealthTold(2.5, B, serving=False))
    bench.ended(bench.call(3.0), 4.0, ev.Code.INTERNAL, "WORKER_FAILED")
    seen, other = bench.pool.snapshot(5.0).endpoints
    assert (seen.lacks, other.lacks) == ({}, {"growth": "backend_none"})
    assert (seen.boot_id, seen.capabilities, seen.ejections) == ("boot-2", ("growth", "measure"), 1)
    assert [(entry.age_s, entry.what) for entry in seen.history] == [
        (1.0, "SERVING → EJECTED passive: call: INTERNAL WORKER_FAILED"),
        (3.0, "new process boot-2"),
        (4.4, "UNKNOWN → SERVING: test"),
    ]
    assert seen.next_probe_in_s is not None
    assert 0 < seen.next_probe_in_s < 8.8
    bench.tell(ev.Tick(10.0))
    assert bench.pool.snapshot(10.0).endpoints[0].next_probe_in_s is None, "it is being probed"


def test_only_the_last_changes_are_remembered() -> None:
    bench = Bench(A).online()
    for number in range(2, 30):
        bench.status(A, float(number), boot_id=f"boot-{number}")
    assert len(bench.history(A)) == fixed.HISTORY
    assert bench.history(A)[0] == "new process boot-29"


def test_a_state_change_names_the_call_that_brought_it_about() -> None:
    bench = Bench(A, B).online()
    bench.ended(bench.call(1.0), 2.0, ev.Code.INTERNAL)
    assert [line.get("call_id") for line in bench.logs("worker_state")] == [None, None, "edge-1"]


def test_a_slow_call_that_made_way_is_not_passed_by_a_later_one() -> None:
    """A fast call waits for another worker than the one the slow calls leave it; once it has got it, the first goes."""
    health = HealthCheckConfig(cooldown_seconds=0)
    bench = Bench(
        A, B, C, primary_workers=(A, B), health=health, dispatch=DispatchConfig(spill_after_seconds=0.05)
    ).online()
    for target in (A, B, C):
        bench.status(target, 0.9, capabilities=GROWTH)
    bench.call(1.0, slow=True, capability="growth")
    running, spilled = bench.call(1.0), bench.call(1.0)
    bench.tell(ev.Tick(1.06))
    assert bench.runs_on(spilled) == C
    first, fast = bench.call(1.1, slow=True, capability="growth"), bench.call(1.1)
    bench.ended(running, 1.2, ev.Code.OK)
    failed_on = bench.runs_on(fast)
    bench.ended(fast, 1.3, ev.Code.INTERNAL, "WORKER_FAILED")
    later = bench.call(1.4, slow=True, capability="growth")
    bench.back(failed_on, 1.5)
    assert (bench.runs_on(first), bench.runs_on(later)) == ("", ""), "both leave the free worker to the fast one"
    bench.ended(spilled, 1.6, ev.Code.OK)
    assert bench.runs_on(fast) == C
    assert (bench.runs_on(first), bench.runs_on(later)) == (failed_on, "")
