"""An edge that more clients come to than it has room for, as a process of its own: who goes, and who is served."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from edge.console.protection import ASKS
from edge.server.crowd import RESERVED
from hairmesh import certs
from tests.edge.process import Process

FEW = 8
FULL = FEW + RESERVED
NOBODY = "127.0.0.1:1"
OUTAGE = 503
"""What `/monitor` says where there is no worker: an answer."""
SEND_BUFFER_BYTES = 262_144
"""Asked for, so that it does not matter what the machine is set to (`net.ipv4.tcp_wmem`)."""
SYSTEM_TAKES = 1_000_000
"""Bytes of an answer, at most: Linux gives twice what was asked for; and a little for whoever asked for the answer."""
PICTURE = "ab" * 8 + "cd" * 16 + ".png"
ASK = f"GET /static/annotations/{PICTURE} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
DOCS = b"GET /static-offline-docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n"
BODY_TO_COME = f"POST /console/session HTTP/1.1\r\nHost: x\r\n{ASKS}: 1\r\nContent-Length: 9\r\n\r\n".encode()
TOKEN = "an-admin-token-of-some-length"


@dataclass
class Clients:
    """Connections to one edge that take nothing unless told to."""

    edge: Process
    tls: ssl.SSLContext | None = None
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def dial(self, request: bytes = b"", *, shakes_hands: bool = True) -> asyncio.StreamReader:
        """One more, whose buffers are small, with a request."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.edge.port))
        tls = self.tls if shakes_hands else None
        host = "127.0.0.1" if tls else None
        reader, writer = await asyncio.open_connection(sock=sock, limit=1024, ssl=tls, server_hostname=host)
        self.writers.append(writer)
        writer.write(request)
        return reader

    async def monitor(self) -> int:
        """The status that alerting gets, on a connection of its own."""
        scheme = "https" if self.tls else "http"
        async with httpx.AsyncClient(verify=self.tls or True, trust_env=False, timeout=60) as client:
            return (await client.get(f"{scheme}://127.0.0.1:{self.edge.port}/monitor")).status_code

    def open(self) -> int:
        """How many connections the edge has."""
        process = psutil.Process(self.edge.process.pid)
        return sum(
            each.laddr.port == self.edge.port and each.status != psutil.CONN_LISTEN
            for each in process.net_connections("tcp")
        )

    async def until_open(self, most: int) -> None:
        """Wait for what the edge has closed to be gone."""
        async with asyncio.timeout(60):
            while self.open() > most:  # noqa: ASYNC110  (a process beside: nothing to await)
                await asyncio.sleep(0.02)

    async def close(self) -> None:
        """All of them."""
        for writer in self.writers:
            writer.transport.abort()
        for writer in self.writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@contextlib.asynccontextmanager
async def crowding(edge: Process, tls: ssl.SSLContext | None = None) -> AsyncIterator[Clients]:
    """Clients of that edge."""
    clients = Clients(edge, tls)
    try:
        yield clients
    finally:
        await clients.close()


def put_picture(folder: Path, size: int) -> None:
    """A picture of an answer, as if one had been given; what it shows is nobody's business here."""
    (folder / "pictures").mkdir()
    (folder / "pictures" / PICTURE).write_bytes(bytes(size))


@pytest.mark.parametrize("request_", [ASK, DOCS, BODY_TO_COME], ids=["picture", "docs", "body to come"])
async def test_connections_of_any_kind_are_bounded_and_let_alerting_in(tmp_path: Path, request_: bytes) -> None:
    put_picture(tmp_path, 3_000_000)
    limits = {"max_connections": FEW}
    async with Process(tmp_path, NOBODY, limits=limits, admin_tokens=[TOKEN]) as edge, crowding(edge) as clients:
        descriptors = psutil.Process(edge.process.pid).num_fds()
        for _ in range(FULL + 40):
            reader = await clients.dial(request_)
            if request_ is not BODY_TO_COME:
                assert (await asyncio.wait_for(reader.readuntil(b" "), 60)) == b"HTTP/1.1 "
        assert await clients.monitor() == OUTAGE
        assert FULL - 10 < clients.open() <= FULL + 1  # one of them is just being closed
        assert psutil.Process(edge.process.pid).num_fds() <= descriptors + FULL + 5


