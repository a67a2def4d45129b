"""systemd's side of a real edge process."""

from __future__ import annotations

import signal
import sys
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest

from tests.e2e import service
from tests.edge.process import Process
from tests.fakes.systemd import Systemd
from tests.fakes.worker import FakeWorker

WATCHDOG_S = 1.2
QUICK = {"interval_seconds": 0.2, "timeout_seconds": 0.5}


@pytest.fixture
def told(systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    """The processes of this test are told where systemd listens."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(systemd.path))
    monkeypatch.setenv("WATCHDOG_USEC", str(round(WATCHDOG_S * 1e6)))
    return systemd


async def test_ready_is_said_when_it_serves_reloading_when_asked_stopping_when_it_ends(
    tmp_path: Path, told: Systemd, worker: FakeWorker
) -> None:
    async with Process(tmp_path, worker.address) as edge:
        _at_s, first = await told.heard()
        assert first == {"READY": "1"}
        assert (await edge.client.get("/livez")).status_code == 200
        assert (await told.until("STATUS"))["STATUS"] == "serves: 1 of 1 workers online"
        edge.config_path.write_text("{")  # whatever becomes of it
        edge.process.send_signal(signal.SIGHUP)
        await told.until("RELOADING")
        await told.until("READY")
        edge.process.send_signal(signal.SIGTERM)
        assert (await told.until("STOPPING"))["STATUS"] == "finishes 0 requests and leaves"
        assert await edge.process.wait() == 0


async def test_a_worker_that_is_gone_does_not_end_the_pings(tmp_path: Path, told: Systemd, worker: FakeWorker) -> None:
    async with Process(tmp_path, worker.address, health_check=QUICK):
        await worker.stop()
        while (await told.until("STATUS"))["STATUS"] != "serves: 0 of 1 workers online":
            pass
        async with aclosing(told.pings()) as pings:
            for _ping in range(3):
                await anext(pings)


async def test_a_stuck_event_loop_pings_no_more(tmp_path: Path, told: Systemd, worker: FakeWorker) -> None:
    async with Process(tmp_path, worker.address) as edge:
        await told.until("WATCHDOG")
        edge.process.send_signal(signal.SIGSTOP)
        await told.silence("WATCHDOG", 2 * WATCHDOG_S)


async def test_a_pool_that_probes_nobody_pings_no_more_though_the_edge_answers(
    tmp_path: Path, told: Systemd, worker: FakeWorker
) -> None:
    like = Process(tmp_path, worker.address, health_check=QUICK)
    wedged = service.Process("edge", [sys.executable, "-m", "tests.edge.wedged", "--config", str(like.config_path)])
    await wedged.start()
    try:
        await told.until("WATCHDOG")
        (tmp_path / "wedge").touch()
        while (await told.until("STATUS"))["STATUS"] != "does not probe its workers":
            pass
        await told.silence("WATCHDOG", 2 * WATCHDOG_S)
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            assert (await client.get(f"http://127.0.0.1:{like.port}/livez")).status_code == 200
    finally:
        await wedged.end()
