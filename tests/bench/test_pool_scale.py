"""The pool on the bench's virtual clock, and what counts as growth."""

from __future__ import annotations

import random

from bench.pool_scale import EVENT_STEP_S, Drive, growth, pick_times_us


def test_every_endpoint_gets_a_call_and_the_next_one_waits_for_a_slot() -> None:
    drive = Drive(20)
    assert len(drive.online()) == 20
    for _ in range(21):
        drive.submit()
    assert len(drive.running) == 20
    drive.end_one(random.Random(1))
    assert len(drive.running) == 20, "the one that waited has the slot"


def test_endpoints_stay_online_for_many_probe_periods() -> None:
    drive = Drive(3)
    for _ in range(int(30 / EVENT_STEP_S)):
        drive.submit()
        drive.end_one(random.Random(1))
    assert len(drive.online()) == 3


def test_every_event_is_timed() -> None:
    times = pick_times_us(3, 50)
    assert {name: len(taken) for name, taken in times.items()} == {
        "submitted": 50,
        "ended": 50,
        "ended, others wait": 50,
    }


def test_growth_is_from_the_first_fifth_to_the_last() -> None:
    assert growth([10, 10, 99, 10, 10, 12, 12, 12, 12, 12]) == 2
    assert growth([5]) == 0
