"""The verdict on readings: every row of the table, and what holds for any history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.health.verdict import Judgement, Memory, Reading, Verdict, judge

PERIOD_S = 1.0
IDLE = Reading(
    at_s=0.0, boot_id="b", start_time_s=7.0, counter=5, in_flight=0, waiting=0, stage="parsing", stall_after_s=3.0
)
WORKING = replace(IDLE, in_flight=1)


def follow(*readings: Reading) -> list[Judgement]:
    memory: Memory | None = None
    judgements = []
    for reading in readings:
        judgements.append(judge(memory, reading, period_s=PERIOD_S))
        memory = judgements[-1].memory
    return judgements


def verdicts(*readings: Reading) -> list[Verdict]:
    return [judgement.verdict for judgement in follow(*readings)]


def every_second(reading: Reading, count: int, start_s: float = 0.0) -> list[Reading]:
    return [replace(reading, at_s=start_s + second) for second in range(count)]


def test_moving_counter_is_busy_for_ever() -> None:
    readings = [replace(WORKING, at_s=float(n), counter=n) for n in range(100)]
    assert set(verdicts(*readings)) == {Verdict.BUSY}
    assert not any(judgement.canary_wanted for judgement in follow(*readings))


def test_still_counter_is_stalled_after_two_readings_over_the_limit() -> None:
    assert verdicts(*every_second(WORKING, 6)) == [Verdict.BUSY] * 5 + [Verdict.STALLED]


def test_waiting_without_anything_running_is_work_too() -> None:
    assert verdicts(*every_second(replace(IDLE, waiting=3), 6))[-1] is Verdict.STALLED


def test_stall_ends_when_the_counter_moves() -> None:
    readings = [*every_second(WORKING, 7), replace(WORKING, at_s=7.0, counter=6)]
    assert verdicts(*readings)[-2:] == [Verdict.STALLED, Verdict.BUSY]


def test_late_reading_starts_anew() -> None:
    """A suspended machine: half a minute passes between two readings."""
    readings = [*every_second(WORKING, 3), *every_second(WORKING, 5, start_s=32.0)]
    assert set(verdicts(*readings)) == {Verdict.BUSY}


@pytest.mark.parametrize("gap_s", [1.75, 2.5, 3.75])
def test_a_machine_that_is_always_late_sees_a_stall_all_the_same(gap_s: float) -> None:
    """Each reading counts as one that was on time, the first late one aside."""
    readings = [replace(WORKING, at_s=n * gap_s) for n in range(7)]
    assert verdicts(*readings) == [Verdict.BUSY] * 6 + [Verdict.STALLED]
    moving = [replace(WORKING, at_s=n * gap_s, counter=n // 3) for n in range(60)]
    assert set(verdicts(*moving)) == {Verdict.BUSY}


def test_a_machine_that_sleeps_again_and_again_is_no_stall() -> None:
    readings = [replace(WORKING, at_s=n * 40.0) for n in range(60)]
    assert set(verdicts(*readings)) == {Verdict.BUSY}


def test_every_stillness_is_excused_once() -> None:
    """A machine that sleeps again, after the work has moved."""
    asleep = [*every_second(WORKING, 3), *every_second(WORKING, 4, start_s=32.0)]
    again = [replace(each, at_s=each.at_s + 60.0, counter=6) for each in asleep]
    assert set(verdicts(*asleep, *again)) == {Verdict.BUSY}


def test_a_reading_is_late_only_after_it_was_due() -> None:
    """Whoever asked in vain meanwhile moved that."""
    memory = follow(*every_second(WORKING, 3))[-1].memory
    after_a_gap = replace(WORKING, at_s=5.0)
    assert judge(memory, after_a_gap, period_s=PERIOD_S).still_s == 0.0
    assert judge(replace(memory, due_s=5.0), after_a_gap, period_s=PERIOD_S).still_s == 5.0


def test_idle_time_is_no_stillness() -> None:
    readings = [*every_second(IDLE, 60), *every_second(WORKING, 4, start_s=60.0)]
    assert verdicts(*readings) == [Verdict.IDLE] * 60 + [Verdict.BUSY] * 4


def test_idle_and_unknown_want_a_canary() -> None:
    assert follow(IDLE)[0].canary_wanted
    unknown = follow(replace(WORKING, counter=None))[0]
    assert (unknown.verdict, unknown.canary_wanted) == (Verdict.UNKNOWN, True)


def test_waiting_in_a_dependencys_queue_never_stalls_nor_counts_afterwards() -> None:
    queued = replace(WORKING, waiting_for="comfyui")
    readings = [*every_second(queued, 30), *every_second(WORKING, 4, start_s=30.0)]
    assert verdicts(*readings) == [Verdict.WAITING] * 30 + [Verdict.BUSY] * 4


def test_another_process_is_a_new_baseline() -> None:
    for other in (
        replace(WORKING, at_s=6.0, boot_id="other"),
        replace(WORKING, at_s=6.0, start_time_s=8.0),
        replace(WORKING, at_s=6.0, counter=4),
    ):
        readings = [*every_second(WORKING, 6), other, *[replace(other, at_s=7.0 + n) for n in range(3)]]
        assert verdicts(*readings)[5:] == [Verdict.STALLED, Verdict.RESTARTED] + [Verdict.BUSY] * 3


readings = st.lists(
    st.builds(
        Reading,
        at_s=st.just(0.0),
        boot_id=st.sampled_from(["a", "b"]),
        start_time_s=st.just(1.0),
        counter=st.none() | st.integers(0, 3),
        in_flight=st.integers(0, 1),
        waiting=st.integers(0, 1),
        stage=st.just("parsing"),
        stall_after_s=st.sampled_from([0.5, 2.0]),
        waiting_for=st.sampled_from(["", "", "comfyui"]),
    ),
    min_size=2,
    max_size=20,
)
gaps = st.lists(st.sampled_from([0.9, 1.0, 1.1, 1.6, 40.0]), min_size=20, max_size=20)


def at_gaps(history: Sequence[Reading], between_s: Sequence[float]) -> list[Reading]:
    moment_s = 0.0
    timed = []
    for reading, gap_s in zip(history, between_s, strict=False):
        moment_s += gap_s
        timed.append(replace(reading, at_s=moment_s))
    return timed


@given(readings, gaps)
def test_a_stall_is_always_proven(history: list[Reading], between_s: list[float]) -> None:
    """Never without work in flight and a counter still over the limit in two readings of one process, of time in which
    the reader was awake."""
    timed = at_gaps(history, between_s)
    for n, verdict in enumerate(verdicts(*timed)):
        if verdict is not Verdict.STALLED:
            continue
        last, now = timed[n - 1], timed[n]
        assert now.in_flight or now.waiting
        assert last.in_flight or last.waiting
        assert last.counter == now.counter is not None
        assert last.boot_id == now.boot_id
        assert not now.waiting_for
        assert not last.waiting_for
        since = next(
            (k + 1 for k in range(n - 1, -1, -1) if timed[k].counter != now.counter or timed[k].boot_id != now.boot_id),
            0,
        )
        awake_s = sum(min(b.at_s - a.at_s, 1.5 * PERIOD_S) for a, b in pairwise(timed[since : n + 1]))
        assert awake_s > now.stall_after_s


@given(readings, gaps, st.floats(-1e6, 1e6))
def test_only_differences_of_time_matter(history: list[Reading], between_s: list[float], shift_s: float) -> None:
    timed = [replace(reading, at_s=round(reading.at_s)) for reading in at_gaps(history, between_s)]
    shifted = [replace(reading, at_s=reading.at_s + round(shift_s)) for reading in timed]
    assert verdicts(*timed) == verdicts(*shifted)


@given(readings, gaps)
def test_canary_is_wanted_only_where_nothing_moves_it(history: list[Reading], between_s: list[float]) -> None:
    for judgement in follow(*at_gaps(history, between_s)):
        assert judgement.canary_wanted == (judgement.verdict in {Verdict.IDLE, Verdict.UNKNOWN})
        assert judgement.still_s >= 0


def test_what_only_work_changes_is_movement_though_the_counter_stands_still() -> None:
    """A cache that fills while a long prompt is read."""
    readings = [replace(WORKING, at_s=float(n), signs=(n // 3,)) for n in range(60)]
    assert set(verdicts(*readings)) == {Verdict.BUSY}
    assert [judgement.moved for judgement in follow(*readings)][:7] == [False, False, False, True, False, False, True]


def test_a_process_without_start_time_is_known_by_its_counter_alone() -> None:
    nameless = replace(WORKING, start_time_s=None)
    assert verdicts(nameless, replace(nameless, at_s=1.0, counter=6)) == [Verdict.BUSY] * 2
    assert verdicts(nameless, replace(nameless, at_s=1.0, counter=4))[-1] is Verdict.RESTARTED
    assert verdicts(WORKING, replace(nameless, at_s=1.0))[-1] is Verdict.BUSY


def test_movement_is_proven_only_within_one_process_and_by_two_counters() -> None:
    assert not follow(WORKING)[0].moved
    assert follow(WORKING, replace(WORKING, at_s=1.0, counter=6))[-1].moved
    assert not follow(WORKING, replace(WORKING, at_s=1.0, counter=6, boot_id="other"))[-1].moved
    assert not follow(replace(WORKING, counter=None), replace(WORKING, at_s=1.0))[-1].moved
