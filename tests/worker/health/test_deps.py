"""Dependencies and the growth capability as pure states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.health.checks import Cause, CheckState, dep_down
from worker.health.deps import DependencyCheck, ProbeResult
from worker.health.growth import GrowthCheck
from worker.thresholds import Thresholds

T = Thresholds()
GOOD, REFUSED, LATE = "good", "refused", "late"


def check(*, required: bool = True, checked: bool = True, interval_s: float = 5.0) -> DependencyCheck:
    return DependencyCheck(
        "comfyui", required=required, checked=checked, interval_s=interval_s, started_s=0.0, thresholds=T
    )


def probe(kind: str, at_s: float) -> ProbeResult:
    problem = {GOOD: "", REFUSED: "ECONNREFUSED", LATE: "no_answer_in_time"}[kind]
    return ProbeResult(at_s, 3.0, problem, timed_out=kind == LATE)


def states(*kinds: str) -> list[CheckState]:
    dependency = check()
    seen = []
    for second, kind in enumerate(kinds):
        dependency.observe(probe(kind, float(second)))
        dependency.update(float(second))
        seen.append(dependency.result().state)
    return seen


def test_two_refusals_in_a_row_take_it_down_one_does_not() -> None:
    assert states(GOOD, REFUSED, GOOD, REFUSED, REFUSED) == [CheckState.PASSING] * 4 + [CheckState.FAILING]


def test_saturated_is_not_dead_time_outs_need_one_more() -> None:
    """B71, B85."""
    assert states(GOOD, LATE, LATE, GOOD, LATE, LATE, LATE) == [CheckState.PASSING] * 6 + [CheckState.FAILING]
    assert states(GOOD, LATE, REFUSED, REFUSED)[-2:] == [CheckState.PASSING, CheckState.FAILING]


def test_two_good_probes_bring_it_back_but_the_very_first_counts_at_once() -> None:
    down = [CheckState.FAILING]
    assert states(GOOD, REFUSED, REFUSED, GOOD, REFUSED, GOOD, GOOD)[2:] == down * 4 + [CheckState.PASSING]
    assert states(GOOD) == [CheckState.PASSING]
    assert states(REFUSED, GOOD) == [CheckState.UNKNOWN, CheckState.PASSING]
    assert states(REFUSED, REFUSED) == [CheckState.UNKNOWN, CheckState.FAILING]


@given(st.lists(st.sampled_from([GOOD, REFUSED, LATE]), max_size=40))
def test_every_way_down_has_two_bad_probes_and_every_way_back_two_good_ones(kinds: list[str]) -> None:
    seen = states(*kinds)
    for n in range(1, len(seen)):
        if (seen[n - 1], seen[n]) == (CheckState.FAILING, CheckState.PASSING):
            assert kinds[n - 1 : n + 1] == [GOOD, GOOD]
        if seen[n] is CheckState.FAILING and seen[n - 1] is not CheckState.FAILING:
            assert GOOD not in kinds[n - 1 : n + 1]


def beaten(dependency: DependencyCheck, until_s: float) -> CheckState:
    for beat in range(int(until_s * 4) + 1):
        dependency.update(beat / 4)
    return dependency.result().state


def test_evidence_older_than_three_intervals_counts_as_failed() -> None:
    dependency = check()
    dependency.observe(probe(GOOD, 0.0))
    assert beaten(dependency, 15.0) is CheckState.PASSING
    dependency.update(15.25)
    assert (dependency.result().state, dependency.result().reason) == (CheckState.FAILING, "probe_hangs")
    dependency.observe(probe(GOOD, 15.5))
    dependency.observe(probe(GOOD, 16.5))
    dependency.update(16.5)
    assert dependency.result().state is CheckState.PASSING


def test_a_probe_that_hangs_from_the_start_is_seen_and_a_slow_one_is_not_taken_for_it() -> None:
    assert beaten(check(), 15.25) is CheckState.FAILING
    quick = check(interval_s=0.5)
    quick.observe(probe(GOOD, 0.0))
    assert beaten(quick, 0.5 + T.dep_timeout_s) is CheckState.PASSING


@pytest.mark.parametrize("interval_s", [0.5, 5.0, 10.0, 60.0])
def test_probes_that_take_all_the_time_they_have_are_never_too_old(interval_s: float) -> None:
    dependency, ended_s = check(interval_s=interval_s), 0.0
    for beat in range(2_400):
        now_s = beat / 4
        if now_s >= ended_s + interval_s + T.dep_timeout_s:
            dependency.observe(probe(GOOD, now_s))
            ended_s = now_s
        dependency.update(now_s)
        assert dependency.result().reason == ""


def test_a_machine_that_is_always_late_sees_a_probe_that_hangs_all_the_same() -> None:
    dependency = check()
    for beat in range(20):
        dependency.update(2.0 * beat)
    assert dependency.result().reason == "probe_hangs"


def test_suspended_machine_does_not_age_the_evidence() -> None:
    """Scenario 32."""
    dependency = check()
    dependency.observe(probe(GOOD, 0.0))
    assert beaten(dependency, 10.0) is CheckState.PASSING
    dependency.update(610.0)
    assert dependency.result().state is CheckState.PASSING


def test_result_names_cause_and_evidence() -> None:
    dependency = check()
    for second in range(2):
        dependency.observe(probe(REFUSED, float(second)))
    result = dependency.result()
    assert (result.name, result.cause, result.reason, result.at_s) == (
        "dep/comfyui",
        Cause.DEPENDENCY,
        "ECONNREFUSED",
        1.0,
    )
    assert result.evidence == {"answer_ms": 3.0, "bad_in_a_row": 2.0}
    assert check(required=False).result().cause is None
    assert dep_down([result, check().result()]) == "dep_down:comfyui"


def test_switched_off_it_says_nothing_ever() -> None:
    dependency = check(checked=False)
    assert beaten(dependency, 100.0) is CheckState.OFF


def down() -> DependencyCheck:
    dependency = check(required=False)
    for second in range(2):
        dependency.observe(probe(REFUSED, float(second)))
    return dependency


def reason(growth: GrowthCheck, now_s: float, *dependencies: DependencyCheck) -> str:
    growth.update([dependency.result() for dependency in dependencies], now_s)
    result = growth.result()
    assert (result.state is CheckState.FAILING) == bool(result.reason)
    assert not result.required
    return result.reason


def test_without_a_backend_growth_is_no_capability() -> None:
    assert reason(GrowthCheck(configured=False, thresholds=T), 0.0) == "backend_none"


def test_waiting_long_in_another_servers_queue_costs_growth_until_it_is_left() -> None:
    growth = GrowthCheck(configured=True, thresholds=T)
    growth.waits("comfyui", 0.0)
    assert reason(growth, 9.9) == ""
    growth.waits("comfyui", 9.9)
    assert reason(growth, 10.0) == "waiting_for:comfyui"
    growth.waits("", 10.5)
    assert reason(growth, 10.5) == ""
    growth.waits("comfyui", 11.0)
    assert reason(growth, 20.0) == ""


def test_growth_follows_its_dependencies() -> None:
    growth = GrowthCheck(configured=True, thresholds=T)
    assert reason(growth, 0.0, check()) == ""
    assert reason(growth, 1.0, check(), down()) == "dep_down:comfyui"
    assert reason(growth, 2.0, check()) == ""


@pytest.mark.parametrize("succeeds", [True, False])
def test_growth_remembers_its_own_failures_until_one_succeeds_or_for_a_minute(succeeds: bool) -> None:
    growth = GrowthCheck(configured=True, thresholds=T)
    growth.failed("NO_ANSWER", 10.0)
    assert reason(growth, 11.0) == "failed:NO_ANSWER"
    if succeeds:
        growth.succeeded()
        assert reason(growth, 12.0) == ""
    else:
        assert reason(growth, 69.0) == "failed:NO_ANSWER"
        assert reason(growth, 70.0) == ""
