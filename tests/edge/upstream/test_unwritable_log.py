"""A log that cannot be written, and every way in which workers make the edge log: no call, probe or stream is lost.

The scenario of a full disk runs in a process of its own, since logs are configured once per process.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import grpc
import pytest
from hair.analysis.v1 import measure_pb2

from edge.calls import Call, CallFailedError
from edge.pool.config import HealthCheckConfig, PoolConfig
from edge.upstream import call_log
from edge.upstream.channel import ChannelSecurity
from edge.upstream.driver import Driver
from hairmesh import logs
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import PASSWORD, FakeWorker, Refuse

ROOT = Path(__file__).parents[3]
CALL = Call("Measure", measure_pb2.MeasureRequest(), "request-1")


def test_every_event_has_its_effect_though_the_disk_of_the_log_is_full() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        process = subprocess.run(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            timeout=100,
            check=False,
        )
    assert (process.stdout, process.returncode) == ("all is well\n", 0)


class _Raises:
    def info(self, *_: object, **__: object) -> NoReturn:
        raise OSError("no log")

    warning = info


async def test_words_come_last_so_that_no_decision_is_lost_with_them(
    workers: MakeWorkers, driver: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an odd log handler does: one worker, one call that breaks it, one that waits and must be told."""
    (worker,) = await workers(1)
    hold = worker.hold(then=Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"))
    mesh = await driver(worker.address, health=HealthCheckConfig(interval_seconds=3_600))
    breaks, waits = (asyncio.create_task(mesh.call(CALL)) for _ in range(2))
    await hold.started.wait()
    await until(lambda: mesh.snapshot().waiting_fast == 1)
    monkeypatch.setattr(call_log, "log", _Raises())
    hold.release.set()
    with pytest.raises(OSError, match="no log"):
        await breaks
    with pytest.raises(CallFailedError, match="NO_WORKER"):
        async with asyncio.timeout(10):
            await waits


async def _scenario() -> None:
    failed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failed.append(context))
    workers = [FakeWorker() for _ in range(3)]
    for worker in workers:
        await worker.start()
    broken, other, _ = workers
    often = HealthCheckConfig(interval_seconds=0.1, cooldown_seconds=0.5)
    config = PoolConfig(tuple(worker.address for worker in workers), health=often)
    mesh = Driver(config, PASSWORD, seed=1)

    async def call() -> int:
        return (await mesh.call(CALL)).attempts

    await mesh.start()
    assert mesh.online().healthy == 3

    broken.script.append(Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"))
    assert sorted([await call() for _ in range(3)]) == [1, 1, 2], "tried again elsewhere"
    await until(lambda: mesh.online().healthy == 3)

    broken.tell(serving=False, cause="disk")
    await until(lambda: mesh.online().healthy == 2)
    broken.tell(serving=True)
    await until(lambda: mesh.online().healthy == 3)

    await broken.stop()
    await until(lambda: mesh.online().healthy == 2)
    await broken.start()
    await until(lambda: mesh.online().healthy == 3)

    other.password = "another"
    await until(lambda: mesh.online().healthy == 2)
    other.password = PASSWORD
    await until(lambda: mesh.online().healthy == 3)

    fewer = PoolConfig(config.workers[:2], health=often)
    await mesh.reconfigure(fewer, "newer", ChannelSecurity())
    await until(lambda: mesh.online().total == 2)
    broken.password = other.password = "newer"
    probes = [worker.probes for worker in workers[:2]]
    await until(lambda: all(worker.probes > before + 3 for worker, before in zip(workers, probes, strict=False)))
    assert await call() == 1

    await mesh.close()
    await asyncio.gather(*(worker.stop() for worker in workers))
    assert not failed, failed
    sys.stdout.write("all is well\n")


if __name__ == "__main__":
    logs.configure("edge")
    asyncio.run(_scenario())
