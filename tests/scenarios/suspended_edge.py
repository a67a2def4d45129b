"""An edge's driver in a process of its own, to be suspended with calls in flight.

`python -m tests.scenarios.suspended_edge ADDRESS…` starts as many calls as there are workers and as many again, writes
`running` when they compute, and at the end one JSON line: attempts of each call, or its reason, and who is online.
"""

from __future__ import annotations

import asyncio
import json
import sys

from edge.calls import CallFailedError
from edge.pool.config import DispatchConfig, PoolConfig
from edge.upstream.driver import Driver
from tests.fakes.worker import PASSWORD
from tests.scenarios.common import call


async def _answer(mesh: Driver, number: int) -> int | str:
    try:
        return (await mesh.call(call(str(number)))).attempts
    except CallFailedError as error:
        return error.reason


async def _run(addresses: list[str]) -> None:
    patient = DispatchConfig(queue_wait_seconds=300)  # who waits for a worker waits in real time
    mesh = Driver(PoolConfig(tuple(addresses), dispatch=patient), PASSWORD, seed=1)
    await mesh.start()
    calls = [asyncio.create_task(_answer(mesh, number)) for number in range(2 * len(addresses))]
    async with asyncio.timeout(20):
        while not all(each.stage for each in mesh.snapshot().endpoints):  # noqa: ASYNC110  (only a look can tell)
            await asyncio.sleep(0.005)
    print("running", file=sys.stderr, flush=True)
    answers = await asyncio.gather(*calls)
    print(json.dumps({"answers": answers, "online": mesh.online().healthy}), file=sys.stderr, flush=True)
    await mesh.close()


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1:]))
