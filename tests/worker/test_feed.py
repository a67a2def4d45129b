"""Between a thread that computes and who reads its stream."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vision.types import Stage
from worker.feed import Feed, Moved
from worker.progress import Position


def at(step: int) -> Position:
    return Position(Stage.GROWING, step, 0)


def told(step: int, results: int = 0) -> Moved:
    return Moved(at(step), results)


async def read(feed: Feed[str]) -> list[Moved | str]:
    return [event async for event in feed.read()]


def ignored(_result: str) -> None:
    """Nobody asks."""


async def test_of_progress_the_newest_is_kept_and_of_results_every_one() -> None:
    feed = Feed[str](0.0, ignored)
    for step in range(5):
        feed.move(at(step))
    feed.emit("a")
    feed.emit("b")
    for step in range(5, 9):
        feed.move(at(step))
    feed.close()
    assert await read(feed) == [told(4), "a", "b", told(8, results=2)]


async def test_what_is_put_in_while_it_is_read_comes_at_once() -> None:
    feed = Feed[str](3600.0, ignored)
    reading = feed.read()
    first = asyncio.ensure_future(anext(reading))
    await asyncio.sleep(0)
    threading.Thread(target=feed.move, args=(at(1),)).start()
    assert await first == told(1)
    feed.move(at(2))
    second = asyncio.ensure_future(anext(reading))
    await asyncio.sleep(0)
    feed.move(at(3))
    threading.Thread(target=feed.emit, args=("a",)).start()
    assert await second == told(3), "a position is held back, until a result comes behind it"
    assert await anext(reading) == "a"
    feed.close()
    assert [event async for event in reading] == []


async def test_positions_are_apart() -> None:
    feed = Feed[str](0.2, ignored)
    loop, times = asyncio.get_running_loop(), []
    feed.move(at(0))
    async for _event in feed.read():
        times.append(loop.time())
        if len(times) == 3:
            feed.close()
        else:
            feed.move(at(len(times)))
    assert all(later - earlier > 0.19 for earlier, later in pairwise(times))


async def test_each_result_is_told_whether_or_not_somebody_reads() -> None:
    heard: list[str] = []
    feed = Feed[str](0.0, heard.append)
    feed.emit("a")
    feed.emit("b")
    await asyncio.sleep(0)
    assert heard == ["a", "b"]


@given(st.lists(st.one_of(st.integers(0, 9), st.sampled_from("abc"))))
def test_order_is_kept_and_between_two_results_stands_one_position_at_most(put: list[Any]) -> None:
    async def run() -> list[Moved | str]:
        feed = Feed[str](0.0, ignored)
        for item in put:
            if isinstance(item, str):
                feed.emit(item)
            else:
                feed.move(at(item))
        feed.close()
        return await read(feed)

    got = asyncio.run(run())
    assert [event for event in got if isinstance(event, str)] == [item for item in put if isinstance(item, str)]
    newest = [
        told(item, results=sum(isinstance(before, str) for before in put[:n]))
        for n, (item, after) in enumerate(pairwise([*put, "end"]))
        if isinstance(item, int) and isinstance(after, str)
    ]
    assert [event for event in got if isinstance(event, Moved)] == newest
