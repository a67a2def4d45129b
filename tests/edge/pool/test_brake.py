"""Most workers go out together: one alert, short cooldowns, one trial at a time, and the truth about who is online."""

from __future__ import annotations

from typing import Any

import pytest

from edge.pool import config as fixed
from edge.pool import events as ev
from edge.pool.config import DispatchConfig, HealthCheckConfig
from tests.edge.pool.bench import GOOD, A, B, Bench, C

FIVE = tuple(f"w:{number}" for number in range(1, 6))
FAILED = (ev.Code.INTERNAL, "WORKER_FAILED")


def pool(*workers: str, max_retries: int = 0, **settings: Any) -> Bench:
    """Online, and without retries, so that each call touches one worker."""
    return Bench(*workers, dispatch=DispatchConfig(max_retries=max_retries), **settings).online()


def outage(bench: Bench, now_s: float, how: tuple[ev.Code, str] = FAILED, *, workers: int = 5) -> Bench:
    """So many workers, each busy with a call of its own, fail at this moment."""
    calls = [bench.call(now_s - 0.5) for _ in range(workers)]
    for call_id in calls:
        bench.ended(call_id, now_s, *how)
    return bench


def online(bench: Bench) -> list[str]:
    return [endpoint.target for endpoint in bench.pool.endpoints() if endpoint.online]


def all_back(bench: Bench, now_s: float) -> None:
    """The cooldowns are over and all probes are good."""
    bench.tell(ev.Tick(now_s))
    for endpoint in bench.pool.endpoints():
        if endpoint.probing:
            bench.probed(endpoint.target, GOOD, now_s)


def test_3_all_workers_fail_together() -> None:
    bench = outage(pool(*FIVE), 2.0)
    assert online(bench) == [], "all are out, and monitoring says so"
    alerts = bench.logs("shared_cause")
    assert len(alerts) == 1
    assert (alerts[0]["cause"], alerts[0]["workers_total"], alerts[0]["inputs"]) == ("passive", 5, 3)
    assert (bench.pool.snapshot(2.0).braked, bench.pool.snapshot(2.0).shared_cause) == (True, "passive")
    assert all(endpoint.cooldown_left_s(2.0) == 10 for endpoint in bench.pool.endpoints())
    failed = bench.failed(bench.call(3.0))
    assert failed is not None
    assert (failed.reason, failed.retry_after_s) == ("NO_WORKER", 9.0)

    all_back(bench, 12.0)
    assert len(online(bench)) == 5, "by the same flag as ever"
    trial, second = bench.call(12.5), bench.call(12.5)
    assert [bench.runs_on(trial) != "", bench.runs_on(second)] == [True, ""], "one trial at a time"
    bench.tell(ev.Tick(14.6))
    assert bench.runs_on(second) == "", "however long it takes"
    third = bench.call(14.7)
    bench.ended(trial, 15.0, *FAILED)
    assert [bench.runs_on(second) != "", bench.runs_on(third)] == [True, ""], "and the next one after it"
    bench.ended(second, 17.5, ev.Code.OK)
    assert bench.logs("shared_cause_over")[0]["cause"] == "passive"
    assert (bench.pool.snapshot(17.5).braked, bench.pool.snapshot(17.5).shared_cause) == (False, "")
    many = [bench.call(17.6) for _ in range(3)]
    assert bench.runs_on(third)
    assert all(bench.runs_on(each) for each in many[:2]), "it is over for everybody"
    assert len(bench.logs("shared_cause")) == 1


def test_trials_are_two_seconds_apart_however_soon_they_fail() -> None:
    bench = outage(pool(*FIVE), 2.0)
    all_back(bench, 12.0)
    bench.ended(bench.call(12.5), 12.6, *FAILED)
    waits = bench.call(12.7)
    bench.tell(ev.Tick(14.4))
    assert bench.runs_on(waits) == ""
    bench.tell(ev.Tick(14.5))
    assert bench.runs_on(waits)


def test_a_trial_whose_client_leaves_is_over() -> None:
    bench = outage(pool(*FIVE), 2.0)
    all_back(bench, 12.0)
    first = bench.call(12.5)
    bench.tell(ev.CallGone(12.6, first))
    second = bench.call(15.0)
    assert bench.runs_on(second)


