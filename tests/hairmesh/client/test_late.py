"""A call ends when its patience does, whatever takes the time."""

from __future__ import annotations

import asyncio
import io
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hairmesh.client import AsyncClient, Client, DeadlineError, HairMeshError, TooLateError
from hairmesh.client.patience import GRACE_S
from hairmesh.client.transport import StepTimeouts
from tests.edge.rest import PHOTO
from tests.hairmesh.client.conftest import Clock
from tests.hairmesh.client.scripted import SPECIAL, Reply, Server, refused

PICTURE = "/static/annotations/1.png"


@pytest.fixture
def answers_after(server: Server, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Callable[[Reply, float], None]:
    """The server's next answers, and how long each takes."""

    def answers_after(reply: Reply, taken_s: float) -> None:
        def next_reply() -> Reply:
            clock.now_s += taken_s
            return reply

        monkeypatch.setattr(server, "next_reply", next_reply)

    return answers_after


def test_an_answer_that_comes_too_late_is_none(
    server: Server, client: Client, answers_after: Callable[[Reply, float], None]
) -> None:
    """The service's own DEADLINE, which comes a moment later, is one."""
    answers_after(refused(1007, "DEADLINE"), 60 + GRACE_S / 2)
    with pytest.raises(DeadlineError, match="request r-1"):
        client.special_points(PHOTO, timeout_s=60)
    answers_after(SPECIAL, 60 + GRACE_S + 1)
    with pytest.raises(TooLateError, match="in the time given"):
        client.special_points(PHOTO, timeout_s=60)
    assert len(server.seen) == 2


def test_a_picture_that_comes_too_late_is_none(
    server: Server, client: Client, answers_after: Callable[[Reply, float], None], tmp_path: Path
) -> None:
    answers_after(Reply(200, {}, b"png"), 200)
    for load in (lambda: client.picture(PICTURE), lambda: client.save_picture(PICTURE, tmp_path / "a.png")):
        with pytest.raises(TooLateError):
            load()
    assert list(tmp_path.iterdir()) == []
    assert len(server.seen) == 2


class SlowLine(io.BytesIO):
    """A photo of which each piece takes as long to be sent as all of it may."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(bytes(1024 * 1024))
        self.clock = clock
        self.pieces = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.pieces += 1
        self.clock.now_s += 30
        return super().read(size)


async def test_a_photo_that_does_not_get_through_in_time_is_given_up(server: Server, clock: Clock) -> None:
    def call() -> None:
        slow = SlowLine(clock)
        with Client(server.url) as client, pytest.raises(TooLateError):
            client.special_points(slow, timeout_s=60)
        assert slow.pieces < 5

    await asyncio.to_thread(call)
    slow = SlowLine(clock)
    async with AsyncClient(server.url) as client:
        with pytest.raises(TooLateError):
            await client.special_points(slow, timeout_s=60)
    assert slow.pieces < 5


def test_the_steps_of_a_request_share_its_time() -> None:
    rest_s = 12.0
    steps = StepTimeouts(lambda: rest_s)
    assert dict(steps) == {"pool": 12, "connect": 6, "write": 12, "read": 12}
    rest_s = 100.0
    assert steps["connect"] == 10
    rest_s = -1.0
    assert 0 < min(steps.values()) < 0.01
    assert steps.get("sleep") is None


async def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """httpx heeds the time: nothing else ends this."""
    monkeypatch.setattr("hairmesh.client.patience.GRACE_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"

        def call() -> None:
            with Client(url) as client, pytest.raises(TooLateError):
                client.measure(PHOTO, timeout_s=0.2)

        await asyncio.to_thread(call)
        async with AsyncClient(url) as client:
            with pytest.raises(TooLateError):
                await client.measure(PHOTO, timeout_s=0.2)


async def test_as_many_calls_at_once_as_the_caller_makes(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """None waits in the client, where no edge knows of it."""
    everyone = threading.Barrier(130)

    def next_reply() -> Reply:
        everyone.wait(60)
        return SPECIAL

    monkeypatch.setattr(server, "next_reply", next_reply)
    async with AsyncClient(server.url, retries=False) as client:
        calls = (client.special_points(PHOTO, timeout_s=60) for _ in range(130))
        answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [answer for answer in answers if isinstance(answer, HairMeshError)] == []
