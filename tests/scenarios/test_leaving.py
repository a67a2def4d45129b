"""Clients that leave, over real sockets."""

from __future__ import annotations

import asyncio

from edge.pool.config import DispatchConfig
from edge.upstream.driver import Driver
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import FakeWorker
from tests.scenarios.common import SELDOM, call, ends
from tests.scenarios.conftest import MakeEdge

REUSED_WITHIN_S = 1.0


async def turnarounds(worker: FakeWorker, gaps_s: list[float]) -> None:
    """Note for how long its slot is free between two calls, for ever."""
    loop = asyncio.get_running_loop()
    freed_s: float | None = None
    async for _ in worker.changes():
        if not worker.computing:
            freed_s = freed_s or loop.time()
        elif freed_s is not None:
            gaps_s.append(loop.time() - freed_s)
            freed_s = None


async def test_31_a_hundred_clients_of_three_edges_leave_and_every_slot_is_used_again_at_once(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    """No probe comes: only the workers' own status can tell an edge that an abandoned thread has ended."""
    pool = await workers(3)
    addresses = [worker.address for worker in pool]
    edges = [await driver(*addresses, health=SELDOM, dispatch=DispatchConfig(max_in_flight=200)) for _ in range(3)]
    gaps_s: list[list[float]] = [[] for _ in pool]
    noting = [asyncio.create_task(turnarounds(*pair)) for pair in zip(pool, gaps_s, strict=True)]
    for _ in range(5):
        await _storm(pool, edges)
    for task in noting:
        task.cancel()
    await ends(noting)
    assert [worker.computing_most for worker in pool] == [1, 1, 1]
    assert [edge.online().healthy for edge in edges] == [3, 3, 3]
    for gaps in gaps_s:  # before the storm, after it, before the next one …
        assert min(gaps[1::2]) < REUSED_WITHIN_S, "the best of five: a busy machine may delay some"


async def _storm(pool: list[FakeWorker], edges: list[Driver]) -> None:
    """A hundred calls, three of them running; all leave; then three new ones get the three slots."""
    holds = [worker.hold() for worker in pool]
    crowd = [asyncio.create_task(edges[number % 3].call(call())) for number in range(100)]
    await asyncio.gather(*(hold.started.wait() for hold in holds))
    for each in crowd:
        each.cancel()
    assert all(isinstance(result, asyncio.CancelledError) for result in await ends(crowd))
    assert [edge.snapshot().inside for edge in edges] == [0, 0, 0]
    next_holds = [worker.hold() for worker in pool]
    following = [asyncio.create_task(edge.call(call("next"))) for edge in edges]
    await asyncio.sleep(0.1)  # status and refusals go back and forth
    assert not any(hold.started.is_set() for hold in next_holds), "no slot is used again while its thread computes"
    for hold in holds:
        hold.release.set()
    async with asyncio.timeout(60):
        await asyncio.gather(*(hold.started.wait() for hold in next_holds))
    for hold in next_holds:
        hold.release.set()
    await asyncio.gather(*following)


async def test_18_a_client_of_the_edge_leaves_and_the_worker_hears_of_it(workers: MakeWorkers, edge: MakeEdge) -> None:
    (worker,) = await workers(1)
    hold = worker.hold()
    rest, mesh = await edge(worker.address)
    leaving = asyncio.create_task(rest.measure())
    await hold.started.wait()
    leaving.cancel()
    await ends([leaving])
    await until(lambda: mesh.snapshot().endpoints[0].left_behind)
    after = worker.hold()
    next_ = asyncio.create_task(rest.measure())
    await until(lambda: mesh.snapshot().waiting_fast == 1)
    assert len(worker.seen) == 1
    hold.release.set()
    await after.started.wait()
    after.release.set()
    assert (await next_).status_code == 200
