"""A worker before a diffusion server: real backend, real protocol; only the models are scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from grpc import aio
from hair.analysis.v1 import growth_pb2
from hair.worker.v1 import worker_service_pb2 as pb

from tests.fakes.comfyui_server import ComfyUiServer
from tests.vision.growth.comfyui_jobs import QUICK as UNHURRIED
from tests.vision.growth.comfyui_jobs import growth, job, nothing_left, sizes, until
from tests.worker.fakes import OK, FakePipeline
from tests.worker.harness import QUICK, Client, kinds, refused, running, whole
from tests.worker.scripted import PROOF, facts
from tests.worker.test_growth_calls import TRIANGLE
from vision.calls import EmitRegion, GrowRegionOptions, GrowthSummary, RegionGrowth
from vision.growth.backend import GrowthUnavailableError
from vision.growth.comfyui_vigil import Patience
from vision.png import encode_png
from vision.types import Progress, Stage
from worker.server import Worker
from worker.thresholds import Thresholds

PATIENT = replace(QUICK, close_s=30.0)
Stream = aio.UnaryStreamCall[Any, growth_pb2.GrowRegionResponse]


class DiffusionPipeline(FakePipeline):
    """Grows a region of its own by a diffusion server."""

    def __init__(self, url: str, patience: Patience = UNHURRIED) -> None:
        super().__init__()
        self._backend = growth(url, patience)

    def grow_region(
        self, data: bytes, options: GrowRegionOptions, progress: Progress, emit: EmitRegion
    ) -> GrowthSummary:
        progress.enter(Stage.DECODE)
        work = job(timeout_s=options.timeout_s)
        marked = encode_png(work.scene.rgb)
        try:
            emit(RegionGrowth(marked, encode_png(self._backend.grow(work, progress)), "", 9.0, None, PROOF))
        except GrowthUnavailableError as error:
            emit(RegionGrowth(marked, None, error.reason, 9.0, None, None))
        return GrowthSummary(facts(), 7, self._backend.name, ())

    def close(self) -> None:
        self._backend.close()
        super().close()


@pytest.fixture
def server() -> Iterator[ComfyUiServer]:
    with ComfyUiServer() as fake:
        try:
            yield fake
        finally:
            fake.engine.release.set()


@asynccontextmanager
async def before(
    server: ComfyUiServer, patience: Patience = UNHURRIED, **changes: Any
) -> AsyncIterator[tuple[Worker, Client]]:
    async with running(DiffusionPipeline(server.url, patience).load, **changes) as (worker, client):
        yield worker, client


async def reached(
    server: ComfyUiServer, node: str, client: Client
) -> aio.UnaryStreamCall[Any, growth_pb2.GrowRegionResponse]:
    """A call whose job stands still in that node of its workflow."""
    server.engine.hold = node
    stream = client.grow_region(OK, region=TRIANGLE)
    assert await asyncio.to_thread(server.engine.reached.wait, 30)
    return stream


async def test_a_region_is_grown_by_the_server_and_nothing_stays_there(server: ComfyUiServer) -> None:
    async with before(server) as (_worker, client):
        messages = await whole(client.grow_region(OK, region=TRIANGLE))
        assert kinds(messages) == ["result", "summary"]
        assert messages[-1].summary.backend == "comfyui"
        (result,) = (message.result for message in messages if message.HasField("result"))
        assert result.grown_image.width_px == 120
    assert nothing_left(server)


async def test_steps_of_the_server_are_steps_of_the_call(server: ComfyUiServer) -> None:
    async with before(server) as (_worker, client):
        stream = await reached(server, "VAEDecode", client)
        status = await client.until(lambda status: status.slot.call.stage == "diffusion")
        assert status.slot.call.waiting_for == ""
        server.engine.release.set()
        messages = await whole(stream)
        steps = [at.progress for at in messages if at.HasField("progress") and at.progress.stage == "diffusion"]
        assert steps
        assert steps[-1].total >= steps[-1].step > 1


async def test_a_client_that_leaves_takes_its_job_along(server: ComfyUiServer) -> None:
    async with before(server) as (_worker, client):
        stream = await reached(server, "KSampler", client)
        stream.cancel()
        server.engine.release.set()
        await client.until_slot(pb.SLOT_STATE_FREE)
        await asyncio.to_thread(until, lambda: nothing_left(server))
        assert (await client.status()).state == pb.SERVING_STATE_SERVING


async def test_a_worker_that_ends_takes_its_job_along(server: ComfyUiServer) -> None:
    async with before(server, drain_grace_seconds=0.1, thresholds=PATIENT) as (worker, client):
        call = asyncio.ensure_future(refused(whole(await reached(server, "KSampler", client))))
        stopping = asyncio.ensure_future(worker.stop())
        assert (await call)[1].reason == "DRAINING"
        await asyncio.to_thread(until, lambda: "/interrupt" in {path for path, _body in server.asked})
        server.engine.release.set()
        assert await stopping
    assert nothing_left(server)


async def test_a_server_that_goes_costs_growth_and_comes_back_with_it(server: ComfyUiServer) -> None:
    async with before(server) as (_worker, client):
        server.stop()
        messages = await whole(client.grow_region(OK, region=TRIANGLE))
        assert [message.result.grown_reason for message in messages if message.HasField("result")] == [
            "DIFFUSION_UNAVAILABLE"
        ]
        status = await client.until(lambda status: list(status.capabilities) == ["measure"])
        assert status.state == pb.SERVING_STATE_SERVING
        await client.measure(OK)
        server.start()
        assert kinds(await whole(client.grow_region(OK, region=TRIANGLE))) == ["result", "summary"]
        await client.until(lambda status: list(status.capabilities) == ["measure", "growth"])


async def test_b75_a_server_that_stands_costs_growth_until_it_moves_and_its_callers_no_answer(
    server: ComfyUiServer,
) -> None:
    """By a call whose time ends before any patience with the server does; four looks are left to answer it in."""
    server.faults.deaf = True
    async with before(server, replace(UNHURRIED, late_stall_s=1.0, look_s=1.0)) as (_worker, client):
        server.engine.hold = "KSampler"
        messages = await whole(client.grow_region(OK, region=TRIANGLE, timeout_s=9.0))
        (result,) = (message.result for message in messages if message.HasField("result"))
        assert result.grown_reason == "DIFFUSION_STALLED"
        assert result.marked_image.data
        status = await client.until(lambda status: list(status.capabilities) == ["measure"])
        assert status.state == pb.SERVING_STATE_SERVING
        server.engine.release.set()
        assert kinds(await whole(client.grow_region(OK, region=TRIANGLE))) == ["result", "summary"]
        await client.until(lambda status: list(status.capabilities) == ["measure", "growth"])


async def test_a_worker_that_ends_leaves_no_face_with_a_job_that_cannot_be_interrupted(server: ComfyUiServer) -> None:
    """With the times that workers have."""
    server.faults.deaf = True
    async with before(server, Patience(), drain_grace_seconds=0.1, thresholds=Thresholds()) as (worker, client):
        call = asyncio.ensure_future(refused(whole(await reached(server, "KSampler", client))))
        assert await worker.stop(), "tidying ends before the process would be cut off"
        assert (await call)[1].reason == "DRAINING"
        assert server.engine.running
        assert sizes(server) == {(1, 1)}


async def test_b76_a_workflow_that_is_refused_costs_growth_and_no_health(server: ComfyUiServer) -> None:
    async with before(server) as (_worker, client):
        server.faults.replaced["/prompt"] = (400, b'{"error": {"type": "invalid_prompt"}, "node_errors": {}}')
        messages = await whole(client.grow_region(OK, region=TRIANGLE))
        (result,) = (message.result for message in messages if message.HasField("result"))
        assert result.grown_reason == "DIFFUSION_UNAVAILABLE"
        status = await client.until(lambda status: list(status.capabilities) == ["measure"])
        assert status.state == pb.SERVING_STATE_SERVING
        await client.measure(OK)
    assert nothing_left(server)
