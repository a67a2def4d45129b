"""The edge alone stood still: what it lost by that is held against nobody, and nothing else is forgiven."""

from __future__ import annotations

import pytest

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import HealthCheckConfig
from edge.pool.endpoint import State
from tests.edge.pool.bench import GOOD, REFUSED, SILENT, A, B, Bench

LOST = ev.Code.UNAVAILABLE
SLEPT_S, WOKE_S = 22.0, 25.0


def woken(bench: Bench, *, slept_s: float = SLEPT_S, now_s: float = WOKE_S) -> Bench:
    bench.tell(ev.Woke(now_s, slept_s))
    return bench


def asleep_with_a_call(*workers: str) -> tuple[Bench, str]:
    """A call runs on A; the edge has slept meanwhile."""
    bench = Bench(*workers).online()
    call_id = bench.call(2.0)
    return woken(bench), call_id


def test_a_call_that_lost_its_connection_goes_back_to_the_queue_and_its_worker_stays() -> None:
    bench, call_id = asleep_with_a_call(A, B)
    assert bench.logs("edge_slept") == [{"slept_s": SLEPT_S}]
    bench.ended(call_id, WOKE_S + 0.1, LOST)
    assert (bench[A].state, bench[A].ejections) == (State.SERVING, 0)
    assert bench.runs_on(call_id) == B
    bench.ended(call_id, WOKE_S + 0.6, LOST)
    assert bench[B].online
    assert not bench.failed(call_id), "that was no retry"
    bench.status(A, WOKE_S + 0.7)
    assert bench.runs_on(call_id) == A, "as soon as its slot is known to be free"
    bench.ended(call_id, WOKE_S + 1.0, ev.Code.OK)
    finished = bench.finished(call_id)
    assert finished is not None
    assert finished.attempts == 3


def test_the_only_worker_has_it_again() -> None:
    bench, call_id = asleep_with_a_call(A)
    bench.ended(call_id, WOKE_S + 0.1, LOST)
    bench.status(A, WOKE_S + 0.2)
    assert len(bench.of(ev.Start, call_id)) == 2


def test_its_input_is_not_to_blame() -> None:
    bench, call_id = asleep_with_a_call(A, B)
    bench.ended(call_id, WOKE_S + 0.1, LOST)
    assert not bench.pool.minds_inputs


def test_so_does_one_that_began_on_the_lost_connection_before_that_was_known() -> None:
    bench = woken(Bench(A, B).online())
    call_id = bench.call(WOKE_S + 0.01)
    bench.ended(call_id, WOKE_S + fixed.WAKING_S, LOST)
    assert bench[A].online


def test_whatever_its_worker_loses_after_that_is_its_own() -> None:
    bench, first = asleep_with_a_call(A)
    bench.ended(first, WOKE_S + 0.1, LOST)
    bench.status(A, WOKE_S + 0.2)
    bench.ended(first, WOKE_S + 0.3, LOST)
    assert bench[A].state is State.EJECTED


def test_each_standstill_forgives_anew() -> None:
    bench, call_id = asleep_with_a_call(A)
    bench.ended(call_id, WOKE_S + 0.1, LOST)
    bench.status(A, WOKE_S + 0.2)
    woken(bench, now_s=WOKE_S + 30)
    bench.ended(call_id, WOKE_S + 30.1, LOST)
    assert bench[A].online


@pytest.mark.parametrize(
    ("code", "reason"), [(ev.Code.INTERNAL, ""), (ev.Code.UNKNOWN, ""), (LOST, "WORKER_FAILED"), (LOST, "MODELS")]
)
def test_what_the_worker_itself_says_counts(code: ev.Code, reason: str) -> None:
    bench, call_id = asleep_with_a_call(A, B)
    bench.ended(call_id, WOKE_S + 0.1, code, reason)
    assert not bench[A].online


def test_what_is_lost_later_counts() -> None:
    bench, call_id = asleep_with_a_call(A, B)
    bench.ended(call_id, WOKE_S + fixed.WAKING_S + 0.1, LOST)
    assert bench[A].state is State.EJECTED


def test_without_a_standstill_it_counts() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0)
    bench.ended(call_id, WOKE_S, LOST)
    assert bench[A].state is State.EJECTED


def test_one_that_is_gone_is_found_by_the_next_probe() -> None:
    bench, call_id = asleep_with_a_call(A, B)
    for endpoint in bench.pool.endpoints():  # those that were due
        if endpoint.probing:
            bench.probed(endpoint.target, GOOD if endpoint.target == B else REFUSED, WOKE_S)
    bench.ended(call_id, WOKE_S + 0.1, LOST)
    assert bench[A].probing
    bench.probed(A, REFUSED, WOKE_S + 0.2)
    assert (bench[A].state, bench[A].cause) == (State.NOT_SERVING, ev.Cause.UNREACHABLE)


def test_one_that_has_frozen_meanwhile_is_out_after_as_many_bad_probes_as_ever() -> None:
    bench = woken(Bench(A, B).online())
    bench.probed(A, SILENT, WOKE_S + 3)
    for now_s in (WOKE_S + 5, WOKE_S + 10):
        assert bench[A].online
        bench.tell(ev.Tick(now_s))
        bench.probed(A, SILENT, now_s + 3)
    assert (bench[A].state, bench[A].cause) == (State.NOT_SERVING, ev.Cause.PROBE)


STRICT = HealthCheckConfig(unhealthy_threshold=1)


@pytest.mark.parametrize("result", [SILENT, REFUSED, ev.ProbeResult.ERROR])
def test_a_probe_that_was_slept_through_says_nothing_and_the_next_one_decides(result: ev.ProbeResult) -> None:
    bench = Bench(A, health=STRICT).online()
    bench.tell(ev.Tick(12.0))
    assert bench[A].probing
    woken(bench, now_s=34.0).probed(A, result, 34.0)
    assert bench[A].online
    assert ev.Probe(A) in bench.tell(ev.Tick(34.0 + 1.1 * fixed.REPROBE_S))
    bench.probed(A, result, 36.0)
    assert not bench[A].online


@pytest.mark.parametrize("result", [ev.ProbeResult.NOT_SERVING, ev.ProbeResult.AUTH])
def test_what_the_worker_says_to_a_probe_counts(result: ev.ProbeResult) -> None:
    bench = Bench(A, health=STRICT).online()
    bench.tell(ev.Tick(12.0))
    woken(bench, now_s=34.0).probed(A, result, 34.0)
    assert not bench[A].online


def test_time_that_ran_out_meanwhile_is_no_strike_though_it_was_told_at_once() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0)
    timeout_s = bench.of(ev.Start, call_id)[0].timeout_s
    now_s = 2.0 + timeout_s + 0.1
    woken(bench, now_s=now_s, slept_s=20.0).ended(call_id, now_s, ev.Code.DEADLINE_EXCEEDED)
    assert bench[A].online


def test_time_that_ran_out_before_is_one() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0)
    now_s = 2.0 + bench.of(ev.Start, call_id)[0].timeout_s
    woken(bench, now_s=now_s - 1, slept_s=20.0).ended(call_id, now_s, ev.Code.DEADLINE_EXCEEDED)
    assert bench[A].state is State.EJECTED