@dataclass
class Pair:
    """A certificate for this machine in `folder`."""

    folder: Path

    def __post_init__(self) -> None:
        certs.write_dev(self.folder)

    @property
    def config(self) -> dict[str, str]:
        """The section `tls`."""
        return {"cert": str(self.folder / "edge.pem"), "key": str(self.folder / "edge.key")}

    def trusted(self) -> ssl.SSLContext:
        """For a client."""
        return ssl.create_default_context(cafile=self.folder / "ca.pem")


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path / "certs")


async def test_handshakes_that_nobody_begins_are_bounded_and_let_alerting_in(tmp_path: Path, pair: Pair) -> None:
    async with (
        Process(tmp_path, NOBODY, limits={"max_connections": FEW}, tls=pair.config) as edge,
        crowding(edge, pair.trusted()) as clients,
    ):
        descriptors = psutil.Process(edge.process.pid).num_fds()
        for _ in range(FULL + 40):
            await clients.dial(shakes_hands=False)
        assert await clients.monitor() == OUTAGE
        assert clients.open() <= FULL + 1
        assert psutil.Process(edge.process.pid).num_fds() <= descriptors + FULL + 5


async def test_a_handshake_has_to_end_in_time(tmp_path: Path, pair: Pair) -> None:
    async with (
        Process(tmp_path, NOBODY, tls=pair.config) as edge,
        crowding(edge, pair.trusted()) as clients,
    ):
        silent = await clients.dial(shakes_hands=False)
        no_tls = await clients.dial(b"GET /monitor HTTP/1.1\r\n\r\n", shakes_hands=False)
        await asyncio.wait_for(no_tls.read(), 60)
        assert await asyncio.wait_for(silent.read(), 60) == b""
        assert await clients.monitor() == OUTAGE


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
async def test_where_descriptors_are_short_it_is_said_and_alerting_gets_in(
    tmp_path: Path, pair: Pair, tls: bool
) -> None:
    """More connections are allowed than the system has descriptors for."""
    section: dict[str, Any] = {"tls": pair.config} if tls else {}
    async with (
        Process(tmp_path, NOBODY, limits={"max_connections": 1000}, **section) as edge,
        crowding(edge, pair.trusted() if tls else None) as clients,
    ):
        process = psutil.Process(edge.process.pid)
        few = process.num_fds() + 40
        process.rlimit(resource.RLIMIT_NOFILE, (few, few))
        for _ in range(60):
            await clients.dial(shakes_hands=False)
        said = await edge.event("connections_not_accepted")
        assert said["problem"] == "Too many open files"
        for _ in range(3):
            assert await clients.monitor() == OUTAGE
        assert clients.open() <= 40


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
async def test_answers_that_are_not_taken_are_bounded_over_all_connections(
    tmp_path: Path, pair: Pair, tls: bool
) -> None:
    size, most = 10_000_000, 33_554_432
    put_picture(tmp_path, size)
    section: dict[str, Any] = {"tls": pair.config} if tls else {}
    async with (
        Process(
            tmp_path,
            NOBODY,
            send_buffer_bytes=SEND_BUFFER_BYTES,
            limits={"max_sending_bytes": most},
            **section,
        ) as edge,
        crowding(edge, pair.trusted() if tls else None) as clients,
    ):
        for _ in range(20):
            reader = await clients.dial(ASK)
            await asyncio.wait_for(reader.readuntil(b" "), 60)
        assert await clients.monitor() == OUTAGE
        await clients.until_open(most // (size - SYSTEM_TAKES))
        assert clients.open() >= most // size
        reader = await clients.dial(ASK)  # who takes its own is served beside them
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert len(await asyncio.wait_for(reader.readexactly(size), 60)) == size


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
async def test_who_takes_its_answer_gets_all_of_it_however_many_come_meanwhile(
    tmp_path: Path, pair: Pair, tls: bool
) -> None:
    size = 6_000_000
    put_picture(tmp_path, size)
    section: dict[str, Any] = {"tls": pair.config} if tls else {}
    async with (
        Process(
            tmp_path,
            NOBODY,
            send_buffer_bytes=SEND_BUFFER_BYTES,
            limits={"max_connections": FEW},
            **section,
        ) as edge,
        crowding(edge, pair.trusted() if tls else None) as clients,
    ):
        reader = await clients.dial(ASK)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert f"content-length: {size}".encode() in head.lower()
        for _ in range(FULL + 20):
            await clients.dial(shakes_hands=False)
        assert await clients.monitor() == OUTAGE
        assert len(await asyncio.wait_for(reader.readexactly(size), 60)) == size
