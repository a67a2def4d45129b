"""systemd's side of a real worker process: a datagram socket that hears what it is told."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import aclosing
from pathlib import Path

from hair.worker.v1 import worker_service_pb2 as pb

from tests.fakes.systemd import Systemd
from tests.worker.fakes import FROZEN, OK
from tests.worker.harness import NOT_SERVING, PATIENCE_S, SERVING, refused
from tests.worker.processes import fake_worker, write_config

BEAT_S = 0.02
WATCHDOG_S = 1.2


def environ(manager: Systemd, **thresholds: float) -> dict[str, str]:
    return {
        "NOTIFY_SOCKET": str(manager.path),
        "WATCHDOG_USEC": str(round(WATCHDOG_S * 1e6)),
        "TEST_THRESHOLDS": json.dumps({"beat_s": BEAT_S, "progress_period_s": 0.1, **thresholds}),
    }


async def test_start_asks_for_time_ready_is_said_when_it_serves_stopping_when_it_ends(
    tmp_path: Path, systemd: Systemd
) -> None:
    """B96."""
    hold = tmp_path / "hold"
    hold.touch()
    config = write_config(tmp_path / "w.json")
    variables = {**environ(systemd, notify_extend_every_s=0.1), "TEST_HOLD_LOAD": str(hold)}
    async with fake_worker(config, warm=False, environ=variables) as (worker, client):
        assert (await systemd.until("STATUS"))["STATUS"].startswith("loads models")
        for _time in range(3):
            assert "READY" not in await systemd.until("EXTEND_TIMEOUT_USEC")
        hold.unlink()
        ready = await systemd.until("READY")
        assert ready["STATUS"] == "serves"
        assert await client.check() == SERVING
        worker.signal(signal.SIGTERM)
        await systemd.until("STOPPING")
        assert await worker.end() == 0


async def test_pings_stop_when_the_compute_thread_is_stuck_and_only_then(tmp_path: Path, systemd: Systemd) -> None:
    """B97: RPC threads and the event loop live, the compute thread does not. A full disk goes on pinging."""
    health = {"min_free_gb": 1e6, "resume_free_gb": 1e6, "stall_after_seconds": {"parsing": 0.3}}
    config = write_config(tmp_path / "w.json", health=health)
    async with fake_worker(config, warm=False, environ=environ(systemd)) as (_worker, client):
        await client.until(lambda status: status.cause == "disk")
        async with aclosing(systemd.pings()) as pings:
            for _ping in range(4):
                await anext(pings)
    config = write_config(tmp_path / "w.json", health={"min_free_gb": 0, "stall_after_seconds": {"parsing": 0.3}})
    async with fake_worker(config, environ=environ(systemd)) as (_worker, client):
        await client.measure(OK)
        await systemd.until("WATCHDOG")
        stuck = asyncio.ensure_future(refused(client.measure(FROZEN)))
        await client.until(lambda status: status.cause == "stalled")
        await systemd.silence("WATCHDOG", 2 * WATCHDOG_S)
        assert [await client.check(name) for name in ("", "liveness")] == [NOT_SERVING] * 2  # its loop answers
        stuck.cancel()


async def test_a_stuck_event_loop_pings_no_more(tmp_path: Path, systemd: Systemd) -> None:
    async with fake_worker(write_config(tmp_path / "w.json"), environ=environ(systemd)) as (worker, _client):
        await systemd.until("WATCHDOG")
        worker.signal(signal.SIGSTOP)
        await systemd.silence("WATCHDOG", 2 * WATCHDOG_S)


async def test_drain_by_rpc_is_no_stop(tmp_path: Path, systemd: Systemd) -> None:
    """The process stays up until it is stopped, and goes on pinging."""
    async with fake_worker(write_config(tmp_path / "w.json"), environ=environ(systemd)) as (_worker, client):
        await client.worker.Drain(pb.DrainRequest(), metadata=client.token, timeout=PATIENCE_S)
        seen: dict[str, str] = {}
        while "finishes and leaves" not in seen.get("STATUS", ""):
            seen |= (await systemd.heard())[1]
        seen |= await systemd.until("WATCHDOG")
        assert "STOPPING" not in seen
