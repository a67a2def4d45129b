"""What happens as often as strangers like is told in few lines, and none of it is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from hairmesh.flood import MAX_TOLD, Flood
from tests.fakes.timers import Timers

PERIOD_S = 60.0


class Told(list[tuple[int, Mapping[str, list[str]]]]):
    """The lines."""

    def say(self, count: int, seen: Mapping[str, list[str]]) -> None:
        self.append((count, seen))


@pytest.fixture
def timers() -> Timers:
    return Timers()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def flood(timers: Timers, told: Told) -> Flood:
    return Flood(told.say, period_s=PERIOD_S, clock=lambda: timers.now_s, later=timers.later)


def test_the_first_is_told_at_once_and_the_others_together_though_nobody_comes_any_more(
    flood: Flood, timers: Timers, told: Told
) -> None:
    for number in range(3):
        flood.note(of=f"client {number}")
        timers.go(1.0)
    assert told == [(1, {"of": ["client 0"]})]
    timers.go(PERIOD_S - 3.5)
    assert len(told) == 1
    timers.go(0.5)
    assert told[1:] == [(2, {"of": ["client 1", "client 2"]})]


def test_it_goes_on_once_in_a_while_and_begins_anew_after_a_quiet_time(
    flood: Flood, timers: Timers, told: Told
) -> None:
    for _ in range(300):
        flood.note()
        timers.go(1.0)
    assert [count for count, _ in told] == [1, 59, 60, 60, 60, 60]
    timers.go(2 * PERIOD_S)
    assert sum(count for count, _ in told) == 300, "none is forgotten"
    before = len(told)
    flood.note()
    assert [count for count, _ in told[before:]] == [1], "at once"


def test_a_flood_is_one_timer_and_a_quiet_time_none(flood: Flood, timers: Timers) -> None:
    for _ in range(1000):
        flood.note()
    assert timers.waiting == 1
    timers.go(PERIOD_S)
    timers.go(PERIOD_S)
    assert timers.waiting == 0


def test_no_line_names_more_than_ten(flood: Flood, timers: Timers, told: Told) -> None:
    for number in range(100):
        flood.note(of=f"client {number}")
    timers.go(PERIOD_S)
    assert [(count, len(seen["of"])) for count, seen in told] == [(1, 1), (99, MAX_TOLD)]


def test_what_waits_is_told_at_the_end_and_only_once(flood: Flood, timers: Timers, told: Told) -> None:
    flood.note()
    flood.note(of="client")
    flood.close()
    assert told == [(1, {}), (1, {"of": ["client"]})]
    flood.close()
    timers.go(2 * PERIOD_S)
    assert len(told) == 2


async def test_an_event_loop_calls_back() -> None:
    heard: asyncio.Queue[int] = asyncio.Queue()
    flood = Flood(lambda count, _: heard.put_nowait(count), period_s=0.01, clock=asyncio.get_running_loop().time)
    flood.note()
    flood.note()
    async with asyncio.timeout(60):
        assert [await heard.get(), await heard.get()] == [1, 1]
