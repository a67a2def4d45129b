"""What is not a worker's fault costs it nothing, over real sockets."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from hair.analysis.v1 import analyze_service_pb2_grpc, measure_pb2
from structlog.testing import capture_logs

from edge.pool.config import HealthCheckConfig
from hairmesh import wire
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import Answer, FakeWorker, Refuse
from tests.scenarios.common import OFTEN, call, ends, taken_out, worker_of
from tests.scenarios.conftest import Edge, MakeEdge

DAMAGED = Refuse(grpc.StatusCode.INVALID_ARGUMENT, "DAMAGED_IMAGE", {"format": "JPEG"})
NO_FACE = Refuse(grpc.StatusCode.FAILED_PRECONDITION, "NO_FACE")


async def _wrong_passwords(edge: Edge, worker: FakeWorker) -> None:
    """Ten at the alert drill, ten at the worker itself."""
    for _ in range(10):
        drill = await edge.rest.client.post(
            "/monitor/fault", json={"enabled": True}, headers={"X-Internal-Token": "guess"}
        )
        assert drill.status_code == 401
    async with grpc.aio.insecure_channel(worker.address) as channel:
        stub = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
        for _ in range(10):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Measure(measure_pb2.MeasureRequest(), metadata=((wire.TOKEN_KEY, "guess"),))
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def _clients_that_leave(edge: Edge, worker: FakeWorker) -> None:
    for _ in range(10):
        hold = worker.hold()
        leaving = asyncio.create_task(edge.rest.measure())
        await hold.started.wait()
        leaving.cancel()
        await ends([leaving])
        hold.release.set()
        await until(lambda: not worker.computing)


async def test_b68_ten_of_each_in_a_row_and_no_strike(workers: MakeWorkers, edge: MakeEdge) -> None:
    (worker,) = await workers(1)
    running = await edge(worker.address, health=OFTEN)
    with capture_logs() as lines:
        for refusal, code in ((DAMAGED, 1005), (NO_FACE, 1001)):
            worker.script.extend([refusal] * 10)
            for _ in range(10):
                response = await running.rest.measure()
                assert (response.status_code, response.json()["code"]) == (400, code)
        await _wrong_passwords(running, worker)
        await _clients_that_leave(running, worker)
        assert (await running.rest.measure()).status_code == 200
        impatient = worker.hold()
        late = await running.rest.measure(headers={"X-Request-Timeout-Ms": "200"})
        assert late.status_code == 504
        impatient.release.set()
        assert (await running.rest.measure()).status_code == 200
    assert taken_out(lines) == []
    assert worker_of(running.driver, worker.address).state == "SERVING"


async def test_b71_a_slow_spell_on_every_worker_takes_nobody_out(workers: MakeWorkers, driver: MakeDriver) -> None:
    """Calls and probes alike take two seconds; the probe's three are not over, the attempt's sixty even less."""
    pool = await workers(3)
    for worker in pool:
        worker.default = Answer(after_s=2.0)
        worker.probe_script.extend([True, 2.0, 2.0])
    mesh = await driver(*(worker.address for worker in pool), health=HealthCheckConfig(interval_seconds=0.1))
    with capture_logs() as lines:
        results = await ends([asyncio.create_task(mesh.call(call(str(number)))) for number in range(6)])
        for worker in pool:
            worker.default = Answer()
        results += await ends([asyncio.create_task(mesh.call(call(str(number)))) for number in range(30)])
    assert [outcome.attempts for outcome in results] == [1] * 36
    assert taken_out(lines) == []
    assert mesh.online().healthy == 3


async def test_b39_a_body_above_the_edges_limit_is_413_and_reaches_nobody(workers: MakeWorkers, edge: MakeEdge) -> None:
    (worker,) = await workers(1)
    rest, _ = await edge(worker.address)
    response = await rest.measure(bytes(5_000_000))
    assert (response.status_code, response.json()["code"]) == (413, 1004)
    assert worker.seen == []
