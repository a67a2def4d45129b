"""A dependency that all workers share dies, as the edge hears of it over real sockets."""

from __future__ import annotations

import asyncio

import grpc
from hair.analysis.v1 import growth_pb2
from structlog.testing import capture_logs

from edge.calls import Call
from hairmesh.wire import WorkerReason
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import Refuse
from tests.scenarios.common import SELDOM, call, ejections, ends, taken_out

MISSES_IT = Refuse(grpc.StatusCode.UNAVAILABLE, WorkerReason.DEPENDENCY)


def growth(request_id: str) -> Call:
    """A slow call that wants a worker that can grow."""
    return Call("GrowRegion", growth_pb2.GrowRegionRequest(), request_id, slow=True, capability="growth")


async def test_25_an_optional_one_costs_its_capability_and_nobody_his_measurement(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    pool = await workers(3)
    able = pool[1]
    able.capabilities.append("growth")
    mesh = await driver(*(worker.address for worker in pool), health=SELDOM)
    await until(lambda: any("growth" in each.capabilities for each in mesh.snapshot().endpoints))
    with capture_logs() as lines:
        grown = [await mesh.call(growth(f"growth-{number}")) for number in range(4)]
        assert {outcome.worker for outcome in grown} == {able.address}, "the one that can"
        able.capabilities.remove("growth")
        able.tell(serving=True)
        await until(lambda: not any("growth" in each.capabilities for each in mesh.snapshot().endpoints))
        grown = [await mesh.call(growth(f"growth-{number}")) for number in range(3)]
        assert len({outcome.worker for outcome in grown}) == 3, "none can: any answers, with null"
        measured = await asyncio.gather(*(mesh.call(call(str(number))) for number in range(30)))
    assert {outcome.attempts for outcome in (*grown, *measured)} == {1}
    assert taken_out(lines) == []


async def test_25_a_required_one_takes_all_out_by_their_own_word_and_all_are_back_with_it(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    """Not one cooldown stands between the dependency's return and theirs."""
    pool = await workers(3)
    mesh = await driver(*(worker.address for worker in pool), health=SELDOM)
    with capture_logs() as lines:
        for worker in pool:
            worker.refuses = MISSES_IT
        results = await ends([asyncio.create_task(mesh.call(call(str(number)))) for number in range(6)])
        assert {str(result) for result in results} <= {"NO_WORKER", "WORKER_FAILED"}
        for worker in pool:
            worker.tell(serving=False, cause="dependency")
        await until(lambda: mesh.online().healthy == 0)
        for worker in pool:
            worker.refuses = None
            worker.tell(serving=True)
        await until(lambda: mesh.online().healthy == 3, within_s=45)
    assert ejections(lines) == []
    assert {cause for _, cause in taken_out(lines)} == {"dependency"}
    assert (await mesh.call(call())).attempts == 1