def test_a_worker_that_fails_its_trial_is_out_for_as_short_again_and_it_counts_for_nothing_later() -> None:
    bench = outage(pool(*FIVE), 2.0)
    all_back(bench, 12.0)
    trial = bench.call(12.5)
    target = bench.runs_on(trial)
    bench.ended(trial, 13.0, *FAILED)
    assert bench[target].cooldown_left_s(13.0) == pytest.approx(10)
    assert bench[target].ejections == 1


def test_a_photo_refused_is_a_trial_that_succeeded_and_a_failed_input_is_none() -> None:
    bench = outage(pool(*FIVE), 2.0)
    all_back(bench, 12.0)
    bench.ended(bench.call(12.5), 12.6, ev.Code.FAILED_PRECONDITION, "INPUT_FAILED")
    assert bench.pool.snapshot(13.0).braked
    bench.ended(bench.call(15.0), 15.1, ev.Code.FAILED_PRECONDITION, "NO_FACE")
    assert not bench.pool.snapshot(16.0).braked


def test_a_fast_call_goes_before_a_slow_one_as_the_trial() -> None:
    bench = outage(pool(*FIVE), 2.0)
    all_back(bench, 12.0)
    bench.ended(bench.call(12.5), 12.6, *FAILED)
    slow, fast = bench.call(12.7, slow=True), bench.call(12.8)
    bench.tell(ev.Tick(14.5))
    assert [bench.runs_on(slow), bench.runs_on(fast) != ""] == ["", True]


# What is shared, and what is a coincidence


def test_half_of_the_workers_is_not_most() -> None:
    bench = outage(pool(*FIVE, "w:6"), 2.0, workers=3)
    assert not bench.logs("shared_cause")


def test_two_workers_are_no_crowd() -> None:
    bench = outage(pool(A, B), 2.0, workers=2)
    assert not bench.logs("shared_cause")


def test_one_after_another_is_not_together() -> None:
    bench = pool(A, B, C)
    for number in range(3):
        bench.ended(bench.call(2.0 + 6 * number), 3.0 + 6 * number, *FAILED)
    assert not bench.logs("shared_cause")


def test_two_inputs_may_have_done_it() -> None:
    bench = pool(A, B, C, max_retries=1)
    one, two = bench.call(2.0), bench.call(2.0)
    for call_id in (one, two, one, two):
        if bench.runs_on(call_id) and not bench.failed(call_id):
            bench.ended(call_id, 3.0, *FAILED)
    assert online(bench) == []
    assert not bench.logs("shared_cause")


def test_those_that_are_back_already_when_the_others_follow_get_trials_only() -> None:
    bench = pool(A, B, C, "d:1", health=HealthCheckConfig(cooldown_seconds=0))
    for target in (A, B):
        bench.status(target, 2.0, cause=ev.Cause.DEPENDENCY)
        bench.status(target, 2.1)
        bench.back(target, 2.2)
    bench.status(C, 3.0, cause=ev.Cause.DEPENDENCY)
    assert bench.logs("shared_cause")[0]["workers"] == [A, B, C]
    bench.status("d:1", 3.1, taken=True, call_id="other-1")
    assert sorted(bench.runs_on(bench.call(4.0)) for _ in range(2)) == ["", A]


def test_one_that_has_left_the_pool_is_not_counted() -> None:
    bench = pool(A, B, C)
    bench.status(A, 2.0, cause=ev.Cause.DEPENDENCY)
    bench.configure(2.5, B, C, "d:1")
    bench.status(B, 3.0, cause=ev.Cause.DEPENDENCY)
    assert not bench.logs("shared_cause")
    bench.status(C, 3.0, cause=ev.Cause.DEPENDENCY)
    assert bench.logs("shared_cause")[0]["workers"] == [B, C]


def test_what_only_one_of_them_can_have_is_not_shared() -> None:
    bench = pool(A, B, C)
    for target in (A, B, C):
        bench.status(target, 2.0, cause=ev.Cause.DISK)
    assert online(bench) == []
    assert not bench.logs("shared_cause")


