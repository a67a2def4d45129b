"""Work on bodies, a few pieces in each round of the loop."""

from __future__ import annotations

import asyncio
from collections import Counter

from edge.turns import PER_ROUND, Turns


class Rounds:
    """Counts the rounds of the loop."""

    def __init__(self) -> None:
        self.number = 0
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            self.number += 1
            await asyncio.sleep(0)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


async def test_a_round_has_room_for_a_few_pieces_and_the_others_follow_in_order() -> None:
    turns, rounds = Turns(), Rounds()
    seen: list[tuple[int, int]] = []

    async def work(name: int) -> None:
        for _ in range(3):
            await turns.take()
            seen.append((rounds.number, name))

    await asyncio.gather(*(work(name) for name in range(5 * PER_ROUND)))
    await rounds.stop()
    assert max(Counter(number for number, _ in seen).values()) <= PER_ROUND
    first = [name for _, name in seen[: 5 * PER_ROUND]]
    assert len(set(first[PER_ROUND:])) == len(first) - PER_ROUND  # nobody twice before all others had theirs


async def test_one_alone_never_waits() -> None:
    turns, rounds = Turns(), Rounds()
    await asyncio.sleep(0)
    before = rounds.number
    for _ in range(PER_ROUND):
        await turns.take()
    assert rounds.number == before
    await rounds.stop()


async def test_what_counts_as_several_pieces_leaves_room_for_as_many_fewer() -> None:
    turns, rounds = Turns(), Rounds()
    seen: Counter[int] = Counter()

    async def work() -> None:
        await turns.take(PER_ROUND // 2)
        seen[rounds.number] += 1

    await asyncio.gather(*(work() for _ in range(20)), asyncio.wait_for(turns.take(PER_ROUND * 10), 10))
    await rounds.stop()
    assert sum(seen.values()) == 20
    assert max(seen.values()) == 2


async def test_who_gives_up_takes_nobody_elses_turn() -> None:
    turns = Turns()
    waiting = [asyncio.create_task(turns.take()) for _ in range(4 * PER_ROUND)]
    await asyncio.sleep(0)
    for task in waiting[PER_ROUND:-1]:
        task.cancel()
    await asyncio.wait_for(waiting[-1], 60)
    await asyncio.gather(*waiting, return_exceptions=True)
    for _ in range(3 * PER_ROUND):  # and all goes on
        await asyncio.wait_for(turns.take(), 60)
