"""All workers fail together, over real sockets."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from structlog.testing import capture_logs

from edge.pool import config as fixed
from edge.pool.config import DispatchConfig, HealthCheckConfig
from tests.edge.rest import picture
from tests.edge.upstream.conftest import MakeWorkers, until
from tests.fakes.worker import Answer, FakeWorker, Refuse
from tests.scenarios.common import ends
from tests.scenarios.conftest import Edge, MakeEdge

COOLDOWN_S, TRIAL_S = 1.0, 0.3


class Clients:
    """Ask again and again, each with a photo of its own, and look at who computes meanwhile."""

    def __init__(self, edge: Edge, pool: list[FakeWorker]) -> None:
        self._edge = edge
        self._pool = pool
        self.trials_s: list[float] = []
        """Moments at which a worker was first seen to compute another call."""
        self.most_at_once = 0

    async def ask(self, number: int) -> None:
        """For ever."""
        while True:
            await self._edge.rest.measure(picture(size=(300 + number, 300)))
            await asyncio.sleep(0.01)

    async def look(self) -> None:
        """For ever."""
        loop = asyncio.get_running_loop()
        seen = self._seen()
        while True:
            self.most_at_once = max(self.most_at_once, sum(worker.computing for worker in self._pool))
            if self._seen() > seen:
                seen = self._seen()
                self.trials_s.append(loop.time())
            await asyncio.sleep(0.001)

    def _seen(self) -> int:
        return sum(len(worker.seen) for worker in self._pool)


async def test_3_five_workers_fail_together_and_are_back_within_seconds_of_the_causes_end(
    workers: MakeWorkers, edge: MakeEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixed, "BRAKE_COOLDOWN_S", COOLDOWN_S)
    monkeypatch.setattr(fixed, "BRAKE_TRIAL_S", TRIAL_S)
    pool = await workers(5)
    for worker in pool:
        worker.default = Refuse(grpc.StatusCode.UNAVAILABLE, after_s=0.05)
    health = HealthCheckConfig(interval_seconds=0.1, cooldown_seconds=60)
    running = await edge(*(worker.address for worker in pool), health=health, dispatch=DispatchConfig(max_retries=0))
    rest, mesh = running
    with capture_logs() as lines:
        responses = await asyncio.gather(*(rest.measure(picture(size=(240, 300 + number))) for number in range(5)))
        assert {response.status_code for response in responses} == {503}
        monitor = await rest.client.get("/monitor")
        assert (monitor.status_code, monitor.json()["workers_healthy"], monitor.json()["workers_total"]) == (503, 0, 5)

        clients = Clients(running, pool)
        began_s = asyncio.get_running_loop().time()
        busy = [asyncio.create_task(clients.ask(number)) for number in range(10)]
        busy.append(asyncio.create_task(clients.look()))
        await until(lambda: len(clients.trials_s) >= 4)
        assert clients.most_at_once == 1, "one trial at a time in the whole pool"
        # All of it, not gap by gap: a trial may be seen late, never early.
        assert clients.trials_s[-1] - began_s >= (len(clients.trials_s) - 1) * TRIAL_S

        for worker in pool:
            worker.default = Answer()
        await until(lambda: mesh.online().healthy == 5)
        assert (await rest.client.get("/monitor")).status_code == 200
        answers = await asyncio.gather(*(rest.measure() for _ in range(20)))
        assert {response.status_code for response in answers} == {200}
        for task in busy:
            task.cancel()
        await ends(busy)
    events = [line["event"] for line in lines]
    assert events.count("shared_cause") == events.count("shared_cause_over") == 1, "one alert, and its end"
