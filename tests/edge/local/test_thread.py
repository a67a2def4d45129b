"""The line before the local thread: who is let in, who leaves, and what stays of them."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator

import pytest
import structlog

from edge.errors import ApiError
from edge.local.findings import Engine, Ticket
from edge.local.thread import LocalThread, Work
from edge.settings import LocalVision
from tests.edge.local.engines import PATIENCE_S, ScriptedEngine

ROOM = 2
PHOTO = b"photo"


@pytest.fixture
async def held() -> AsyncIterator[tuple[LocalThread, threading.Event]]:
    """A thread that is busy until the event is set."""
    engine, gate, begun = ScriptedEngine(), threading.Event(), threading.Event()
    thread = LocalThread(LocalVision(max_waiting=ROOM), engine.load)

    def hold(_engine: Engine, _photo: bytes, _ticket: Ticket) -> bool:
        begun.set()
        return gate.wait(PATIENCE_S)

    running = asyncio.create_task(thread.run(hold, PHOTO, Ticket(), PATIENCE_S))
    assert await asyncio.to_thread(begun.wait, PATIENCE_S)
    yield thread, gate
    gate.set()
    await running
    await thread.close()


def saying(said: list[str], word: str) -> Work[None]:
    """A job that says a word."""
    return lambda _engine, _photo, _ticket: said.append(word)


async def waiting(thread: LocalThread, said: list[str], word: str) -> asyncio.Task[object]:
    """A job in line that would say a word."""
    task: asyncio.Task[object] = asyncio.create_task(thread.run(saying(said, word), PHOTO, Ticket(), PATIENCE_S))
    await asyncio.sleep(0)  # its first step puts it in line
    return task


async def test_jobs_run_in_the_order_they_came(held: tuple[LocalThread, threading.Event]) -> None:
    thread, gate = held
    said: list[str] = []
    tasks = [await waiting(thread, said, word) for word in ("first", "second")]
    gate.set()
    await asyncio.gather(*tasks)
    assert said == ["first", "second"]


async def test_the_line_is_bounded_and_those_who_leave_make_room(held: tuple[LocalThread, threading.Event]) -> None:
    thread, gate = held
    said: list[str] = []
    gone, stays = [await waiting(thread, said, word) for word in ("gone", "stays")]
    with pytest.raises(ApiError, match="BUSY"):
        await thread.run(saying(said, "refused"), PHOTO, Ticket(), PATIENCE_S)
    gone.cancel()
    await asyncio.wait({gone})
    comes = await waiting(thread, said, "comes")
    gate.set()
    await asyncio.gather(stays, comes)
    assert said == ["stays", "comes"]


async def test_nothing_is_kept_for_those_who_left(held: tuple[LocalThread, threading.Event]) -> None:
    thread, _gate = held

    class Holder:
        """Stands for a photo in memory."""

    def job(holder: Holder) -> asyncio.Task[object]:
        return asyncio.create_task(thread.run(lambda *_: holder, PHOTO, Ticket(), PATIENCE_S))

    holder = Holder()
    kept = weakref.ref(holder)
    task = job(holder)
    del holder
    await asyncio.sleep(0)
    assert kept() is not None
    task.cancel()
    await asyncio.wait({task})
    del task
    gc.collect()
    assert kept() is None, "the line holds it still"


async def test_one_that_is_too_late_is_not_begun(held: tuple[LocalThread, threading.Event]) -> None:
    thread, gate = held
    said: list[str] = []
    with pytest.raises(TimeoutError):
        await thread.run(saying(said, "late"), PHOTO, Ticket(), 0.05)
    gate.set()
    await (await waiting(thread, said, "next"))
    assert said == ["next"]


async def test_time_in_line_is_told(held: tuple[LocalThread, threading.Event]) -> None:
    thread, gate = held
    ticket = Ticket()
    task = asyncio.create_task(thread.run(lambda *_: None, PHOTO, ticket, PATIENCE_S))
    await asyncio.sleep(0)  # it is in line
    asyncio.get_running_loop().call_later(0.05, gate.set)
    await task
    queue_s = ticket.queue_s
    assert queue_s >= 0.04
    assert ticket.queue_s == queue_s, "its turn has come"


async def test_what_it_says_carries_the_ids_of_its_request() -> None:
    thread = LocalThread(LocalVision(), ScriptedEngine().load)

    def work(_engine: Engine, _photo: bytes, _ticket: Ticket) -> None:
        seen.append(structlog.contextvars.get_contextvars())

    seen: list[dict[str, object]] = []
    for name in ("first", "second"):
        with structlog.contextvars.bound_contextvars(request_id=name):
            await thread.run(work, PHOTO, Ticket(), PATIENCE_S)
    await thread.close()
    assert seen == [{"request_id": "first"}, {"request_id": "second"}]


async def test_a_refused_photo_is_let_go_of_at_once() -> None:
    """Without waiting for the collector of cycles, which heeds how many things there are and not how large."""
    thread = LocalThread(LocalVision(), ScriptedEngine().load)
    left: list[weakref.ref[set[int]]] = []

    def refuse(_engine: Engine, _photo: bytes, _ticket: Ticket) -> None:
        decoded = {1}
        left.append(weakref.ref(decoded))
        try:
            int("no number")
        except ValueError as error:
            problem = error  # a frame that knows what passed through it: a cycle
            raise ApiError("NO_FACE") from problem

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ApiError, match="NO_FACE"):
            await thread.run(refuse, PHOTO, Ticket(), PATIENCE_S)
        assert left[0]() is None
    finally:
        gc.enable()
        await thread.close()
