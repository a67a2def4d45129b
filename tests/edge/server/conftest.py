"""Raw connections for every test that asks for them."""

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
