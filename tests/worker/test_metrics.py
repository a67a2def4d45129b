"""What a worker shows to Prometheus, as it is read from its port."""

from __future__ import annotations

from typing import Any

import pytest
from grpc import aio
from hair.worker.v1 import worker_service_pb2 as pb

from tests.fakes.scrape import Scrape
from tests.worker.fakes import HOLDS, NO_FACE, OK, FakePipeline
from tests.worker.harness import Client, running
from worker.metrics import TABLE
from worker.server import CannotListenError, Worker
from worker.settings import SettingsError

PORT = {"listen": "127.0.0.1:0"}
CALLS = "hair.analysis.v1.AnalyzeService"


def handled(found: Scrape, method: str, code: str, service: str = CALLS) -> float | None:
    return found.value("grpc_server_handled_total", grpc_service=service, grpc_method=method, grpc_code=code)


async def read(worker: Worker) -> Scrape:
    return await Scrape.of_port(worker.metrics_port)


async def test_calls_are_counted_by_how_they_ended_and_their_stages_timed(pipeline: FakePipeline) -> None:
    async with running(pipeline.load, metrics=PORT) as (worker, client):
        await client.measure(OK)
        with pytest.raises(aio.AioRpcError):
            await client.measure(NO_FACE)
        async for _ in client.grow_styles(OK):
            pass
        found = await read(worker)
    assert handled(found, "Measure", "OK") == 1
    assert handled(found, "Measure", "FAILED_PRECONDITION") == 1
    assert handled(found, "GrowStyles", "OK") == 1
    assert found.value("grpc_server_handling_seconds_count", grpc_service=CALLS, grpc_method="Measure") == 2
    assert found.value("hairmesh_stage_seconds_count", stage="parsing") == 3


async def test_a_busy_slot_shows_while_it_is_busy(pipeline: FakePipeline) -> None:
    async with running(pipeline.load, metrics=PORT) as (worker, client):
        call = client.measure(HOLDS)
        await client.until_slot(pb.SLOT_STATE_BUSY)
        assert (await read(worker)).value("hairmesh_slot_busy") == 1
        pipeline.release.set()
        await call
        assert (await read(worker)).value("hairmesh_slot_busy") == 0


async def test_who_has_no_password_is_counted_and_gives_no_names(pipeline: FakePipeline) -> None:
    async with running(pipeline.load, metrics=PORT) as (worker, client):
        stranger = Client(client.target, password="wrong")
        with pytest.raises(aio.AioRpcError):
            await stranger.measure(OK)
        invented: Any = stranger.channel.unary_unary("/SENTINEL.Service/Method")
        for _ in range(2):
            with pytest.raises(aio.AioRpcError):
                await invented(b"")
        await stranger.channel.close()
        found = await read(worker)
    assert handled(found, "Measure", "UNAUTHENTICATED") == 1
    assert handled(found, "other", "UNAUTHENTICATED", "other") == 2
    assert "SENTINEL" not in found.text


async def test_health_and_dependencies(pipeline: FakePipeline) -> None:
    down = {"name": "comfyui", "kind": "tcp", "target": "127.0.0.1:1", "required": False}
    async with running(pipeline.load, health={"min_free_gb": 0, "deps": [down]}, metrics=PORT) as (worker, client):
        await client.until(lambda status: "growth" not in status.capabilities)
        found = await read(worker)
    assert found.value("hairmesh_dependency_up", dep="comfyui") == 0
    assert (
        found.value("hairmesh_health", check="dep/comfyui")
        == found.value("hairmesh_health", check="capability/growth")
        == 0
    )
    assert found.value("hairmesh_health", check="overall") == found.value("hairmesh_health", check="liveness") == 1


async def test_every_row_of_the_table_is_shown(pipeline: FakePipeline) -> None:
    down = {"name": "llm", "kind": "tcp", "target": "127.0.0.1:1", "required": False}
    async with running(pipeline.load, health={"min_free_gb": 0, "deps": [down]}, metrics=PORT) as (worker, client):
        await client.measure(OK)
        shown = (await read(worker)).names
    for name in TABLE.keys() - {"hairmesh_certificate_expires_timestamp_seconds"}:  # of TLS: see test_tls
        assert {name, f"{name}_count"} & shown, name


async def test_without_a_port_nothing_listens_and_a_taken_one_ends_the_start(pipeline: FakePipeline) -> None:
    async with running(pipeline.load, metrics=PORT) as (worker, _client):
        taken = {"listen": f"127.0.0.1:{worker.metrics_port}"}
        with pytest.raises(CannotListenError, match=r"metrics\.listen"):
            async with running(pipeline.load, metrics=taken):
                pass
    async with running(pipeline.load) as (worker, _client):
        assert worker.metrics_port == 0


async def test_traces_without_their_packages_are_refused_at_the_start(
    pipeline: FakePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hairmesh.spans.packages_missing", lambda: True)
    with pytest.raises(SettingsError, match=r"hairmesh\[tracing\]"):
        async with running(pipeline.load, tracing={"otlp_endpoint": "http://127.0.0.1:4318"}):
            pass
