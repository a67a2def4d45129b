"""An edge that more clients come to than it has room for, as a process of its own: who goes, and who is served."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest

from edge.server.crowd import RESERVED
from tests.edge.process import Process

FEW = 8
FULL = FEW + RESERVED
NOBODY = "127.0.0.1:1"
OUTAGE = 503
"""What `/monitor` says where there is no worker: an answer."""
SYSTEM_TAKES = 4_500_000
"""Bytes of an answer, at most: `net.ipv4.tcp_wmem` and a little."""
PICTURE = "ab" * 8 + "cd" * 16 + ".png"
ASK = f"GET /static/annotations/{PICTURE} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
DOCS = b"GET /static-offline-docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n"


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
        async with httpx.AsyncClient(verify=self.tls or True, trust_env=False, timeout=20) as client:
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
        async with asyncio.timeout(30):
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


@pytest.mark.parametrize("request_", [ASK, DOCS], ids=["picture", "docs"])
async def test_connections_that_take_nothing_are_bounded_and_let_alerting_in(tmp_path: Path, request_: bytes) -> None:
    put_picture(tmp_path, 3_000_000)
    async with Process(tmp_path, NOBODY, limits={"max_connections": FEW}) as edge, crowding(edge) as clients:
        descriptors = psutil.Process(edge.process.pid).num_fds()
        for _ in range(FULL + 40):
            reader = await clients.dial(request_)
            assert (await asyncio.wait_for(reader.readuntil(b" "), 20)) == b"HTTP/1.1 "
        assert await clients.monitor() == OUTAGE
        await clients.until_open(FULL)
        assert clients.open() > FULL - 10
        assert psutil.Process(edge.process.pid).num_fds() <= descriptors + FULL + 5


async def test_who_takes_its_answer_gets_all_of_it_however_many_come_meanwhile(tmp_path: Path) -> None:
    size = 6_000_000
    put_picture(tmp_path, size)
    async with Process(tmp_path, NOBODY, limits={"max_connections": FEW}) as edge, crowding(edge) as clients:
        reader = await clients.dial(ASK)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        assert f"content-length: {size}".encode() in head.lower()
        for _ in range(FULL + 20):
            await clients.dial()
        assert await clients.monitor() == OUTAGE
        assert len(await asyncio.wait_for(reader.readexactly(size), 60)) == size


async def test_answers_that_are_not_taken_are_bounded_over_all_connections(tmp_path: Path) -> None:
    size, most = 10_000_000, 33_554_432
    put_picture(tmp_path, size)
    async with Process(tmp_path, NOBODY, limits={"max_sending_bytes": most}) as edge, crowding(edge) as clients:
        for _ in range(20):
            reader = await clients.dial(ASK)
            await asyncio.wait_for(reader.readuntil(b" "), 20)
        assert await clients.monitor() == OUTAGE
        await clients.until_open(most // (size - SYSTEM_TAKES))
        assert clients.open() >= most // size
        reader = await clients.dial(ASK)  # who takes its own is served beside them
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        assert len(await asyncio.wait_for(reader.readexactly(size), 60)) == size
