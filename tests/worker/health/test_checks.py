"""Disk, models and progress as pure states."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.health.checks import CheckState, DiskCheck, DiskReading, ModelsCheck
from worker.thresholds import Thresholds

BEAT_S = 0.25
T = Thresholds()


def disk(min_free_gib: float = 5.0, resume_free_gib: float = 6.0) -> DiskCheck:
    return DiskCheck(min_free_gib=min_free_gib, resume_free_gib=resume_free_gib, started_s=0.0, thresholds=T)


def fresh(free_gib: float, now_s: float, **changes: object) -> DiskReading:
    values = {"free_gib": free_gib, "free_at_s": now_s, "write_ms": 1.0, "write_at_s": now_s, **changes}
    return DiskReading(**values)  # type: ignore[arg-type]  # a mapping of mixed values


def states(check: DiskCheck, free_gib: list[float]) -> list[CheckState]:
    seen = []
    for beat, free in enumerate(free_gib):
        now_s = beat * BEAT_S
        check.update(fresh(free, now_s), now_s)
        seen.append(check.result().state)
    return seen


def test_out_at_once_below_the_lower_mark_back_only_above_the_upper_one() -> None:
    calm = int(T.disk_out_min_s / BEAT_S)
    low, between, high = [4.9], [5.5] * 200, [6.0] * calm
    seen = states(disk(), low + between + high)
    assert seen[:-1] == [CheckState.FAILING] * (len(seen) - 1)
    assert seen[-1] is CheckState.PASSING


def test_between_the_marks_a_good_disk_stays_good() -> None:
    assert set(states(disk(), [5.5] * 200)) == {CheckState.PASSING}


@given(st.lists(st.floats(3.0, 8.0), min_size=1, max_size=300))
def test_free_space_that_swings_changes_the_state_rarely(free_gib: list[float]) -> None:
    """Scenario 33: never shown as good while below the mark, and each time out lasts its ten seconds."""
    seen = states(disk(), free_gib)
    went_out = [n for n in range(1, len(seen)) if seen[n] != seen[n - 1] and seen[n] is CheckState.FAILING]
    came_back = [n for n in range(1, len(seen)) if seen[n] != seen[n - 1] and seen[n] is CheckState.PASSING]
    assert all(state is CheckState.FAILING for state, free in zip(seen, free_gib, strict=True) if free < 5.0)
    for back in came_back:
        last_out = max((out for out in went_out if out < back), default=0)
        assert (back - last_out) * BEAT_S >= T.disk_out_min_s
        assert all(free >= 6.0 for free in free_gib[back - int(T.disk_out_min_s / BEAT_S) + 1 : back + 1])


@given(st.floats(4.5, 6.5), st.lists(st.floats(-0.499, 0.499), min_size=1, max_size=300))
def test_free_space_that_swings_around_either_mark_changes_the_state_at_most_once(
    middle_gib: float, swings_gib: list[float]
) -> None:
    """Scenario 33: the way out and the way back lie a whole GiB apart, and going out is never put off."""
    seen = states(disk(), [middle_gib + swing_gib for swing_gib in swings_gib])
    assert sum(later is not earlier for earlier, later in itertools.pairwise(seen)) <= 1


CALM_BEATS = int(T.disk_out_min_s / BEAT_S)
HANGING_BEATS = int(4 * T.disk_write_period_s / BEAT_S)


@pytest.mark.parametrize(
    "hiccup",
    [{"write_error": "EIO"}, {"free_error": "EIO"}, {"write_at_s": 0.0}, {"free_at_s": 0.0}],
    ids=lambda hiccup: next(iter(hiccup)),
)
def test_between_the_marks_a_hiccup_costs_the_calm_time_alone(hiccup: dict[str, object]) -> None:
    """The upper mark is for space that ran short: here it may never be reached."""
    check = disk()
    for beat in range(HANGING_BEATS):
        check.update(fresh(5.5, beat * BEAT_S, **hiccup), beat * BEAT_S)
    for beat in range(HANGING_BEATS, HANGING_BEATS + CALM_BEATS):
        assert check.result().state is CheckState.FAILING
        check.update(fresh(5.5, beat * BEAT_S), beat * BEAT_S)
    assert check.result().state is CheckState.PASSING


@pytest.mark.parametrize("low_first", [True, False])
def test_space_that_ran_short_needs_the_upper_mark_whatever_else_happened(*, low_first: bool) -> None:
    check = disk()
    wrong = [fresh(4.9, 0.0), fresh(5.5, 0.0, write_error="EIO")]
    for reading in wrong if low_first else reversed(wrong):
        check.update(reading, 0.0)
    for beat in range(1, 2 * CALM_BEATS):
        check.update(fresh(5.5, beat * BEAT_S), beat * BEAT_S)
    assert check.result().reason == "disk_free_below_6.0g"
    for beat in range(2 * CALM_BEATS, 3 * CALM_BEATS + 1):
        check.update(fresh(6.0, beat * BEAT_S), beat * BEAT_S)
    assert check.result().state is CheckState.PASSING
    later_s = 3 * T.disk_out_min_s + BEAT_S
    check.update(fresh(5.5, later_s), later_s)
    assert check.result().state is CheckState.PASSING  # over: it takes the lower mark again


def test_reasons_name_what_is_wrong() -> None:
    check = disk()
    check.update(fresh(4.0, 1.0), 1.0)
    assert check.result().reason == "disk_free_below_5.0g"
    check.update(fresh(4.0, 1.1), 1.1)
    assert check.result().reason == "disk_free_below_5.0g"  # the same as long as the same is wrong
    check.update(fresh(5.5, 1.2), 1.2)
    assert check.result().reason == "disk_free_below_6.0g"
    check.update(fresh(9.0, 1.25, write_error="ENOSPC"), 1.25)
    assert check.result().reason == "disk_write_failed:ENOSPC"
    check.update(fresh(9.0, 1.5, free_error="EIO"), 1.5)
    assert check.result().reason == "disk_unreadable:EIO"


def test_threads_that_hang_are_seen() -> None:
    check = disk()
    beats = [n * BEAT_S for n in range(400)]
    for now_s in beats:
        check.update(fresh(9.0, now_s, write_at_s=0.0), now_s)
    assert check.result().reason == "disk_write_hangs"
    check = disk()
    for now_s in beats[:20]:
        check.update(fresh(9.0, 0.0, write_at_s=now_s), now_s)
    assert check.result().reason == "disk_does_not_answer"


def test_suspended_machine_does_not_age_the_evidence() -> None:
    check = disk()
    check.update(fresh(9.0, 0.0), 0.0)
    check.update(fresh(9.0, 0.0), 600.0)
    assert check.result().state is CheckState.PASSING


@pytest.mark.parametrize("between_s", [2.0, 10.0, 40.0])
def test_a_machine_that_is_late_now_and_then_sees_a_hanging_disk_all_the_same(between_s: float) -> None:
    """A pause of 1.75 s again and again."""
    check = disk()
    now_s = 0.0
    while check.result().reason != "disk_write_hangs":
        now_s += 1.75 if now_s % between_s < BEAT_S else BEAT_S
        check.update(fresh(9.0, now_s, write_at_s=0.0), now_s)
        assert now_s < 60.0


def test_zero_switches_it_off_and_nothing_is_claimed_before_the_first_reading() -> None:
    check = disk(min_free_gib=0.0)
    check.update(fresh(0.0, 1.0, write_error="EROFS"), 1.0)
    assert check.result().state is CheckState.OFF
    assert disk().result().state is CheckState.UNKNOWN


def model_states(check: ModelsCheck) -> list[CheckState]:
    """Of the models and of the accelerator."""
    return [result.state for result in check.results()]


def test_models_come_back_with_the_canary_an_accelerator_does_not() -> None:
    check = ModelsCheck()
    check.loaded("cuda:0")
    assert model_states(check) == [CheckState.UNKNOWN, CheckState.UNKNOWN]
    check.canary_passed(5.0, 12.0)
    assert model_states(check) == [CheckState.PASSING, CheckState.PASSING]
    assert [check.canary_failed("wrong answer") for _time in range(2)] == [True, False]  # news once
    assert model_states(check) == [CheckState.FAILING, CheckState.PASSING]
    check.canary_passed(6.0, 12.0)
    assert model_states(check) == [CheckState.PASSING, CheckState.PASSING]
    check.accelerator_failed("AcceleratorError")
    check.canary_passed(7.0, 12.0)
    assert model_states(check) == [CheckState.PASSING, CheckState.FAILING]
    assert check.results()[1].reason == "accelerator:AcceleratorError"
    assert (check.good, check.accelerator_lost) == (False, True)
