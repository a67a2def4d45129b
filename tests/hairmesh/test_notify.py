"""The socket to the service manager: whom it listens to, and what becomes of what could not be sent."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hairmesh.notify import Notifier
from tests.fakes.systemd import Systemd


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sdnotify drops its socket unclosed
def test_nobody_listens_where_there_is_no_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert Notifier.from_environment() is None
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    with capture_logs() as lines:
        assert Notifier.from_environment() is None
    assert [line["event"] for line in lines] == ["notify_socket_unusable"]


@pytest.mark.parametrize(
    ("variables", "watched"),
    [
        ({"WATCHDOG_USEC": "1000000"}, True),
        ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid())}, True),
        ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, False),
        ({"WATCHDOG_USEC": "0"}, False),
        ({"WATCHDOG_USEC": "soon"}, False),
        ({}, False),
    ],
)
def test_only_a_watchdog_that_watches_this_process_is_heeded(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], watched: bool
) -> None:
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"NOTIFY_SOCKET": str(systemd.path), **variables}.items():
        monkeypatch.setenv(name, value)
    notify = Notifier.from_environment()
    assert notify
    assert notify.watchdog_s == (1.0 if watched else None)
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
    notify = Notifier.from_environment()
    assert notify
    with capture_logs() as lines:
        for said in ({"READY": "1"}, {"WATCHDOG": "1"}, {"STATUS": "serves"}):
            notify.say(said)
    assert [line["event"] for line in lines] == ["notify_failed"]
    with suppress(BlockingIOError):
        while True:
            systemd.socket.recv(65_536)
    notify.say({"STATUS": "still serves"})
    assert (await systemd.heard())[1] == {"READY": "1", "STATUS": "still serves"}  # a ping is worth nothing later
    notify.say({})
    with pytest.raises(BlockingIOError):
        systemd.socket.recv(65_536)
    notify.close()
