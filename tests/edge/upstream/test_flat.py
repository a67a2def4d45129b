"""Field report B50, scenario 28: descriptors and memory stay flat over calls, probes and restarts."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import psutil
import pytest
from hair.analysis.v1 import measure_pb2

from edge.calls import Call
from edge.pool.config import HealthCheckConfig
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import FakeWorker

MIB = 1024 * 1024
RESTARTS = 20
PROBE_ROUNDS = 200


def call() -> Call:
    message = measure_pb2.MeasureRequest()
    message.photo.data = bytes(20_000)
    return Call("Measure", message, "request-1")


def descriptors() -> int:
    """Open files and sockets of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def memory_bytes() -> int:
    """Resident memory of this process, workers included."""
    gc.collect()
    size: int = psutil.Process().memory_info().rss
    return size


async def restart(worker: FakeWorker) -> None:
    """Every other time without a word."""
    if worker.boot_id < "8":
        await worker.stop()
    else:
        await worker.drain(delay_s=0.0)
    await worker.start()


@pytest.mark.parametrize("requests", [2_000, pytest.param(10_000, marks=[pytest.mark.long, pytest.mark.timeout(600)])])
async def test_b50_descriptors_and_memory_stay_flat(workers: MakeWorkers, driver: MakeDriver, requests: int) -> None:
    three = await workers(3)
    often = HealthCheckConfig(interval_seconds=0.05, cooldown_seconds=0)
    mesh = await driver(*(worker.address for worker in three), health=often)

    seen: list[int] = []

    async def round_(calls: int, *, restarted: FakeWorker) -> None:
        running = [asyncio.create_task(mesh.call(call())) for _ in range(calls)]
        await until(lambda: any(each.done() for each in running))
        await restart(restarted)
        await asyncio.gather(*running)
        for worker in three:  # what the fakes remember is no leak
            seen.append(len(worker.seen))
            worker.seen.clear()
        await until(lambda: mesh.online().healthy == len(three))

    for worker in three:  # everything that is made once is made
        await round_(100, restarted=worker)
    probes = sum(worker.probes for worker in three)
    before, before_bytes = descriptors(), memory_bytes()
    for number in range(RESTARTS):
        await round_(requests // RESTARTS, restarted=three[number % len(three)])
    await until(lambda: sum(worker.probes for worker in three) - probes >= PROBE_ROUNDS * len(three), within_s=60)
    assert descriptors() - before < 20
    assert memory_bytes() - before_bytes < 32 * MIB
    assert mesh.snapshot().inside == 0
    assert sum(seen) >= requests
