"""Inputs that break workers, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from edge.pool.config import DispatchConfig, HealthCheckConfig
from tests.edge.upstream.conftest import MakeDriver, until
from tests.fakes.answers import Behaviour, Context
from tests.fakes.worker import FakeWorker, SeenCall
from tests.scenarios.common import OFTEN, call, failure, photo_of, taken_out
from tests.scenarios.test_real_workers import answered, real_workers
from tests.worker.fakes import BREAKS, OK, FakePipeline
from tests.worker.harness import PASSWORD

POISON = b"poison"


class Fragile(FakeWorker):
    """Its process dies of a poisoned photo, and a supervisor starts the next one."""

    deaths = 0

    async def _admit(
        self, method: str, request: bytes, context: Context, default: Behaviour
    ) -> tuple[Behaviour, SeenCall]:
        if photo_of(request) != POISON:
            return await super()._admit(method, request, context, default)
        self.deaths += 1
        self._dying = asyncio.create_task(self._die())
        await asyncio.Event().wait()
        raise AssertionError("nothing sets that event")

    async def _die(self) -> None:
        await self.stop()
        await self.start()


@pytest.fixture
async def fragile() -> AsyncIterator[list[Fragile]]:
    pool = [Fragile() for _ in range(4)]
    for worker in pool:
        await worker.start()
    yield pool
    await asyncio.gather(*(worker.stop() for worker in pool))


async def test_27_an_input_that_kills_its_worker_meets_two_of_them_and_is_then_refused(
    fragile: list[Fragile], driver: MakeDriver
) -> None:
    mesh = await driver(
        *(worker.address for worker in fragile),
        health=HealthCheckConfig(interval_seconds=0.05, cooldown_seconds=0.3),
        dispatch=DispatchConfig(max_retries=3),
    )
    for number in range(4):
        await mesh.call(call(photo=bytes([number])))
    first = await failure(mesh, call(photo=POISON))
    assert first.reason in {"WORKER_FAILED", "POISON_INPUT"}
    assert sum(worker.deaths for worker in fragile) == 2, "two proofs are enough, whatever retries there are"
    for _ in range(10):
        again = await failure(mesh, call(photo=POISON))
        assert (again.reason, again.attempts) == ("POISON_INPUT", 0)
    assert (await mesh.call(call(photo=b"another"))).attempts == 1
    await until(lambda: mesh.online().healthy == 4)
    assert (await failure(mesh, call(photo=POISON))).reason == "POISON_INPUT", "for longer than any cooldown"
    assert sum(worker.deaths for worker in fragile) == 2


async def test_29_twenty_variants_of_an_input_that_breaks_a_stage_harm_nobody_else(driver: MakeDriver) -> None:
    async with real_workers(*(FakePipeline() for _ in range(3))) as addresses:
        mesh = await driver(*addresses, password=PASSWORD, health=OFTEN)
        with capture_logs() as lines:
            others: list[str] = []
            for variant in range(20):
                poisoned = asyncio.create_task(answered(mesh, BREAKS + bytes([variant]), "uploader"))
                others += [await answered(mesh, OK + bytes([variant, number]), "somebody") for number in range(3)]
                assert await poisoned in {"INPUT_FAILED", "POISON_INPUT", "WORKER_FAILED"}
        assert others == ["ok"] * 60
        touched = {address for address, _ in taken_out(lines)}
        assert len(touched) <= 1, "held to one worker, which alone may doubt itself"
        assert mesh.online().healthy >= 2
        await mesh.close()
