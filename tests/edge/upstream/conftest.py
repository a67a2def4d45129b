"""Fake workers and drivers that are closed whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from edge.pool.config import HealthCheckConfig, PoolConfig
from edge.upstream.channel import ChannelSecurity
from edge.upstream.driver import Driver
from edge.upstream.resolver import Resolving
from tests.edge.upstream.tls import Authority
from tests.fakes.worker import PASSWORD, FakeWorker
from tests.fakes.worker_process import WorkerProcess

MakeWorkers = Callable[[int], Awaitable[list[FakeWorker]]]
MakeDriver = Callable[..., Awaitable[Driver]]
Spawn = Callable[..., Awaitable[WorkerProcess]]


@pytest.fixture
async def workers() -> AsyncIterator[MakeWorkers]:
    """So many fake workers in this loop, serving."""
    made: list[FakeWorker] = []

    async def make(count: int) -> list[FakeWorker]:
        new = [FakeWorker() for _ in range(count)]
        made.extend(new)
        for worker in new:
            await worker.start()
        return new

    yield make
    await asyncio.gather(*(worker.stop() for worker in made))


@pytest.fixture
async def spawn() -> AsyncIterator[Spawn]:
    """A fake worker in a process of its own."""
    made: list[WorkerProcess] = []

    async def make(**options: Any) -> WorkerProcess:
        process = await WorkerProcess.spawn(**options)
        made.append(process)
        return process

    yield make
    await asyncio.gather(*(process.end() for process in made))


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Certificates for workers and edges."""
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
async def driver() -> AsyncIterator[MakeDriver]:
    """A started driver for these addresses."""
    made: list[Driver] = []

    async def make(
        *addresses: str,
        password: str = PASSWORD,
        security: ChannelSecurity | None = None,
        health: HealthCheckConfig | None = None,
        resolving: Resolving | None = None,
        **settings: Any,
    ) -> Driver:
        config = PoolConfig(workers=addresses, health=health or HealthCheckConfig(), **settings)
        new = Driver(config, password, security or ChannelSecurity(), seed=1, resolving=resolving)
        made.append(new)
        await new.start()
        return new

    yield make
    await asyncio.gather(*(each.close() for each in made))


async def until(condition: Callable[[], bool], *, within_s: float = 60.0) -> None:
    """Wait for something that only shows from outside; fails by name when it never does."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  (nothing to await: it is the outside that looks)
            await asyncio.sleep(0.005)
