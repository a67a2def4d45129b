"""The table of events and effects, row by row, on the whole pool."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edge.pool import events as ev
from edge.pool.config import DispatchConfig, HealthCheckConfig
from edge.pool.endpoint import State
from edge.pool.snapshot import ProbeSnapshot
from tests.edge.pool.bench import GOOD, REFUSED, SILENT, A, B, Bench

# start


def test_first_probes_are_sent_at_once_slightly_spread() -> None:
    bench = Bench(*(f"w:{number}" for number in range(1, 51)))
    now_s, starts = 0.0, []
    made = bench.tell(ev.Started(0.0))
    while made:
        starts += [now_s for decision in made if isinstance(decision, ev.Probe)]
        alarms = [decision.at_s for decision in made if isinstance(decision, ev.Wake)]
        now_s = alarms[-1] if alarms else now_s
        made = bench.tell(ev.Tick(now_s)) if alarms else []
    assert len(starts) == 50
    assert starts[0] == 0.0
    assert starts[-1] <= 0.5
    assert max(starts.count(moment) for moment in starts) == 1


def test_no_traffic_before_the_first_good_probe() -> None:
    bench = Bench(A)
    bench.tell(ev.Started(0.0))
    assert bench.failed(bench.call(0.1)).reason == "NO_WORKER"  # type: ignore[union-attr]
    bench.probed(A, GOOD, 0.2)
    assert bench.runs_on(bench.call(0.3)) == A


def test_the_start_line_tells_the_settings_and_names_who_was_never_online() -> None:
    bench = Bench(A, B, primary_workers=(A,))
    bench.tell(ev.Started(0.0))
    bench.tell(ev.Tick(0.1))
    bench.probed(A, GOOD, 0.2)
    bench.probed(B, REFUSED, 0.2)
    started, never = (d for d in bench.tell(ev.StartupOver(3.0)) if isinstance(d, ev.Log))
    assert started.event == "pool_started"
    assert started.fields == {
        "interval_s": 8.0,
        "timeout_s": 3.0,
        "unhealthy_threshold": 2,
        "healthy_threshold": 1,
        "cooldown_s": 60.0,
        "cooldown_max_s": 300.0,
        "workers_total": 2,
        "workers_online": 1,
        "workers_primary": 1,
        "workers_primary_online": 1,
    }
    assert (never.level, never.event, never.fields) == ("warning", "workers_never_online", {"workers": [B]})


# active probe


@pytest.mark.parametrize(
    ("result", "earliest_s", "latest_s"), [(GOOD, 7.2, 8.8), (SILENT, 0.9, 1.1), (REFUSED, 0.9, 1.1)]
)
def test_the_next_probe_comes_after_the_interval_or_soon_after_a_bad_one(
    result: ev.ProbeResult, earliest_s: float, latest_s: float
) -> None:
    bench = Bench(A).online()
    bench.tell(ev.Tick(10.0))
    bench.probed(A, result, 11.0)
    assert 11.0 + earliest_s <= bench[A].next_probe_s <= 11.0 + latest_s
    assert not bench.tell(ev.Tick(11.0 + earliest_s - 0.01)) or not bench[A].probing
    assert ev.Probe(A) in bench.tell(ev.Tick(11.0 + latest_s))


def test_two_bad_probes_in_a_row_take_offline_one_does_not() -> None:
    bench = Bench(A, B).online()
    bench.tell(ev.Tick(10.0))
    bench.probed(A, SILENT, 13.0)
    assert bench[A].online
    bench.tell(ev.Tick(14.2))
    logs = [d for d in bench.probed(A, SILENT, 17.0) if isinstance(d, ev.Log)]
    assert repr(bench[A]) == "<a:1 NOT_SERVING(probe)>"
    assert logs == [
        ev.Log(
            "warning",
            "worker_state",
            {
                "worker": A,
                "from": "SERVING",
                "to": "NOT_SERVING",
                "cause": "probe",
                "evidence": "test",
                "cooldown_s": 0.0,
                "ejections": 0,
            },
        )
    ]


# Watch


def test_watch_takes_offline_at_once_and_its_serving_only_causes_a_probe() -> None:
    bench = Bench(A, B).online()
    bench.tell(ev.HealthTold(1.0, A, serving=False))
    assert repr(bench[A]) == "<a:1 NOT_SERVING(probe)>"
    assert ev.Probe(A) in bench.tell(ev.HealthTold(2.0, A, serving=True))
    assert not bench[A].online
    bench.probed(A, GOOD, 2.1)
    assert bench[A].online


@pytest.mark.parametrize("status_first", [True, False])
def test_the_cause_comes_from_its_status_in_either_order(status_first: bool) -> None:
    bench = Bench(A, B).online()
    if not status_first:
        bench.tell(ev.HealthTold(1.0, A, serving=False))
    bench.status(A, 1.0, cause=ev.Cause.DISK, evidence="disk_free_below_5.0g")
    if status_first:
        bench.tell(ev.HealthTold(1.1, A, serving=False))
    assert repr(bench[A]) == "<a:1 NOT_SERVING(disk)>"


@pytest.mark.parametrize(
    "word",
    [
        lambda now_s: ev.HealthTold(now_s, A, serving=False),
        lambda now_s: ev.StatusTold(now_s, A, asked_s=now_s, boot_id="boot-1", cause=ev.Cause.DISK),
        lambda now_s: ev.CallEnded(now_s, "edge-1", ev.Code.UNAVAILABLE, "DISK"),
        lambda now_s: ev.CallEnded(now_s, "edge-1", ev.Code.INTERNAL),
    ],
    ids=["watch", "status", "refusal", "failure without cooldown"],
)
def test_a_good_probe_from_before_the_bad_news_brings_nobody_back(word: Callable[[float], ev.Event]) -> None:
    bench = Bench(A, B, health=HealthCheckConfig(cooldown_seconds=0)).online()
    assert bench.runs_on(bench.call(9.0)) == A
    bench.tell(ev.Tick(10.0))
    assert bench[A].probing
    bench.tell(word(10.1))
    bench.probed(A, GOOD, 10.2)
    assert not bench[A].online
    bench.tell(ev.Tick(11.4))
    bench.probed(A, GOOD, 11.5)
    assert bench[A].online


# connection lost


def test_a_lost_connection_is_probed_at_once_and_refused_means_offline() -> None:
    bench = Bench(A, B).online()
    assert ev.Probe(A) in bench.tell(ev.ConnectionLost(5.0, A))
    assert bench[A].online
    bench.probed(A, REFUSED, 5.001)
    assert repr(bench[A]) == "<a:1 NOT_SERVING(unreachable)>"


def test_a_connection_lost_while_a_probe_runs_is_probed_after_it() -> None:
    bench = Bench(A, B).online()
    bench.tell(ev.Tick(10.0))
    assert ev.Probe(A) not in bench.tell(ev.ConnectionLost(10.1, A))
    assert ev.Probe(A) in bench.probed(A, REFUSED, 10.2)
    assert bench[A].online
    bench.probed(A, REFUSED, 10.3)
    assert not bench[A].online


# a call failed

STRIKES = [
    (ev.Code.UNAVAILABLE, ""),
    (ev.Code.DEADLINE_EXCEEDED, ""),
    (ev.Code.INTERNAL, "WORKER_FAILED"),
    (ev.Code.UNKNOWN, ""),
    (ev.Code.DATA_LOSS, ""),
    (ev.Code.ABORTED, ""),
    (ev.Code.UNIMPLEMENTED, ""),
    (ev.Code.PERMISSION_DENIED, ""),
    (ev.Code.CANCELLED, ""),
]


@pytest.mark.parametrize(("code", "reason"), STRIKES)
def test_a_failed_call_ejects_its_worker_and_is_tried_again_on_another(code: ev.Code, reason: str) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    assert bench.runs_on(call_id) == A
    bench.ended(call_id, 61.0, code, reason)
    assert bench[A].cause is ev.Cause.PASSIVE
    assert 60 <= bench[A].cooldown_left_s(61.0) <= 66
    assert bench.runs_on(call_id) == B
    bench.ended(call_id, 62.0, ev.Code.OK)
    finish = bench.finished(call_id)
    assert finish is not None
    assert (finish.endpoint, finish.attempts) == (B, 2)


def test_a_failed_call_on_a_worker_that_watch_took_out_leads_to_the_same_end() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    bench.tell(ev.HealthTold(2.0, A, serving=False))
    bench.ended(call_id, 2.1, ev.Code.UNAVAILABLE)
    assert bench[A].cause is ev.Cause.PASSIVE
    assert bench[A].cooldown_left_s(2.1) >= 60


def test_a_wrong_password_ejects_with_a_cause_of_its_own() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 1.1, ev.Code.UNAUTHENTICATED, "WRONG_PASSWORD")
    assert bench[A].cause is ev.Cause.AUTH
    assert bench[A].cooldown_left_s(1.1) >= 60
    assert bench.runs_on(call_id) == B


@pytest.mark.parametrize(
    ("reason", "cause"),
    [("DISK", "disk"), ("DEPENDENCY", "dependency"), ("STALLED", "stalled"), ("STARTING", "models")],
)
def test_a_refusal_with_the_workers_own_reason_has_no_cooldown(reason: str, cause: str) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 1.1, ev.Code.UNAVAILABLE, reason)
    assert repr(bench[A]) == f"<a:1 NOT_SERVING({cause})>"
    assert bench.runs_on(call_id) == B
    bench.tell(ev.Tick(12.0))
    bench.probed(A, GOOD, 12.1)
    assert bench[A].online


@pytest.mark.parametrize(
    ("code", "reason"), [*STRIKES, (ev.Code.UNAVAILABLE, "DRAINING"), (ev.Code.UNAVAILABLE, "DISK")]
)
def test_whatever_fails_on_a_draining_worker_is_no_strike_and_no_retry(code: ev.Code, reason: str) -> None:
    bench = Bench(A, B, dispatch=DispatchConfig(max_retries=0)).online()
    call_id = bench.call(1.0)
    bench.status(A, 1.5, cause=ev.Cause.DRAINING)
    bench.ended(call_id, 61.0, code, reason)
    assert repr(bench[A]) == "<a:1 DRAINING(draining)>"
    assert bench.runs_on(call_id) == B
    bench.ended(call_id, 62.0, ev.Code.OK)
    assert bench.finished(call_id)


def test_a_refusal_as_draining_is_the_first_word_of_it() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 1.1, ev.Code.UNAVAILABLE, "DRAINING")
    assert repr(bench[A]) == "<a:1 DRAINING(draining)>"
    assert bench.runs_on(call_id) == B


def test_a_new_process_ends_draining_and_is_probed_at_once() -> None:
    bench = Bench(A, B).online()
    bench.status(A, 1.0)
    bench.status(A, 2.0, cause=ev.Cause.DRAINING)
    assert ev.Probe(A) in bench.status(A, 5.0, boot_id="boot-2")
    assert not bench[A].online
    bench.probed(A, GOOD, 5.1)
    assert bench[A].online


def test_a_busy_worker_costs_nothing_and_the_request_keeps_its_place() -> None:
    bench = Bench(A).online()
    first, second = bench.call(1.0), bench.call(1.0)
    bench.ended(first, 1.1, ev.Code.RESOURCE_EXHAUSTED, "BUSY", retry_after_s=2.0)
    assert bench[A].online
    assert len(bench.of(ev.Start, first)) == 1, "left alone for the time it stated"
    bench.tell(ev.Tick(3.0))
    assert len(bench.of(ev.Start, first)) == 1
    bench.tell(ev.Tick(3.1))
    assert len(bench.of(ev.Start, first)) == 2
    assert not bench.runs_on(second)
    bench.ended(first, 4.0, ev.Code.OK)
    finish = bench.finished(first)
    assert finish is not None
    assert finish.attempts == 2


def test_a_busy_worker_that_tells_its_slot_free_is_used_before_its_time() -> None:
    bench = Bench(A).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 1.1, ev.Code.RESOURCE_EXHAUSTED, "BUSY", retry_after_s=20.0)
    bench.status(A, 1.2, taken=True, call_id="another-edge-1")
    assert len(bench.of(ev.Start, call_id)) == 1
    bench.status(A, 1.5)
    assert len(bench.of(ev.Start, call_id)) == 2


def test_a_slot_another_edge_holds_is_not_tried() -> None:
    bench = Bench(A, B).online()
    bench.status(A, 1.0, taken=True, call_id="another-edge-1")
    assert bench.runs_on(bench.call(1.1)) == B
    waiting = bench.call(1.2)
    assert not bench.runs_on(waiting)
    bench.tell(ev.StatusLost(1.3, A))
    assert bench.runs_on(waiting) == A, "nothing is known of it any more: the worker itself decides"


def test_a_late_word_about_our_own_ended_call_does_not_block_the_slot() -> None:
    bench = Bench(A).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 1.1, ev.Code.OK)
    bench.status(A, 1.2, taken=True, call_id=call_id)
    assert bench.runs_on(bench.call(1.3)) == A


@pytest.mark.parametrize(
    "code",
    [
        ev.Code.INVALID_ARGUMENT,
        ev.Code.FAILED_PRECONDITION,
        ev.Code.NOT_FOUND,
        ev.Code.ALREADY_EXISTS,
        ev.Code.OUT_OF_RANGE,
    ],
)
def test_a_refused_input_is_the_answer_and_no_strike(code: ev.Code) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 1.1, code, "NO_FACE")
    assert bench[A].online
    assert bench.finished(call_id)
    assert len(bench.of(ev.Start, call_id)) == 1


def test_a_refusal_by_grpc_itself_is_no_strike_but_nothing_for_a_client() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 1.1, ev.Code.RESOURCE_EXHAUSTED)  # a message above the limits
    assert bench[A].online
    failed = bench.failed(call_id)
    assert failed is not None
    assert failed.reason == "WORKER_FAILED"


def test_a_client_that_leaves_and_one_with_little_time_are_no_strikes() -> None:
    bench = Bench(A, B).online()
    left, hasty = bench.call(1.0), bench.call(1.0, timeout_s=2.0)
    bench.tell(ev.CallGone(1.5, left))
    bench.ended(hasty, 3.0, ev.Code.DEADLINE_EXCEEDED)
    assert bench[A].online
    assert bench[B].online
    failed = bench.failed(hasty)
    assert failed is not None
    assert (failed.reason, failed.attempts) == ("DEADLINE", 1)


# cooldown


def test_probes_inside_a_cooldown_change_nothing_and_one_comes_at_its_end() -> None:
    bench = Bench(A, B).online()
    bench.ended(bench.call(1.0), 2.0, ev.Code.INTERNAL)
    bench.status(A, 2.1)
    over_s = bench[A].cooldown_until_s
    for now_s, result in ((10.0, GOOD), (20.0, SILENT), (30.0, SILENT), (40.0, GOOD)):
        bench.tell(ev.Tick(now_s))
        bench.probed(A, result, now_s + 0.1)
        assert not bench[A].online
        assert bench[A].cooldown_until_s == over_s
    bench.tell(ev.Tick(over_s - 1))
    if bench[A].probing:
        bench.probed(A, GOOD, over_s - 0.9)
    assert bench[A].next_probe_s == pytest.approx(over_s)
    assert ev.Probe(A) in bench.tell(ev.Tick(over_s))
    bench.probed(A, GOOD, over_s + 0.1)
    assert bench[A].online


def test_with_cooldown_zero_the_next_good_probe_brings_it_back() -> None:
    bench = Bench(A, B, health=HealthCheckConfig(cooldown_seconds=0)).online()
    made = bench.ended(bench.call(1.0), 2.0, ev.Code.INTERNAL)
    assert ev.Probe(A) in made
    assert not bench[A].online
    bench.probed(A, GOOD, 2.1)
    assert bench[A].online


# slots


def test_a_cancelled_call_keeps_the_slot_until_the_worker_tells_it_free() -> None:
    bench = Bench(A).online()
    left = bench.call(1.0)
    waiting = bench.call(1.1)
    assert ev.AskStatus(A) in bench.tell(ev.CallGone(2.0, left))
    assert not bench.runs_on(waiting)
    bench.status(A, 2.1, taken=True, call_id=left)
    assert not bench.runs_on(waiting), "its thread still computes"
    bench.status(A, 3.0, asked_s=2.1)
    assert bench.runs_on(waiting) == A


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (ev.Code.DEADLINE_EXCEEDED, ""),
        (ev.Code.DEADLINE_EXCEEDED, "DEADLINE"),
        (ev.Code.ABORTED, "CANCELLED"),
        (ev.Code.UNAVAILABLE, ""),
        (ev.Code.UNAVAILABLE, "DRAINING"),
    ],
)
def test_a_call_that_was_cut_off_keeps_the_slot_whoever_says_so(code: ev.Code, reason: str) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(1.0, timeout_s=5.0)
    assert ev.AskStatus(A) in bench.ended(call_id, 6.0, code, reason)
    assert bench.pool.snapshot(6.0).endpoints[0].left_behind
    bench.status(A, 6.1, taken=True, call_id=call_id)
    assert bench.pool.snapshot(6.2).endpoints[0].left_behind, "its thread still computes"
    bench.status(A, 6.5, asked_s=6.1)
    assert bench.pool.snapshot(6.5).endpoints[0].call_id == ""


@pytest.mark.parametrize(
    ("code", "reason"), [(ev.Code.OK, ""), (ev.Code.FAILED_PRECONDITION, "NO_FACE"), (ev.Code.UNAVAILABLE, "DISK")]
)
def test_the_worker_s_own_answer_gives_the_slot_back(code: ev.Code, reason: str) -> None:
    bench = Bench(A).online()
    bench.ended(bench.call(1.0), 2.0, code, reason)
    assert bench.pool.snapshot(2.0).endpoints[0].call_id == ""


def test_a_status_from_before_the_end_proves_nothing() -> None:
    bench = Bench(A).online()
    left, waiting = bench.call(1.0), bench.call(1.1)
    bench.tell(ev.CallGone(2.0, left))
    bench.status(A, 2.1, asked_s=0.5)
    assert not bench.runs_on(waiting)


def test_a_new_process_has_a_free_slot_unless_the_call_reached_it_first() -> None:
    bench = Bench(A).online()
    bench.status(A, 0.9)
    running, waiting = bench.call(1.0), bench.call(1.1)
    bench.status(A, 1.5, boot_id="boot-2", taken=True, call_id=running)
    bench.tell(ev.CallGone(2.0, running))
    bench.status(A, 2.1, boot_id="boot-2", taken=True, call_id=running)
    assert not bench.runs_on(waiting)
    bench.status(A, 2.5, boot_id="boot-3")
    assert bench.runs_on(waiting) == A


# queue and deadlines


def test_a_request_that_waits_too_long_for_a_worker_is_told_busy() -> None:
    bench = Bench(A).online()
    bench.call(1.0)
    waiting = bench.call(1.0)
    bench.tell(ev.Tick(30.9))
    assert bench.failed(waiting) is None
    bench.tell(ev.Tick(31.0))
    failed = bench.failed(waiting)
    assert failed is not None
    assert (failed.reason, failed.attempts, failed.queue_s) == ("BUSY", 0, 30.0)
    assert failed.retry_after_s >= 1


def test_the_requests_own_deadline_comes_first() -> None:
    bench = Bench(A).online()
    bench.call(1.0)
    waiting = bench.call(1.0, timeout_s=1.0)
    bench.tell(ev.Tick(2.0))
    failed = bench.failed(waiting)
    assert failed is not None
    assert failed.reason == "DEADLINE"


def test_a_slot_that_frees_as_a_deadline_passes_is_not_wasted_on_it() -> None:
    bench = Bench(A).online()
    running, late, patient = bench.call(1.0), bench.call(1.0, timeout_s=1.0), bench.call(1.0)
    bench.ended(running, 2.5, ev.Code.OK)  # the tick of 2.0 has not come yet
    failed = bench.failed(late)
    assert failed is not None
    assert failed.reason == "DEADLINE"
    assert bench.runs_on(patient) == A


def test_too_many_bytes_outside_are_refused_at_once() -> None:
    bench = Bench(A, dispatch=DispatchConfig(max_in_flight=1, max_queued_bytes=100)).online()
    bench.call(1.0, size_bytes=1_000)
    assert not bench.pool.has_room(slow=False)
    outside, refused = bench.call(1.0, size_bytes=80), bench.call(1.0, size_bytes=80)
    failed = bench.failed(refused)
    assert failed is not None
    assert failed.reason == "BUSY"
    assert bench.failed(outside) is None


def measured(bench: Bench, service_s: float, *, until_s: float, slow: bool = False) -> None:
    """Let enough calls be answered that a median exists at `until_s`."""
    for number in range(6):
        began_s = until_s - (6 - number) * service_s
        call_id = bench.call(began_s, slow=slow)
        bench.ended(call_id, began_s + service_s, ev.Code.OK)


def test_what_cannot_make_its_deadline_is_refused_at_once() -> None:
    bench = Bench(A).online()
    measured(bench, 2.0, until_s=20.0)
    hopeless = bench.failed(bench.call(20.0, timeout_s=1.5))
    assert hopeless is not None
    assert (hopeless.reason, hopeless.needed_s) == ("DEADLINE", 2.0)
    for _ in range(3):
        bench.call(20.0)
    crowded = bench.failed(bench.call(20.0, timeout_s=5.0))
    assert crowded is not None
    assert (crowded.reason, crowded.retry_after_s) == ("BUSY", 4.0), "two before it, 2 s each"
    assert crowded.needed_s == 6.0
    assert bench.failed(bench.call(20.0, timeout_s=9.0)) is None


def test_no_retry_starts_without_a_median_attempts_time_left() -> None:
    bench = Bench(A, B).online()
    measured(bench, 2.0, until_s=20.0)
    short, long_ = bench.call(20.0, timeout_s=5.0), bench.call(20.0, timeout_s=50.0)
    bench.ended(short, 24.0, ev.Code.INTERNAL)
    failed = bench.failed(short)
    assert failed is not None
    assert (failed.reason, failed.attempts) == ("WORKER_FAILED", 1)
    assert bench.failed(long_) is None


def test_an_attempt_has_its_own_time_and_never_more_than_the_request() -> None:
    bench = Bench(A, B, dispatch=DispatchConfig(request_timeout_seconds=10, growth_timeout_seconds=40)).online()
    fast, slow = bench.call(1.0), bench.call(1.0, slow=True)
    assert [bench.of(ev.Start, each)[0].timeout_s for each in (fast, slow)] == [10, 40]
    hasty = Bench(A).online()
    call_id = hasty.call(1.0, timeout_s=3.0)
    assert hasty.of(ev.Start, call_id)[0].timeout_s == pytest.approx(3.0)


# retries


def test_without_another_worker_there_is_no_second_attempt() -> None:
    bench = Bench(A).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 2.0, ev.Code.INTERNAL)
    failed = bench.failed(call_id)
    assert failed is not None
    assert (failed.reason, failed.attempts) == ("NO_WORKER", 1)
    assert failed.retry_after_s >= 60


def test_a_retry_waits_for_another_worker_never_for_the_same() -> None:
    bench = Bench(A, B, health=HealthCheckConfig(cooldown_seconds=0)).online()
    first, second = bench.call(1.0), bench.call(1.0)
    bench.ended(first, 2.0, ev.Code.INTERNAL, "WORKER_FAILED")
    bench.probed(A, GOOD, 2.1)
    third = bench.call(2.2)
    assert bench.runs_on(third) == A, "one who may use the free worker does"
    assert len(bench.of(ev.Start, first)) == 1
    bench.ended(second, 3.0, ev.Code.OK)
    assert bench.runs_on(first) == B


def test_a_retry_whose_last_other_worker_goes_is_told_at_once() -> None:
    bench = Bench(A, B, health=HealthCheckConfig(cooldown_seconds=0)).online()
    first = bench.call(1.0)
    bench.call(1.0)
    bench.ended(first, 2.0, ev.Code.INTERNAL, "WORKER_FAILED")
    bench.probed(A, GOOD, 2.1)
    bench.tell(ev.HealthTold(2.2, B, serving=False))
    failed = bench.failed(first)
    assert failed is not None
    assert failed.reason == "WORKER_FAILED"


@pytest.mark.parametrize("dispatch", [DispatchConfig(retry_on_failure=False), DispatchConfig(max_retries=0)])
def test_retries_can_be_switched_off(dispatch: DispatchConfig) -> None:
    bench = Bench(A, B, dispatch=dispatch).online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 2.0, ev.Code.INTERNAL)
    failed = bench.failed(call_id)
    assert failed is not None
    assert failed.reason == "WORKER_FAILED"


def test_max_retries_counts_retries_not_attempts() -> None:
    bench = Bench("w:1", "w:2", "w:3", "w:4").online()
    call_id = bench.call(1.0)
    bench.ended(call_id, 2.0, ev.Code.INTERNAL)
    bench.ended(call_id, 3.0, ev.Code.INTERNAL)
    failed = bench.failed(call_id)
    assert failed is not None
    assert (failed.reason, failed.attempts) == ("WORKER_FAILED", 2)


def test_when_nobody_is_online_those_who_wait_hear_it_at_once() -> None:
    bench = Bench(A, dispatch=DispatchConfig(max_in_flight=2)).online()
    running, inside, outside = bench.call(1.0), bench.call(1.0), bench.call(1.0)
    bench.tell(ev.HealthTold(2.0, A, serving=False))
    assert [bench.failed(each) is not None for each in (running, inside, outside)] == [False, True, True]
    assert bench.failed(outside).reason == "NO_WORKER"  # type: ignore[union-attr]
    bench.ended(running, 3.0, ev.Code.OK)
    assert bench.finished(running)


def test_a_pool_shows_its_state() -> None:
    bench = Bench(A, B).online()
    bench.call(1.0)
    assert repr(bench.pool) == (
        "<Pool <Fleet <a:1 SERVING> <b:1 SERVING>> <Admission fast 1 (0), 0; slow 0 (0), 0> <Leases a:1=edge-1>>"
    )
    first, second = bench.pool.snapshot(3.0).endpoints
    assert (first.call_id, first.in_flight_s, first.left_behind) == ("edge-1", 2.0, False)
    assert (second.call_id, second.in_flight_s) == ("", None)


def test_what_probes_find_in_a_cooldown_is_told_once_each_way() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0)
    bench.ended(call_id, 2.1, ev.Code.UNAVAILABLE)
    bench.tell(ev.ConnectionLost(2.1, A))
    assert bench.logs("probes_bad") == []
    for number in range(4):
        bench.tell(ev.Tick(2.0 + 2 * number))
        bench.tell(ev.ProbeEnded(2.0 + 2 * number, A, REFUSED, "Connection refused"))
    (line,) = bench.logs("probes_bad")
    assert (line["worker"], line["result"], line["evidence"]) == (A, "UNREACHABLE", "Connection refused")
    assert line["cooldown_s"] == pytest.approx(60, abs=7)
    probe = next(each for each in bench.pool.snapshot(10.0).endpoints if each.target == A).last_probe
    assert probe == ProbeSnapshot("UNREACHABLE", "Connection refused", 2.0)
    bench.tell(ev.Tick(20.0))
    bench.probed(A, GOOD, 20.0)
    bench.tell(ev.Tick(30.0))
    bench.probed(A, GOOD, 30.0)
    assert [entry["result"] for entry in bench.logs("probes_good")] == ["GOOD"]
    assert bench.history(A)[:2] == ["probes good again: GOOD test", "probes bad: UNREACHABLE Connection refused"]
    assert bench[A].state is State.EJECTED


def test_before_the_first_probe_there_is_none_to_show() -> None:
    assert [each.last_probe for each in Bench(A).pool.snapshot(1.0).endpoints] == [None]


def test_a_worker_that_says_at_once_that_time_is_over_is_no_black_hole() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0, timeout_s=5.0)
    bench.ended(call_id, 2.01, ev.Code.DEADLINE_EXCEEDED)
    assert (bench[A].state, bench.runs_on(call_id)) == (State.EJECTED, B)


@pytest.mark.parametrize("timeout_s", [1e-9, 0.04])
def test_next_to_no_time_is_over_at_once_by_nobodys_fault(timeout_s: float) -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0, timeout_s=timeout_s)
    bench.ended(call_id, 2.0, ev.Code.DEADLINE_EXCEEDED)
    assert bench[A].state is State.SERVING


def test_what_an_attempt_may_take_is_settled_when_it_starts() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0)
    bench.configure(10.0, A, B, dispatch=DispatchConfig(request_timeout_seconds=90))
    bench.ended(call_id, 62.0, ev.Code.DEADLINE_EXCEEDED)
    assert bench[A].state is State.EJECTED


def test_after_the_edge_itself_stood_still_nobody_is_ejected() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0)
    bench.ended(call_id, 200.0, ev.Code.DEADLINE_EXCEEDED)
    assert (bench[A].state, bench.runs_on(call_id)) == (State.SERVING, B)


def test_a_slot_that_was_free_again_before_busy_was_heard_is_used_at_once() -> None:
    bench = Bench(A).online()
    call_id = bench.call(2.0)
    bench.status(A, 2.1)
    made = bench.ended(call_id, 2.2, ev.Code.RESOURCE_EXHAUSTED, "BUSY", 20.0)
    assert ev.AskStatus(A) in made
    bench.status(A, 2.3)
    assert len(bench.of(ev.Start, call_id)) == 2


def test_nobody_is_left_alone_for_ever_because_it_said_so() -> None:
    bench = Bench(A, dispatch=DispatchConfig(queue_wait_seconds=600)).online()
    call_id = bench.call(2.0)
    bench.ended(call_id, 3.0, ev.Code.RESOURCE_EXHAUSTED, "BUSY", 1e9)
    bench.tell(ev.Tick(32.9))
    assert len(bench.of(ev.Start, call_id)) == 1
    bench.tell(ev.Tick(33.1))
    assert len(bench.of(ev.Start, call_id)) == 2


def test_a_late_failure_of_a_process_that_is_gone_twice_over_says_nothing() -> None:
    bench = Bench(A).online()
    bench.status(A, 1.0)
    call_id = bench.call(2.0)
    bench.status(A, 3.0, cause=ev.Cause.DRAINING, taken=True, call_id=call_id)
    bench.status(A, 4.0, boot_id="boot-2")
    bench.status(A, 4.5, boot_id="boot-3")
    bench.ended(call_id, 4.6, ev.Code.UNAVAILABLE)
    assert bench[A].state is State.UNKNOWN


def test_a_slot_of_which_no_status_tells_takes_its_worker_out_until_one_does() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0)
    bench.tell(ev.CallGone(3.0, call_id))
    bench.tell(ev.StatusLost(3.1, A))
    for now_s in (30.0, 62.9):
        bench.back(A, now_s)
    assert bench[A].online
    for now_s in (75.0, 80.0):
        bench.back(A, now_s)
    assert (bench[A].state, bench[A].evidence) == (
        State.NOT_SERVING,
        f"no status says whether {call_id} still holds its slot",
    )
    bench.status(A, 81.0, taken=True, call_id=call_id)
    bench.back(A, 81.1)
    bench.back(A, 83.0)
    assert bench[A].online, "its thread computes on, and it says so"
    bench.tell(ev.StatusLost(84.0, A))
    for now_s in (93.0, 96.0):
        bench.back(A, now_s)
    assert not bench[A].online
    bench.status(A, 97.0)
    bench.back(A, 98.0)
    assert bench[A].online


def test_killed_and_frozen_can_be_told_apart() -> None:
    bench = Bench(A, B).online()
    call_id = bench.call(2.0)
    bench.tell(ev.CallEnded(2.1, call_id, ev.Code.UNAVAILABLE, transport="Socket closed"))
    assert bench[A].evidence == "call: UNAVAILABLE Socket closed"
    assert bench.logs("attempt_failed")[0]["transport"] == "Socket closed"
