"""The state machine of one worker: every transition, thresholds, cooldown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.pool.config import DECAY_GOOD_CALLS, HealthCheckConfig
from edge.pool.endpoint import TRANSITIONS, Endpoint, IllegalTransitionError, State, Trigger
from edge.pool.events import Cause, ProbeResult

GOOD, REFUSED, SILENT, SICK = ProbeResult.GOOD, ProbeResult.UNREACHABLE, ProbeResult.TIMEOUT, ProbeResult.NOT_SERVING


def endpoint(*, health: HealthCheckConfig | None = None) -> Endpoint:
    return Endpoint("w:1", primary=True, health=health or HealthCheckConfig())


def probe(worker: Endpoint, now_s: float, *results: ProbeResult) -> None:
    for result in results:
        worker.probe_began()
        worker.probe_ended(now_s, result, "test")


def fail(worker: Endpoint, now_s: float, *, began_s: float | None = None, chance: float = 0.0) -> None:
    began_s = now_s if began_s is None else began_s
    worker.call_failed(now_s, began_s=began_s, cause=Cause.PASSIVE, evidence="test", chance=chance)


def in_state(state: State, *, health: HealthCheckConfig | None = None) -> Endpoint:
    """One that is in `state` at 100 s, without a running cooldown unless it is ejected."""
    worker = endpoint(health=health)
    if state is not State.UNKNOWN:
        probe(worker, 100.0, *[GOOD] * worker.health.healthy_threshold)
    if state is State.NOT_SERVING:
        worker.told_down(100.0, Cause.DISK, "test")
    if state is State.DRAINING:
        worker.told_down(100.0, Cause.DRAINING, "test")
    if state is State.EJECTED:
        fail(worker, 100.0)
    assert worker.state is state
    return worker


def trigger(worker: Endpoint, what: Trigger, now_s: float) -> None:
    match what:
        case Trigger.PROBES_GOOD:
            probe(worker, now_s, GOOD)
        case Trigger.PROBES_BAD:
            probe(worker, now_s, SILENT, SILENT)
        case Trigger.TOLD_DOWN:
            worker.told_down(now_s, Cause.STALLED, "test")
        case Trigger.TOLD_DRAINING | Trigger.DRAINED_ALREADY:
            worker.told_down(now_s, Cause.DRAINING, "test")
        case Trigger.CALL_FAILED:
            fail(worker, now_s)
        case Trigger.NEW_BOOT:
            worker.boot_id = worker.boot_id or "old"
            worker.boot_seen(now_s, "new")


U, S, N, E, D = State.UNKNOWN, State.SERVING, State.NOT_SERVING, State.EJECTED, State.DRAINING


@pytest.mark.parametrize(
    ("before", "what", "after"),
    [
        (U, Trigger.PROBES_GOOD, S),
        (U, Trigger.PROBES_BAD, N),
        (U, Trigger.TOLD_DOWN, N),
        (U, Trigger.TOLD_DRAINING, D),
        (U, Trigger.NEW_BOOT, U),
        (S, Trigger.PROBES_GOOD, S),
        (S, Trigger.PROBES_BAD, N),
        (S, Trigger.TOLD_DOWN, N),
        (S, Trigger.TOLD_DRAINING, D),
        (S, Trigger.CALL_FAILED, E),
        (S, Trigger.NEW_BOOT, S),
        (N, Trigger.PROBES_GOOD, S),
        (N, Trigger.PROBES_BAD, N),
        (N, Trigger.TOLD_DOWN, N),
        (N, Trigger.TOLD_DRAINING, D),
        (N, Trigger.CALL_FAILED, E),
        (N, Trigger.NEW_BOOT, N),
        (E, Trigger.PROBES_GOOD, E),
        (E, Trigger.PROBES_BAD, E),
        (E, Trigger.TOLD_DOWN, E),
        (E, Trigger.TOLD_DRAINING, E),
        (E, Trigger.DRAINED_ALREADY, D),
        (E, Trigger.CALL_FAILED, E),
        (E, Trigger.NEW_BOOT, E),
        (D, Trigger.PROBES_GOOD, D),
        (D, Trigger.PROBES_BAD, D),
        (D, Trigger.TOLD_DOWN, D),
        (D, Trigger.TOLD_DRAINING, D),
        (D, Trigger.CALL_FAILED, D),
        (D, Trigger.NEW_BOOT, U),
    ],
)
def test_every_trigger_in_every_state(before: State, what: Trigger, after: State) -> None:
    worker = in_state(before)
    trigger(worker, what, 100.5 if what is Trigger.DRAINED_ALREADY else 102.0)
    assert worker.state is after
    assert worker.online == (after is State.SERVING)


def test_the_table_has_a_row_for_every_state_and_knows_what_is_illegal() -> None:
    missing = [(state, what) for state in State for what in Trigger if what not in TRANSITIONS[state]]
    only_when_ejected = [(state, Trigger.DRAINED_ALREADY) for state in State if state is not State.EJECTED]
    assert set(missing) == {(State.UNKNOWN, Trigger.CALL_FAILED), *only_when_ejected}


def test_an_illegal_transition_raises_and_changes_nothing() -> None:
    worker = endpoint()
    before = vars(worker).copy()
    with pytest.raises(IllegalTransitionError, match="<w:1 UNKNOWN>: CALL_FAILED"):
        fail(worker, 1.0)
    assert vars(worker) == before


@pytest.mark.parametrize(("what", "after"), [(Trigger.PROBES_GOOD, S), (Trigger.PROBES_BAD, N)])
def test_after_the_cooldown_probes_decide_again(what: Trigger, after: State) -> None:
    worker = in_state(State.EJECTED)
    trigger(worker, what, 159.9)
    assert worker.state is State.EJECTED
    trigger(worker, what, 160.0)
    assert worker.state is after


@pytest.mark.parametrize(
    ("result", "cause"),
    [
        (ProbeResult.UNREACHABLE, Cause.UNREACHABLE),
        (ProbeResult.TIMEOUT, Cause.PROBE),
        (ProbeResult.NOT_SERVING, Cause.PROBE),
        (ProbeResult.ERROR, Cause.PROBE),
        (ProbeResult.AUTH, Cause.AUTH),
    ],
)
def test_the_cause_of_bad_probes_is_what_they_found(result: ProbeResult, cause: Cause) -> None:
    worker = in_state(State.SERVING)
    probe(worker, 101.0, result)
    assert worker.online, "one bad probe takes nobody offline"
    probe(worker, 102.0, result)
    assert (worker.state, worker.cause) == (State.NOT_SERVING, cause)


def test_a_good_probe_between_bad_ones_starts_the_count_anew() -> None:
    worker = in_state(State.SERVING)
    probe(worker, 101.0, SILENT, GOOD, SILENT, GOOD, SILENT)
    assert worker.online


def test_thresholds_are_those_of_the_configuration() -> None:
    health = HealthCheckConfig(unhealthy_threshold=3, healthy_threshold=2)
    worker = endpoint(health=health)
    probe(worker, 1.0, GOOD)
    assert worker.state is State.UNKNOWN
    probe(worker, 2.0, GOOD)
    probe(worker, 3.0, SILENT, SILENT)
    assert worker.online
    probe(worker, 4.0, SILENT)
    assert not worker.online


def test_a_lost_connection_and_a_refused_probe_after_it_are_enough() -> None:
    worker = in_state(State.SERVING)
    worker.connection_lost = True
    probe(worker, 101.0, REFUSED)
    assert (worker.state, worker.cause) == (State.NOT_SERVING, Cause.UNREACHABLE)


def test_a_probe_that_ran_when_the_connection_broke_proves_nothing() -> None:
    worker = in_state(State.SERVING)
    worker.probe_began()
    worker.connection_lost = True
    worker.probe_ended(101.0, REFUSED, "test")
    assert worker.online
    probe(worker, 101.0, GOOD)
    assert worker.online


def test_silence_after_a_lost_connection_still_needs_two() -> None:
    worker = in_state(State.SERVING)
    worker.connection_lost = True
    probe(worker, 101.0, SILENT)
    assert worker.online


def test_what_the_worker_said_of_itself_is_the_cause_of_a_sick_probe() -> None:
    worker = in_state(State.NOT_SERVING)
    probe(worker, 101.0, SICK, SICK)
    assert worker.cause is Cause.DISK


def test_its_word_takes_out_at_once_and_only_probes_bring_back() -> None:
    worker = in_state(State.SERVING)
    worker.told_down(101.0, None, "Watch")
    assert repr(worker) == "<w:1 NOT_SERVING(probe)>"
    worker.told_down(101.0, Cause.DISK, "status")
    assert repr(worker) == "<w:1 NOT_SERVING(disk)>"
    assert worker.told_serving()
    assert not worker.online
    probe(worker, 102.0, GOOD)
    assert repr(worker) == "<w:1 SERVING>"


def test_watch_and_failed_call_lead_to_the_same_end_in_either_order() -> None:
    watch_first, call_first = in_state(State.SERVING), in_state(State.SERVING)
    watch_first.told_down(101.0, None, "Watch")
    fail(watch_first, 101.0)
    fail(call_first, 101.0)
    call_first.told_down(101.0, None, "Watch")
    assert repr(watch_first) == repr(call_first) == "<w:1 EJECTED(passive) until 161.000 s>"


def test_cooldowns_double_up_to_the_maximum() -> None:
    worker, now_s, cooldowns = in_state(State.SERVING), 101.0, []
    for _ in range(5):
        fail(worker, now_s)
        cooldowns.append(worker.cooldown_left_s(now_s))
        now_s += cooldowns[-1]
        probe(worker, now_s, GOOD)
        assert worker.online
    assert cooldowns == [60, 120, 240, 300, 300]


def test_good_calls_take_doublings_back_one_by_one() -> None:
    worker = in_state(State.SERVING)
    for now_s in (101.0, 1_001.0, 2_001.0):
        fail(worker, now_s)
        probe(worker, now_s + 400, GOOD)
    for _ in range(DECAY_GOOD_CALLS):
        worker.call_good(2_900.0)
    fail(worker, 3_001.0)
    assert worker.cooldown_left_s(3_001.0) == 240, "after 60, 120 and 240 one of three doublings is gone"


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 6))
def test_jitter_never_shortens_a_promised_cooldown_nor_passes_the_maximum(chance: float, before: int) -> None:
    worker = in_state(State.SERVING)
    worker.cooldown.doublings = before
    fail(worker, 101.0, chance=chance)
    promised_s = min(60 * 2**before, 300)
    assert promised_s <= worker.cooldown_left_s(101.0) <= min(promised_s * 1.1, 300)


def test_a_failure_of_a_call_begun_before_lengthens_and_never_counts_again() -> None:
    worker = in_state(State.EJECTED)
    fail(worker, 150.0, began_s=99.0)
    assert worker.cooldown_left_s(150.0) == 60
    assert worker.ejections == 1
    fail(worker, 151.0, began_s=99.0)
    assert worker.cooldown_until_s == 211.0


def test_a_late_failure_never_shortens_a_longer_cooldown() -> None:
    worker = in_state(State.SERVING)
    worker.cooldown.doublings = 2
    fail(worker, 101.0)
    fail(worker, 102.0, began_s=99.0)
    assert worker.cooldown_until_s == 341.0


def test_a_failure_on_an_earlier_process_says_nothing_about_this_one() -> None:
    worker = in_state(State.SERVING)
    worker.boot_seen(100.0, "first")
    assert worker.boot_seen(120.0, "second")
    fail(worker, 121.1, began_s=110.0)
    assert worker.online


@pytest.mark.parametrize("boot_first", [True, False])
def test_a_failure_heard_together_with_the_next_process_ejects_whichever_came_first(boot_first: bool) -> None:
    worker = in_state(State.SERVING)
    worker.boot_seen(100.0, "first")
    if boot_first:
        worker.boot_seen(120.0, "second")
    fail(worker, 120.0, began_s=110.0)
    worker.boot_seen(120.0, "second")
    assert repr(worker) == "<w:1 EJECTED(passive) until 180.000 s>", "a new process never ends a cooldown"


@pytest.mark.parametrize("word_first", [True, False])
def test_a_failure_heard_together_with_the_word_that_it_drains_is_no_strike(word_first: bool) -> None:
    worker = in_state(State.SERVING)
    worker.boot_seen(100.0, "first")
    if word_first:
        worker.told_down(120.0, Cause.DRAINING, "status")
    fail(worker, 120.0, began_s=110.0)
    worker.told_down(120.0, Cause.DRAINING, "status")
    assert (worker.state, worker.ejections) == (State.DRAINING, 0)
    worker.boot_seen(121.0, "second")
    fail(worker, 121.0, began_s=110.0)
    assert worker.state is State.UNKNOWN, "and what ends late on the drained process is none either"


def test_a_refusal_by_a_process_that_is_gone_is_not_its_successors_word() -> None:
    worker = in_state(State.SERVING)
    worker.boot_seen(100.0, "first")
    worker.boot_seen(120.0, "second")
    worker.refused(121.0, began_s=110.0, cause=Cause.DRAINING, evidence="call")
    assert worker.online
    worker.refused(122.0, began_s=121.5, cause=Cause.DRAINING, evidence="call")
    assert worker.state is State.DRAINING


def test_the_word_that_it_drains_ends_no_cooldown_that_has_run_for_a_while() -> None:
    worker = in_state(State.EJECTED)
    worker.told_down(101.1, Cause.DRAINING, "status")
    assert worker.state is State.EJECTED


def test_another_password_ends_ejections_for_the_old_one_and_no_others() -> None:
    refused, failed = in_state(State.SERVING), in_state(State.EJECTED)
    refused.call_failed(101.0, began_s=100.5, cause=Cause.AUTH, evidence="test", chance=0.0)
    refused.call_failed(102.0, began_s=100.5, cause=Cause.AUTH, evidence="test", chance=0.0)
    assert refused.password_changed()
    assert not failed.password_changed()
    assert (refused.cooldown_left_s(103.0), refused.ejections) == (0, 0)
    assert refused.state is State.EJECTED, "its next good probe brings it back"
    probe(refused, 103.0, GOOD)
    assert refused.online
    assert failed.cooldown_left_s(103.0) == 57


def test_another_password_is_news_for_one_that_probes_took_out_for_the_old_one() -> None:
    worker = in_state(State.SERVING)
    probe(worker, 101.0, ProbeResult.AUTH, ProbeResult.AUTH)
    assert worker.password_changed()
    assert worker.cooldown_until_s < 0, "there is no cooldown to end"


def test_a_probe_refused_with_the_old_password_does_not_count() -> None:
    worker = in_state(State.SERVING)
    probe(worker, 101.0, ProbeResult.AUTH)
    worker.probe_began()
    worker.password_changed()
    worker.probe_ended(102.0, ProbeResult.AUTH, "test")
    assert worker.online


def test_a_running_cooldown_follows_the_configuration() -> None:
    worker = in_state(State.EJECTED)
    worker.health = HealthCheckConfig(cooldown_seconds=30)
    assert worker.cooldown_left_s(110.0) == 20
    worker.health = HealthCheckConfig(cooldown_seconds=90)
    assert worker.cooldown_left_s(110.0) == 80


def test_that_it_has_said_why_is_not_forgotten_when_it_only_says_no() -> None:
    first, last = in_state(State.SERVING), in_state(State.SERVING)
    first.told_down(101.0, None, "Watch")
    for worker in (first, last):
        worker.told_down(101.0, Cause.DISK, "status: disk_free_below_5.0g")
    last.told_down(101.0, None, "Watch")
    for worker in (first, last):
        assert (worker.cause, worker.evidence) == (Cause.DISK, "status: disk_free_below_5.0g")


def test_good_probes_from_before_the_bad_news_do_not_count_for_the_return() -> None:
    worker = in_state(State.NOT_SERVING, health=HealthCheckConfig(healthy_threshold=2))
    probe(worker, 101.0, GOOD)
    worker.told_down(101.5, Cause.DISK, "test")
    probe(worker, 102.0, GOOD)
    assert worker.state is State.NOT_SERVING
    probe(worker, 103.0, GOOD)
    assert worker.online


def test_a_worker_on_trial_is_back_soon_and_its_ejections_count_for_nothing_later() -> None:
    worker = in_state(State.EJECTED)
    worker.on_trial = worker.cooldown.short = True
    assert worker.cooldown_until_s == 110.0
    fail(worker, 105.0)
    assert worker.cooldown_until_s == 115.0
    probe(worker, 115.0, GOOD)
    fail(worker, 116.0)
    assert (worker.cooldown_until_s, worker.ejections) == (126.0, 1)


def test_cooldown_zero_ends_running_ones_and_leaves_the_next_good_probe_to_decide() -> None:
    worker = in_state(State.EJECTED)
    worker.health = HealthCheckConfig(cooldown_seconds=0)
    assert worker.cooldown_left_s(101.0) == 0
    assert not worker.online
    probe(worker, 101.0, GOOD)
    assert repr(worker) == "<w:1 SERVING>"
    fail(worker, 102.0)
    assert repr(worker) == "<w:1 EJECTED(passive) until 102.000 s>"
    assert worker.cooldown_left_s(102.0) == 0


def test_a_new_process_ends_draining_but_not_a_cooldown() -> None:
    drained, ejected = in_state(State.DRAINING), in_state(State.EJECTED)
    for worker in (drained, ejected):
        worker.boot_id = "old"
        assert worker.boot_seen(101.0, "new")
        probe(worker, 102.0, GOOD)
    assert drained.online
    assert ejected.state is State.EJECTED


def test_a_process_first_heard_of_while_draining_may_be_its_successor() -> None:
    worker = in_state(State.DRAINING)
    assert worker.boot_seen(101.0, "whoever")
    assert worker.state is State.UNKNOWN


def test_repr_shows_the_state() -> None:
    assert repr(in_state(State.UNKNOWN)) == "<w:1 UNKNOWN>"
    assert repr(in_state(State.SERVING)) == "<w:1 SERVING>"
    assert repr(in_state(State.NOT_SERVING)) == "<w:1 NOT_SERVING(disk)>"
    assert repr(in_state(State.DRAINING)) == "<w:1 DRAINING(draining)>"
    assert repr(in_state(State.EJECTED)) == "<w:1 EJECTED(passive) until 160.000 s>"


@given(st.lists(st.sampled_from(list(Trigger)), max_size=30))
def test_no_traffic_inside_a_cooldown_whatever_is_heard(heard: list[Trigger]) -> None:
    worker = in_state(State.EJECTED)
    for now_s, what in enumerate(heard, start=102):
        trigger(worker, what, float(now_s))
        if now_s < 160:
            assert worker.state is State.EJECTED
