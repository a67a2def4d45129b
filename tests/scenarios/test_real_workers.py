"""The edge's driver over real workers, which compute in real threads; only their pipeline is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from structlog.testing import capture_logs

from edge.calls import CallFailedError
from edge.upstream.driver import Driver
from tests.edge.upstream.conftest import MakeDriver, until
from tests.scenarios.common import OFTEN, call, ends, taken_out, worker_of
from tests.worker.fakes import FROZEN, HOLDS, LOSES_ACCELERATOR, NO_FACE, OK, FakePipeline
from tests.worker.harness import PASSWORD, released, running
from vision.types import Progress


@asynccontextmanager
async def real_workers(*pipelines: FakePipeline, **changes: Any) -> AsyncIterator[list[str]]:
    """Warm workers with these pipelines: their addresses."""
    async with AsyncExitStack() as stack:
        addresses = []
        for pipeline in pipelines:
            stack.enter_context(released(pipeline))
            worker, _ = await stack.enter_async_context(running(pipeline.load, **changes))
            addresses.append(worker.address)
        yield addresses


class LosesAccelerator(FakePipeline):
    """Its accelerator is gone with the first call."""

    def _act(self, data: bytes, progress: Progress) -> None:
        super()._act(LOSES_ACCELERATOR, progress)


async def answered(mesh: Driver, photo: bytes, client: str = "") -> str:
    """`ok`, or why not."""
    try:
        await mesh.call(call(photo=photo, client=client))
    except CallFailedError as error:
        return error.reason
    return "ok"


async def test_12_b70_fifty_jobs_wait_for_one_worker_that_computes_and_no_probe_waits_with_them(
    driver: MakeDriver,
) -> None:
    pipeline = FakePipeline()
    async with real_workers(pipeline) as (address,):
        mesh = await driver(address, password=PASSWORD, health=OFTEN)
        with capture_logs() as lines:
            crowd = [asyncio.create_task(mesh.call(call(photo=HOLDS))) for _ in range(50)]
            await until(lambda: mesh.snapshot().waiting_fast == 49)
            await asyncio.sleep(2)  # some forty probes, while the thread computes
            assert worker_of(mesh, address).state == "SERVING"
            pipeline.release.set()
            results = await ends(crowd)
        assert [outcome.attempts for outcome in results] == [1] * 50
        assert pipeline.most_computing == 1
        assert taken_out(lines) == []
        await mesh.close()


async def test_13_a_frozen_compute_thread_takes_its_worker_out_and_the_rest_carries_on(driver: MakeDriver) -> None:
    stall = {"health": {"min_free_gb": 0, "stall_after_seconds": {"parsing": 0.3}}}
    pipelines = FakePipeline(), FakePipeline()
    async with real_workers(*pipelines, **stall) as addresses:
        mesh = await driver(*addresses, password=PASSWORD)
        frozen = asyncio.create_task(mesh.call(call(photo=FROZEN)))
        await until(lambda: any(each.cause == "stalled" for each in mesh.snapshot().endpoints))
        assert mesh.online().healthy == 1
        assert await answered(mesh, OK) == "ok"
        for pipeline in pipelines:
            pipeline.release.set()
        await ends([frozen])
        await until(lambda: mesh.online().healthy == 2)
        await mesh.close()


async def test_14_b64_a_lost_accelerator_costs_one_retry_and_never_comes_back(driver: MakeDriver) -> None:
    lost = LosesAccelerator()
    async with real_workers(lost, FakePipeline()) as addresses:
        mesh = await driver(*addresses, password=PASSWORD, health=OFTEN)
        outcomes = [await mesh.call(call(photo=OK)) for _ in range(2)]
        assert {outcome.worker for outcome in outcomes} == {addresses[1]}
        assert 2 in {outcome.attempts for outcome in outcomes}, "tried elsewhere once"
        await until(lambda: worker_of(mesh, addresses[0]).cause == "accelerator")
        lost.canary_error = None  # it seems to answer again, which proves nothing
        assert {(await mesh.call(call(photo=OK))).worker for _ in range(20)} == {addresses[1]}
        assert worker_of(mesh, addresses[0]).cause == "accelerator"
        await mesh.close()


async def test_30_models_that_find_nothing_any_more_are_found_out_under_full_load(driver: MakeDriver) -> None:
    """Every call is "answered", each with the photo's fault; only the canary between two calls can tell."""
    broken = FakePipeline()
    async with real_workers(broken, FakePipeline()) as addresses:
        mesh = await driver(*addresses, password=PASSWORD)
        broken.canary_error = ValueError("the known picture has no face any more")
        asked = 0
        while mesh.online().healthy == 2:
            assert await answered(mesh, NO_FACE) in {"NO_FACE", "WORKER_FAILED"}
            asked += 1
            assert asked < 40, "so many refusals in a row force the canary, whatever the time"
        assert worker_of(mesh, addresses[0]).cause == "models"
        assert await answered(mesh, OK) == "ok"
        await mesh.close()