def test_causes_that_differ_are_not_one() -> None:
    bench = pool(A, B, C)
    bench.status(A, 2.0, cause=ev.Cause.DEPENDENCY)
    bench.ended(bench.call(2.0), 2.1, *FAILED)
    bench.ended(bench.call(2.2), 2.3, *FAILED)
    assert not bench.logs("shared_cause")


def test_the_same_worker_twice_is_one() -> None:
    bench = pool(*FIVE, health=HealthCheckConfig(cooldown_seconds=0))
    for number in range(4):
        bench.tell(ev.HealthTold(2.0 + number, FIVE[0], serving=False))
        bench.status(FIVE[0], 2.1 + number, cause=ev.Cause.DEPENDENCY)
        bench.status(FIVE[0], 2.2 + number)
        bench.back(FIVE[0], 2.5 + number)
    bench.status(FIVE[1], 6.0, cause=ev.Cause.DEPENDENCY)
    assert not bench.logs("shared_cause")


def test_a_dependency_of_all_is_told_by_themselves_and_they_come_back_by_a_trial() -> None:
    bench = pool(A, B, C)
    for target in (A, B):
        bench.status(target, 2.0, cause=ev.Cause.DEPENDENCY, evidence="dep_down:comfyui")
    assert bench.logs("shared_cause") == [
        {"cause": "dependency", "workers": [A, B], "workers_total": 3, "inputs": 0, "without_a_call": 2},
    ]
    assert bench.runs_on(bench.call(2.5)) == C, "who is well goes on as before"
    bench.status(C, 3.0, cause=ev.Cause.DEPENDENCY, taken=True, call_id="edge-1")
    for target in (A, B, C):
        bench.status(target, 5.0, asked_s=4.9)
    all_back(bench, 5.1)
    calls = [bench.call(6.0) for _ in range(3)]
    assert sum(bench.runs_on(each) != "" for each in calls) == 1
    bench.ended(calls[0], 6.5, ev.Code.OK)
    assert all(bench.runs_on(each) for each in calls)


def test_a_password_refused_by_all_is_over_when_it_changes() -> None:
    bench = outage(pool(*FIVE), 2.0, (ev.Code.UNAUTHENTICATED, "WRONG_PASSWORD"))
    assert bench.logs("shared_cause")[0]["cause"] == "auth"
    bench.tell(ev.PasswordChanged(4.0))
    assert bench.logs("shared_cause_over") == [{"cause": "auth", "because": "password changed", "lasted_s": 2.0}]
    all_back(bench, 4.1)
    assert len(online(bench)) == 5


def test_another_password_changes_nothing_about_another_cause() -> None:
    bench = outage(pool(*FIVE), 2.0)
    bench.tell(ev.PasswordChanged(4.0))
    assert bench.pool.snapshot(4.0).braked


def test_it_is_over_when_none_of_those_workers_is_left() -> None:
    bench = outage(pool(A, B, C), 2.0, workers=3)
    bench.configure(3.0, "d:1", "e:1")
    assert bench.logs("shared_cause_over")[0]["because"] == "none of its workers is left"


def test_one_that_goes_out_while_it_lasts_is_one_of_them() -> None:
    bench = pool(*FIVE)
    outage(bench, 2.0, workers=4)
    assert bench.pool.snapshot(2.0).braked
    bench.ended(bench.call(3.0), 3.5, *FAILED)
    assert all(endpoint.cooldown_left_s(3.5) <= 10 for endpoint in bench.pool.endpoints())


def test_what_breaks_while_it_lasts_is_nobodys_input() -> None:
    bench = outage(pool(*FIVE), 2.0)
    assert not bench.pool.minds_inputs
    all_back(bench, 12.0)
    bench.ended(bench.call(12.5, photo="x"), 12.6, *FAILED)
    assert not bench.pool.minds_inputs


