"""A driver that is closed, at whatever moment and however: nobody waits for it, nothing of it goes on."""

from __future__ import annotations

import asyncio
import contextlib

from hair.analysis.v1 import measure_pb2

from edge.calls import Call
from edge.pool.config import PoolConfig
from edge.upstream.driver import Driver
from edge.upstream.resolver import Resolving
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import PASSWORD


def call() -> Call:
    return Call("Measure", measure_pb2.MeasureRequest(), "request-1")


async def test_closed_while_it_starts_it_ends_at_once_and_looks_nothing_up_any_more(workers: MakeWorkers) -> None:
    (worker,) = await workers(1)
    worker.probe_script.append(60.0)
    asked = 0

    async def lookup(_host: str, _port: int) -> list[str]:
        nonlocal asked
        asked += 1
        return ["127.0.0.1"]

    port = worker.address.rpartition(":")[2]
    config = PoolConfig((worker.address, f"dns:///localhost:{port}"))
    mesh = Driver(config, PASSWORD, resolving=Resolving(every_s=3_600, unknown_every_s=3_600, lookup=lookup))
    starting = asyncio.create_task(mesh.start())
    await until(lambda: worker.probes == 1)
    await mesh.close()
    async with asyncio.timeout(config.health.timeout_seconds / 2):
        await starting
    await until(lambda: not mesh._tasks)
    assert asked == 1


async def test_a_close_that_is_cancelled_leaves_no_call_waiting(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    hold = worker.hold()
    mesh = await driver(worker.address)
    calls = [asyncio.create_task(mesh.call(call())) for _ in range(3)]
    await hold.started.wait()
    closing = asyncio.create_task(mesh.close())
    await asyncio.sleep(0)
    closing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await closing
    async with asyncio.timeout(20):
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(result) for result in results] == ["NO_WORKER"] * 3
    await until(lambda: worker.watchers == 0)  # its channel is closed
