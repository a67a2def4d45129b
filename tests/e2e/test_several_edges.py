"""Several edges over the same workers, each a process of its own that knows nothing of the others."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import pytest

from bench.edges import overlaps, refusals
from hairmesh.client import MEASURE_ROUTE, AsyncClient, HairMeshError, RefusedError
from tests.deploy.proxy import UNLIMITED, Nginx
from tests.e2e.breakable_worker import photo
from tests.e2e.service import EVENT_TIMEOUT_S, Load, Service

ADMIN = "an-admin-token-of-sixteen-or-more"
EDGES, WORKERS = 3, 2
CALLERS = 4


@pytest.fixture
async def edges(tmp_path: Path) -> AsyncIterator[list[Service]]:
    """Every worker online at each of them; their pictures lie in one place."""
    first, *others = services = [Service(tmp_path / f"edge{number}") for number in range(EDGES)]
    for _ in range(WORKERS):
        first.add_worker()
    shared = {"admin_tokens": [ADMIN], "static": {"dir": str(tmp_path / "pictures"), "shared": True}}
    try:
        await first.start(**shared)
        for other in others:
            other.workers, other.token = first.workers, first.token
        await asyncio.gather(*(other.start_edge(**shared) for other in others))
        for service in services:
            service.client.headers["Authorization"] = f"Bearer {ADMIN}"
        yield services
    finally:
        await asyncio.gather(*(service.stop() for service in services))


async def test_one_of_two_edges_is_killed_behind_nginx_and_fast_calls_end_well(
    edges: list[Service], tmp_path: Path
) -> None:
    """Our client sees no error. Other clients see one each at most, for the call that was inside, and it says when.

    Every edge is killed once, and is back before the next one is.
    """
    addresses = [edge.url.removeprefix("http://") for edge in edges[:2]]
    async with Nginx(tmp_path / "nginx", *addresses, changes=UNLIMITED) as nginx:
        front = edges[2]  # of which nothing but its client is used: it asks nginx
        await front.client.aclose()
        async with (
            nginx.client() as front.client,
            Steady(nginx, clients=CALLERS) as ours,
            Load(front, clients=CALLERS) as others,
        ):
            for killed in edges[:2]:
                await asyncio.gather(ours.more(CALLERS), others.more(CALLERS))
                await killed.edge.end(signal.SIGKILL)
                await asyncio.gather(ours.more(2 * CALLERS), others.more(2 * CALLERS))
                await killed.edge.start()
                await killed.edge.event("edge_ready")
                await killed.until_online(WORKERS)
    assert len(others.failed) <= 2 * CALLERS
    for answer in others.failed:
        told = (answer.http_status, answer.code, answer.reason, answer.retry_after, answer.data["details"])
        assert told == (503, 1007, "EDGE_FAILED", "1", {"retry_after_s": 1})
    assert set(ours.waited_for) <= {"EDGE_FAILED", "BUSY"}
    assert others.failed or ours.waited_for, "calls were inside as an edge was killed"
    assert [overlaps(worker.records) for worker in edges[0].workers] == [0] * WORKERS


class Steady:
    """Programs with our client that call all the time, and look at the picture each time; what one raises ends all."""

    def __init__(self, nginx: Nginx, *, clients: int) -> None:
        self.waited_for: list[str] = []
        """Why a call was made once more."""
        self._client = AsyncClient(nginx.url, authority=nginx.authority)
        self._clients = clients
        self._answered = 0
        self._news = asyncio.Condition()
        self._stopping = False
        self._group = asyncio.TaskGroup()

    async def more(self, count: int) -> None:
        """Until so many more calls have ended well."""
        wanted = self._answered + count
        async with asyncio.timeout(EVENT_TIMEOUT_S), self._news:
            await self._news.wait_for(lambda: self._answered >= wanted)

    async def __aenter__(self) -> Steady:
        await self._client.__aenter__()
        await self._group.__aenter__()
        for _ in range(self._clients):
            self._group.create_task(self._call())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = True
        try:
            await self._group.__aexit__(kind, error, trace)
        finally:
            await self._client.aclose()

    async def _call(self) -> None:
        while not self._stopping:
            answer = await self._client.measure(photo(seconds=0.05), on_wait=self._waits)
            (picture,) = answer.pictures.values()
            assert await self._client.picture(urlsplit(picture).path, on_wait=self._waits)
            async with self._news:
                self._answered += 1
                self._news.notify_all()

    def _waits(self, error: HairMeshError, _pause_s: float) -> None:
        self.waited_for.append(error.reason if isinstance(error, RefusedError) else type(error).__name__)


async def test_they_share_slots_pictures_and_nothing_else(edges: list[Service]) -> None:
    """One story, since starting takes longest."""
    await _no_slot_is_taken_twice(edges)
    await _each_hears_of_the_others_calls_and_waits(edges)
    await _a_picture_of_one_is_shown_and_removed_by_another(edges)
    await _each_tells_its_own_truth(edges)


async def _no_slot_is_taken_twice(edges: list[Service]) -> None:
    """More clients at each edge than there are workers: every call is answered, one at a time on each worker."""
    async with Load(edges[0], clients=3) as one, Load(edges[1], clients=3) as two, Load(edges[2], clients=3) as three:
        await asyncio.gather(*(load.more(10) for load in (one, two, three)))
    assert [load.failed for load in (one, two, three)] == [[], [], []]
    assert [overlaps(worker.records) for worker in edges[0].workers] == [0] * WORKERS


async def _each_hears_of_the_others_calls_and_waits(edges: list[Service]) -> None:
    """While the first has both slots the second knows who is busy, and sends nothing until one is free."""
    workers, (holder, waiter, _other) = edges[0].workers, edges
    for worker in workers:
        worker.forget()
    known = [len(worker.records) for worker in workers]
    holding = [asyncio.create_task(holder.measure(photo(seconds=60))) for _ in workers]
    await asyncio.gather(*(worker.event("computing") for worker in workers))
    await waiter.until("/admin/pool", lambda answer: all(each["stage"] for each in answer.json()["workers"]))
    waiting = asyncio.create_task(waiter.measure(photo()))
    await waiter.until("/admin/pool", lambda answer: answer.json()["queue"]["waiting_fast"] == 1)
    holding[0].cancel()
    assert (await waiting).code == 0
    holding[1].cancel()
    await asyncio.gather(*holding, return_exceptions=True)
    refused = sum(refusals(worker.records[start:]) for worker, start in zip(workers, known, strict=True))
    assert refused == 0, "it was never sent to a slot that the first had"


async def _a_picture_of_one_is_shown_and_removed_by_another(edges: list[Service]) -> None:
    form, named = {"image": ("p.jpg", photo())}, {"X-Request-ID": "shown-everywhere"}
    made = await edges[0].client.post(MEASURE_ROUTE, files=form, headers=named)
    path = urlsplit(made.json()["data"]["annotated_image_url"]).path
    shown = [await edge.client.get(path) for edge in edges]
    assert [answer.status_code for answer in shown] == [200] * EDGES
    assert len({answer.content for answer in shown}) == 1
    removed = await edges[1].client.delete("/api/v1/requests/shown-everywhere/pictures")
    assert removed.json()["data"] == {"removed": 1}
    gone = [await edge.client.get(path) for edge in edges]
    assert [answer.status_code for answer in gone] == [404] * EDGES


async def _each_tells_its_own_truth(edges: list[Service]) -> None:
    """One is in a drill, one has been left a single worker: the others' alerts do not fire for it."""
    drilled, smaller, untouched = edges
    headers = {"X-Internal-Token": drilled.token}
    assert (await drilled.client.post("/monitor/fault", json={"enabled": True}, headers=headers)).status_code == 200
    smaller.change_edge(workers=[smaller.workers[0].address])
    await smaller.until_online(1)
    told = [await edge.monitor() for edge in edges]
    assert [answer.status_code for answer in told] == [503, 200, 200]
    assert [answer.json()["workers_total"] for answer in told] == [WORKERS, 1, WORKERS]
    assert (await untouched.measure(photo())).code == 0
