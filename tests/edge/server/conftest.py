"""Raw connections for every test that asks for them, and the time."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Protocol

import pytest

from tests.edge.rest import Rest

SMALL_BUFFER_BYTES = 65_536
"""Asked for at one end of a connection: whatever the system is set to, it holds little then (Linux: twice that)."""

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Dial(Protocol):
    """Opens a connection of its own with bytes sent as they are; `small`: with a small buffer for what it receives."""

    async def __call__(self, rest: Rest, request: bytes, *, small: bool = False) -> Ends: ...


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """Connections, closed in the end."""
    writers = []

    async def open_one(rest: Rest, request: bytes, *, small: bool = False) -> Ends:
        sock = socket.socket()
        if small:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", rest.port))
        reader, writer = await asyncio.open_connection(sock=sock)
        writers.append(writer)
        writer.write(request)
        return reader, writer

    yield open_one
    for writer in writers:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


class Clock:
    """The event loop's, which goes on by itself and jumps when told to.

    So limits are tried out as they are: no slow machine comes near them, and no test waits for them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        real, self._ahead_s = loop.time, 0.0
        loop.time = lambda: real() + self._ahead_s  # type: ignore[method-assign]

    async def forward(self, seconds: float) -> None:
        """So much later: what was due by then has been done."""
        self._ahead_s += seconds
        for _ in range(2):  # what is due is done behind what is ready, which this is
            await asyncio.sleep(0)


@pytest.fixture
async def clock() -> Clock:
    """Of the loop of this test, which ends with it."""
    return Clock(asyncio.get_running_loop())
