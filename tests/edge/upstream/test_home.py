"""Field report B49, scenario 23: channels that are touched from two event loops."""

from __future__ import annotations

import asyncio

import pytest
from hair.analysis.v1 import measure_pb2

from edge.calls import Call
from edge.pool.config import PoolConfig
from edge.upstream.channel import ChannelSecurity
from edge.upstream.driver import Driver
from edge.upstream.home import OtherLoopError
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers
from tests.fakes.worker import PASSWORD

CALL = Call("Measure", measure_pb2.MeasureRequest(), "request-1")


@pytest.mark.parametrize("use", ["call", "reconfigure"])
async def test_a_driver_serves_its_own_loop_only(workers: MakeWorkers, driver: MakeDriver, use: str) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address)

    async def elsewhere() -> None:
        if use == "call":
            await mesh.call(CALL)
        else:
            await mesh.reconfigure(PoolConfig((worker.address,)), PASSWORD, ChannelSecurity())

    with pytest.raises(OtherLoopError, match="another event loop"):
        await asyncio.to_thread(asyncio.run, elsewhere())
    assert (await mesh.call(CALL)).attempts == 1
    assert len(worker.seen) == 1


async def test_no_second_loop_of_the_process_gets_channels(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    await driver(worker.address)
    second = Driver(PoolConfig((worker.address,)), PASSWORD)
    with pytest.raises(OtherLoopError, match="one loop for all"):
        await asyncio.to_thread(asyncio.run, second.start())
    assert (await driver(worker.address)).online().healthy == 1, "another one on the same loop is welcome"


async def test_before_its_start_a_driver_takes_no_call() -> None:
    with pytest.raises(OtherLoopError, match="not started"):
        await Driver(PoolConfig(("127.0.0.1:1",)), PASSWORD).call(CALL)
