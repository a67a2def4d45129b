"""That the process stood still is known from the clock alone, and before anything else is heard."""

from __future__ import annotations

import time

from edge.pool.config import SLEPT_S
from edge.upstream.heart import BEAT_S, Heart


async def test_a_standstill_is_told_once_by_whoever_looks_first() -> None:
    told: list[tuple[float, float]] = []
    heart = Heart(lambda now_s, slept_s: told.append((now_s, slept_s)))
    before_s = time.monotonic()
    heart.beat()
    woke_s = time.monotonic() + 30.0
    heart.look(woke_s)
    heart.look(woke_s + 0.1)
    ((now_s, slept_s),) = told
    assert now_s == woke_s
    assert 30.0 - BEAT_S <= slept_s <= woke_s - before_s - BEAT_S, "as much of it as is certain"
    heart.stop()


async def test_a_beat_that_is_a_little_late_is_none() -> None:
    told: list[float] = []
    heart = Heart(lambda _, slept_s: told.append(slept_s))
    heart.beat()
    now_s = time.monotonic()
    heart.look(now_s + BEAT_S)
    heart.look(now_s + BEAT_S + SLEPT_S - 0.1)
    assert told == []
    heart.stop()


def test_before_its_first_beat_nothing_is_late() -> None:
    told: list[float] = []
    Heart(lambda _, slept_s: told.append(slept_s)).look(time.monotonic())
    assert told == []
