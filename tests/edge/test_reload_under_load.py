"""The configuration changes while clients call: real sockets, a real pool, no failed request, no strike."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog

from edge.pool.config import PoolConfig
from edge.upstream.channel import ChannelSecurity
from edge.upstream.driver import Driver
from tests.edge.rest import Rest, eventually, serving
from tests.fakes.worker import PASSWORD, Answer, FakeWorker

CLIENTS = 4


@dataclass
class Load:
    """Clients that call one after another, all the time."""

    rest: Rest
    answers: list[int] = field(default_factory=list)

    async def more(self, count: int) -> None:
        """Wait for so many answers from now on."""
        wanted = len(self.answers) + count
        await eventually(lambda: len(self.answers) >= wanted)

    async def client(self) -> None:
        while True:
            self.answers.append((await self.rest.measure()).status_code)


@contextlib.asynccontextmanager
async def load(rest: Rest) -> AsyncIterator[Load]:
    """Inside, clients call, and all of them get answers to the end."""
    clients = Load(rest)
    tasks = [asyncio.create_task(clients.client()) for _ in range(CLIENTS)]
    await clients.more(CLIENTS)
    yield clients
    await clients.more(CLIENTS)
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * CLIENTS


@pytest.fixture
async def workers() -> AsyncIterator[list[FakeWorker]]:
    """Three that take a moment for each call."""
    made = [FakeWorker(default=Answer(after_s=0.01)) for _ in range(3)]
    for worker in made:
        await worker.start()
    yield made
    await asyncio.gather(*(worker.stop() for worker in made))


async def test_nobody_notices(tmp_path: Path, workers: list[FakeWorker]) -> None:
    first, second, third = (worker.address for worker in workers)
    mesh = Driver(PoolConfig(workers=(first, second)), PASSWORD, ChannelSecurity())

    def there() -> dict[str, str]:
        return {endpoint.target: endpoint.state for endpoint in mesh.snapshot().endpoints}

    with structlog.testing.capture_logs() as logs:
        async with serving(tmp_path, mesh, workers=[first, second]) as rest, load(rest) as clients:

            async def change(**changes: object) -> None:
                """In force, with calls running before, during and after."""
                rest.content.update(changes)
                await rest.configure()
                await clients.more(2 * CLIENTS)

            # A worker comes, another goes; the calls that run there end there.
            await change(workers=[first, second, third])
            await eventually(lambda: there().get(third) == "SERVING")
            await clients.more(2 * CLIENTS)
            assert workers[2].seen
            await change(workers=[second, third])
            await eventually(lambda: first not in there())
            gone = len(workers[0].seen)

            # The password: workers first …
            for worker in workers:
                worker.password, worker.former_password = "second-password", PASSWORD
            await clients.more(CLIENTS)
            await change(shared_password="second-password")
            for worker in workers:
                worker.former_password = ""
            await clients.more(2 * CLIENTS)
            # … and then the edge first.
            await change(shared_password="third-password")
            for worker in workers:
                worker.password, worker.former_password = "third-password", "second-password"
            await clients.more(2 * CLIENTS)
            for worker in workers:
                worker.former_password = ""
            await clients.more(2 * CLIENTS)

            # Thresholds, cooldown, queue.
            await change(health_check={"interval_seconds": 0.2, "unhealthy_threshold": 5, "cooldown_seconds": 0})
            await change(dispatch={"max_in_flight": 2, "queue_wait_seconds": 20, "max_retries": 0})
            await change(primary_workers=[third])

            # Back to all of them, in other places.
            await change(workers=[third, second, first], dispatch={})
            await eventually(lambda: there().get(first) == "SERVING")
            await clients.more(2 * CLIENTS)
            pool = mesh.snapshot()
        assert len(workers[0].seen) >= gone
    assert set(clients.answers) == {200}
    assert [endpoint.ejections for endpoint in pool.endpoints] == [0, 0, 0]
    assert {endpoint.state for endpoint in pool.endpoints} == {"SERVING"}
    worse = [line for line in logs if line["event"] == "worker_state" and line["to"] != "SERVING"]
    assert worse == []
    assert not any(line["event"].startswith("configuration_refused") for line in logs)
    secrets = (PASSWORD, "second-password", "third-password")
    assert not any(secret in str(line) for line in logs for secret in secrets)
