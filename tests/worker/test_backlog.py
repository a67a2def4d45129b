"""What callers have not taken, and when the last answer is on its way."""

from __future__ import annotations

import asyncio

from worker.backlog import Backlog


def is_empty(backlog: Backlog) -> bool:
    waiting = backlog.wait_empty()
    try:
        waiting.send(None)
    except StopIteration:
        return True
    waiting.close()
    return False


async def test_what_waits_is_the_sum_over_all_calls_until_their_rpc_ends() -> None:
    backlog = Backlog()
    one, other = backlog.begin(), backlog.begin()
    one.unread_bytes, other.unread_bytes = 5, 7
    assert backlog.unread_bytes == 12
    backlog.end(one)
    assert backlog.unread_bytes == 7
    backlog.end(one)
    assert not is_empty(backlog)
    backlog.end(other)
    assert backlog.unread_bytes == 0
    assert is_empty(backlog)


async def test_a_call_without_an_answer_is_not_waited_for_and_counts_until_it_ends() -> None:
    backlog = Backlog()
    call = backlog.begin()
    call.unread_bytes = 9
    backlog.refuse(call)
    assert is_empty(backlog)
    assert backlog.unread_bytes == 9
    backlog.end(call)
    assert backlog.unread_bytes == 0


async def test_who_waits_hears_of_the_last_end() -> None:
    backlog = Backlog()
    one, other = backlog.begin(), backlog.begin()
    waiting = asyncio.ensure_future(backlog.wait_empty())
    backlog.end(one)
    await asyncio.sleep(0)
    assert not waiting.done()
    backlog.end(other)
    await waiting
