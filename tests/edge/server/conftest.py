"""Raw connections for every test that asks for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.edge.rest import Rest

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[Rest, bytes], Awaitable[Ends]]


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """Connections of their own with bytes sent as they are, closed in the end."""
    writers = []

    async def open_one(rest: Rest, request: bytes) -> Ends:
        reader, writer = await asyncio.open_connection("127.0.0.1", rest.port)
        writers.append(writer)
        writer.write(request)
        return reader, writer

    yield open_one
    for writer in writers:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
