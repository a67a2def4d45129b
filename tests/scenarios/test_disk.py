"""A worker's disk fills up, as the edge hears of it over real sockets."""

from __future__ import annotations

import grpc
import pytest
from structlog.testing import capture_logs

from hairmesh.wire import WorkerReason
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import Refuse
from tests.scenarios.common import SELDOM, call, call_until, taken_out, worker_of
from tests.scenarios.conftest import MakeEdge

FULL = Refuse(grpc.StatusCode.UNAVAILABLE, WorkerReason.DISK)


@pytest.mark.parametrize("first", ["watch", "call"])
async def test_33_whether_watch_or_a_failed_call_comes_first_the_end_is_the_same(
    workers: MakeWorkers, driver: MakeDriver, first: str
) -> None:
    full, good = await workers(2)
    mesh = await driver(full.address, good.address, health=SELDOM)
    full.refuses = FULL
    full.watch_tells = first == "watch"
    with capture_logs() as lines:
        if first == "watch":
            full.tell(serving=False, cause="disk")
            await until(lambda: mesh.online().healthy == 1)
            assert (await mesh.call(call())).worker == good.address
        else:
            outcome = await call_until(mesh, full)
            assert (outcome.worker, outcome.attempts) == (good.address, 2)
        full.watch_tells = True
        full.tell(serving=False, cause="disk")
        await until(lambda: "disk" in worker_of(mesh, full.address).evidence.lower())
    found = worker_of(mesh, full.address)
    assert (found.state, found.cause, found.cooldown_left_s) == ("NOT_SERVING", "disk", 0.0)
    assert {address for address, _ in taken_out(lines)} == {full.address}

    full.refuses = None
    full.tell(serving=True)
    await until(lambda: mesh.online().healthy == 2)
    assert {(await mesh.call(call())).worker for _ in range(2)} == {full.address, good.address}


async def test_the_last_worker_s_full_disk_is_told_by_monitor_and_ends_by_itself(
    workers: MakeWorkers, edge: MakeEdge
) -> None:
    (worker,) = await workers(1)
    rest, mesh = await edge(worker.address, health=SELDOM)
    worker.refuses = FULL
    worker.tell(serving=False, cause="disk")
    await until(lambda: mesh.online().healthy == 0)
    monitor, refused = await rest.client.get("/monitor"), await rest.measure()
    assert (monitor.status_code, monitor.json()["message"]) == (503, "没有可用的 worker")
    assert (refused.status_code, refused.json()["data"]["reason"]) == (503, "NO_WORKER")
    worker.refuses = None
    worker.tell(serving=True)
    await until(lambda: mesh.online().healthy == 1)
    assert (await rest.client.get("/monitor")).status_code == 200
    assert (await rest.measure()).status_code == 200
