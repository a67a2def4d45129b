"""systemd's side of a real worker process: a datagram socket that hears what it is told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from pathlib import Path

import pytest
from hair.worker.v1 import worker_service_pb2 as pb
from structlog.testing import capture_logs

from tests.worker.fakes import FROZEN, OK
from tests.worker.harness import NOT_SERVING, SERVING, refused
from tests.worker.processes import fake_worker, write_config
from worker.health.report import report
from worker.notify import SystemdNotify
from worker.thresholds import Thresholds

GOOD = report([], warm=True, draining=False)
BEAT_S = 0.02
WATCHDOG_S = 1.2


class Systemd:
    """The manager's end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.setblocking(False)

    async def heard(self) -> tuple[float, dict[str, str]]:
        """The next message, and when it came."""
        loop = asyncio.get_running_loop()
        text = (await loop.sock_recv(self.socket, 65_536)).decode()
        return loop.time(), dict(line.split("=", 1) for line in text.splitlines())

    async def until(self, name: str) -> dict[str, str]:
        """The first message with that assignment."""
        while True:  # the test's own timeout ends it
            _at_s, said = await self.heard()
            if name in said:
                return said

    async def pings(self) -> AsyncGenerator[float, None]:
        while True:
            at_s, said = await self.heard()
            if "WATCHDOG" in said:
                yield at_s

    async def silence(self, name: str, for_s: float) -> None:
        """Until no message had that assignment for so long."""
        while True:
            try:
                async with asyncio.timeout(for_s):
                    await self.until(name)
            except TimeoutError:
                return


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    manager = Systemd(tmp_path / "notify")
    yield manager
    manager.socket.close()


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
    health = {"min_free_gb": 1e9, "resume_free_gb": 1e9, "stall_after_seconds": {"parsing": 0.3}}
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
        await client.worker.Drain(pb.DrainRequest(), metadata=client.token, timeout=20)
        seen: dict[str, str] = {}
        while "finishes and leaves" not in seen.get("STATUS", ""):
            seen |= (await systemd.heard())[1]
        seen |= await systemd.until("WATCHDOG")
        assert "STOPPING" not in seen


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sdnotify drops its socket unclosed
def test_nobody_listens_where_there_is_no_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert SystemdNotify.from_environment(Thresholds()) is None
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    with capture_logs() as lines:
        assert SystemdNotify.from_environment(Thresholds()) is None
    assert [line["event"] for line in lines] == ["notify_socket_unusable"]


@pytest.mark.parametrize(
    ("variables", "pings"),
    [
        ({"WATCHDOG_USEC": "1000000"}, True),
        ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid())}, True),
        ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, False),
        ({"WATCHDOG_USEC": "0"}, False),
        ({"WATCHDOG_USEC": "soon"}, False),
        ({}, False),
    ],
)
async def test_only_a_watchdog_that_watches_this_process_is_pinged(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], pings: bool
) -> None:
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"NOTIFY_SOCKET": str(systemd.path), **variables}.items():
        monkeypatch.setenv(name, value)
    notify = SystemdNotify.from_environment(Thresholds())
    assert notify
    notify.beat(GOOD, 0.0)
    assert ("WATCHDOG" in (await systemd.heard())[1]) is pings
    notify.close()


async def test_a_manager_that_reads_nothing_neither_stops_the_loop_nor_misses_ready(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(systemd.path))
    full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    full.setblocking(False)
    full.connect(str(systemd.path))
    with suppress(BlockingIOError):
        while True:
            full.send(b"FILLER=1")
    full.close()
    notify = SystemdNotify.from_environment(Thresholds())
    assert notify
    with capture_logs() as lines:
        for beat in range(3):
            notify.beat(GOOD, float(beat))
    assert [line["event"] for line in lines] == ["notify_failed"]
    with suppress(BlockingIOError):
        while True:
            systemd.socket.recv(65_536)
    notify.beat(GOOD, 4.0)
    assert (await systemd.heard())[1]["READY"] == "1"
    notify.close()