def some_are_out_for_good(bench: Bench, until_s: float) -> None:
    """Three of five fail every trial, the others serve."""
    now_s = 12.0
    while now_s < until_s:
        all_back(bench, now_s)
        for _ in range(3):
            call_id = bench.call(now_s)
            broken = bench.runs_on(call_id) in FIVE[:3]
            bench.ended(call_id, now_s, *(FAILED if broken else (ev.Code.OK, "")))
        now_s += 1.0


def test_where_others_serve_well_trying_so_often_has_an_end() -> None:
    bench = outage(pool(*FIVE), 2.0, workers=3)
    assert bench.pool.snapshot(2.0).braked
    some_are_out_for_good(bench, 290.0)
    assert bench.pool.snapshot(290.0).braked
    some_are_out_for_good(bench, 2.0 + fixed.BRAKE_MAX_S + 20)
    assert bench.logs("shared_cause_over")[0]["because"] == "it lasts, and other workers serve"


def test_where_its_workers_stay_down_so_that_none_is_tried_it_has_the_same_end() -> None:
    bench = dependency_of_three_is_down(pool(*FIVE), 2.0)
    bench.answered(2.0 + fixed.BRAKE_MAX_S - 1)
    assert bench.pool.snapshot(302.0).braked
    bench.answered(2.0 + fixed.BRAKE_MAX_S)
    (over,) = bench.logs("shared_cause_over")
    assert (over["cause"], over["because"]) == ("dependency", "it lasts, and other workers serve")
    assert not bench.pool.snapshot(303.0).braked

    for target in FIVE[3:]:  # the next shared cause is noticed as the first one was
        bench.status(target, 400.0, cause=ev.Cause.AUTH)
    bench.status(FIVE[0], 400.0, cause=ev.Cause.AUTH)
    assert bench.logs("shared_cause")[-1]["cause"] == "auth"


def test_nobody_serves_elsewhere_so_that_it_goes_on() -> None:
    bench = outage(pool(*FIVE), 2.0)
    bench.tell(ev.Tick(10.0 * fixed.BRAKE_MAX_S))
    assert bench.pool.snapshot(10.0 * fixed.BRAKE_MAX_S).braked


def test_cooldowns_that_were_short_stay_short_when_it_is_over() -> None:
    bench = outage(pool(*FIVE), 2.0, workers=4)
    all_back(bench, 12.0)
    first = bench.call(12.5)
    target = bench.runs_on(first)
    bench.ended(first, 13.0, *FAILED)
    bench.ended(bench.call(15.0), 15.1, ev.Code.OK)
    assert not bench.pool.snapshot(15.2).braked
    assert bench[target].cooldown_left_s(15.2) <= 8


def dependency_of_three_is_down(bench: Bench, now_s: float) -> Bench:
    for target in FIVE[:3]:
        bench.status(target, now_s, cause=ev.Cause.DEPENDENCY, evidence="dep_down:comfyui")
    (alert,) = bench.logs("shared_cause")
    assert (alert["cause"], alert["inputs"], alert["without_a_call"]) == ("dependency", 0, 3)
    assert bench.history(FIVE[0])[0] == "shared cause dependency: back by a trial"
    return bench


def test_what_fails_for_another_reason_meanwhile_is_out_as_long_as_ever() -> None:
    bench = dependency_of_three_is_down(pool(*FIVE), 2.0)
    bench.ended(bench.call(3.0), 3.1, *FAILED)
    assert bench[FIVE[3]].cooldown_left_s(3.1) >= 60
    assert not bench[FIVE[3]].on_trial
    assert len(bench.logs("worker_on_trial")) == 3


def test_an_input_that_breaks_workers_of_another_cause_is_still_found_out() -> None:
    bench = dependency_of_three_is_down(pool(*FIVE, max_retries=3), 2.0)
    bench.answered(2.5)
    poison = bench.call(3.0, photo="poison")
    for now_s in (3.1, 3.2):
        bench.ended(poison, now_s, *FAILED)
    assert bench.logs("attempt_failed")[-1]["because"] == "its input broke two workers"
    assert {line["worker"] for line in bench.logs("ejection_pardoned")} == set(FIVE[3:])
    for target in FIVE[3:]:
        bench.back(target, 4.0)
    assert bench.reason(bench.call(5.0, photo="poison")) == "POISON_INPUT"
