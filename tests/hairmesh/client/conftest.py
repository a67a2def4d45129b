"""A server that answers what it is told to, a client of it, and time that passes when somebody sleeps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hairmesh.client import Client
from tests.hairmesh.client.scripted import SPECIAL, Server, scripted


@pytest.fixture
def server() -> Iterator[Server]:
    with scripted() as server:
        server.replies = [SPECIAL]
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


class Clock:
    """Time that passes when somebody sleeps, and not by itself."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, pause_s: float) -> None:
        self.slept.append(pause_s)
        self.now_s += pause_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("hairmesh.client.core.time", clock)
    monkeypatch.setattr("hairmesh.client.sync.time", clock)
    monkeypatch.setattr("hairmesh.client.core.random.random", lambda: 0.5)
    return clock
