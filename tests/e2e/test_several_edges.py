"""Several edges over the same workers, each a process of its own that knows nothing of the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bench.edges import overlaps, refusals
from hairmesh.client import MEASURE_ROUTE
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Load, Service

ADMIN = "an-admin-token-of-sixteen-or-more"
EDGES, WORKERS = 3, 2


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
