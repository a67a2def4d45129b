"""What people are told of an outage, of a blink, of a drill: by real monitoring, over a real edge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.monitoring import EDGE, Monitoring, Notice, until
from tests.edge.process import Process as Edge
from tests.fakes.worker import PASSWORD, FakeWorker

ADMIN = "an-admin-token-of-the-tests"
DOWN = "HairMeshDown"
OUTAGE = Notice("now", DOWN, True, "no", f"{EDGE}: nobody can compute")
OUTAGE_OVER = Notice("now", DOWN, False, "no", OUTAGE.summary)
DRILL = Notice("now", DOWN, True, "yes", f"DRILL: {EDGE} says that nobody can compute")
DRILL_OVER = Notice("now", DOWN, False, "yes", DRILL.summary)


class Setting:
    """An edge with one worker, monitored."""

    def __init__(self, edge: Edge, worker: FakeWorker, monitoring: Monitoring) -> None:
        self.edge = edge
        self.monitoring = monitoring
        self._worker = worker
        self._port = int(worker.address.rpartition(":")[2])

    async def says(self, status: int) -> None:
        """Wait until /monitor answers so."""

        async def does() -> bool:
            return (await self.edge.client.get("/monitor")).status_code == status

        await until(does)

    async def outage(self) -> None:
        """The only worker dies."""
        await self._worker.stop()
        await self.says(503)

    async def recovery(self) -> None:
        """It is started again."""
        await self._worker.start(self._port)
        await self.says(200)

    async def drill(self, *, enabled: bool) -> None:
        """Switch it."""
        token = {"X-Internal-Token": PASSWORD}
        answer = await self.edge.client.post("/monitor/fault", json={"enabled": enabled}, headers=token)
        assert answer.status_code == 200
        body = (await self.edge.client.get("/monitor")).json()
        assert (body.get("simulated"), body["workers_healthy"]) == (enabled or None, 1)

    async def blink(self) -> None:
        """Nobody is online when one probe comes: from 20 to 40 s after the one before.

        In real time alone: a faster clock leaves no time to be late in. `monitor.test.yml` shows it of the rules.
        """
        monitoring, worker = self.monitoring, self._worker
        await monitoring.until_probed()
        await self.pass_by(20)
        worker.tell(serving=False, cause="disk")
        await self.pass_by(20)
        worker.tell(serving=True)
        await monitoring.until_probed()
        assert await monitoring.failed_probes() == 1

    async def told(self, *notices: Notice, within_s: float = 180) -> None:
        """Wait until exactly this has been told of outages and drills."""
        receiver = self.monitoring.receiver
        await self.monitoring.until_told(lambda _: len(receiver.of(DOWN)) >= len(notices), within_s)
        assert receiver.of(DOWN) == list(notices), receiver.notices

    async def pass_by(self, seconds: float) -> None:
        """Let so much of production's time go by, in which something must not happen."""
        await asyncio.sleep(seconds / self.monitoring.factor)


@asynccontextmanager
async def monitored(folder: Path, factor: float) -> AsyncIterator[Setting]:
    """Inside, all is well at first."""
    worker = FakeWorker()
    await worker.start()
    try:
        for part in ("edge", "monitoring"):
            (folder / part).mkdir()
        config: dict[str, Any] = {"admin_tokens": [ADMIN], "health_check": {"interval_seconds": 1}}
        async with (
            Edge(folder / "edge", worker.address, **config) as edge,
            Monitoring(folder / "monitoring", f"127.0.0.1:{edge.port}", ADMIN, factor) as monitoring,
        ):
            yield Setting(edge, worker, monitoring)
    finally:
        await worker.stop()


async def test_an_outage_is_told_and_its_end_and_a_drill_says_so(tmp_path: Path) -> None:
    """Ten times as fast as in production: a probe still has seconds to be answered, on however busy a machine."""
    async with monitored(tmp_path, factor=10) as it:
        await it.drill(enabled=True)
        await it.told(DRILL)
        await it.drill(enabled=False)
        await it.told(DRILL, DRILL_OVER)
        await it.outage()
        await it.told(DRILL, DRILL_OVER, OUTAGE)
        await it.recovery()
        await it.told(DRILL, DRILL_OVER, OUTAGE, OUTAGE_OVER)
        await it.outage()
        await it.told(DRILL, DRILL_OVER, OUTAGE, OUTAGE_OVER, OUTAGE)  # B91: a second one is told again
        assert it.monitoring.receiver.of("HairMeshWatchdog")


@pytest.mark.long
async def test_b91_b92_outages_in_real_time(tmp_path: Path) -> None:
    """By the files as they are, 30 s between probes: a blink, an outage, peace, another one; then nobody looks."""
    async with monitored(tmp_path, factor=1) as it:
        monitoring, receiver = it.monitoring, it.monitoring.receiver
        await it.blink()
        await it.pass_by(60)
        await it.told()

        await it.outage()
        await it.told(OUTAGE, within_s=90)
        await it.pass_by(60)
        await it.recovery()
        await it.told(OUTAGE, OUTAGE_OVER)
        await it.pass_by(60)
        await it.outage()
        so_far = (OUTAGE, OUTAGE_OVER, OUTAGE)
        await it.told(*so_far, within_s=90)

        # Nobody probes. That is told, and the outage is not over for it.
        await monitoring.blackbox.end()
        silent = "HairMeshMonitorSilent"
        await monitoring.until_told(lambda _: bool(receiver.of(silent)), within_s=200)
        await it.told(*so_far)
        await monitoring.start(monitoring.blackbox)
        await monitoring.until_told(lambda _: not receiver.of(silent)[-1].firing)

        # Nor is it over when Prometheus is away for five minutes, and the edge is another process.
        await monitoring.prometheus.end()
        await it.edge.restart()
        await it.says(503)
        await it.pass_by(300)
        await monitoring.start(monitoring.prometheus)
        await it.pass_by(240)
        await it.told(*so_far)
        await it.recovery()
        await it.told(*so_far, OUTAGE_OVER)
