"""`Expect: 100-continue`: a client that waits with its body until it is asked for it, over real sockets."""

from __future__ import annotations

import asyncio

import pytest

from tests.edge.rest import MEASURE, Rest
from tests.edge.server.conftest import Dial
from tests.edge.server.test_one_at_a_time import BODY
from tests.edge.server.test_upgrade import answer_on

MONITOR = b"GET /monitor HTTP/1.1\r\nHost: x\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def head(path: str = MEASURE, kind: str = "application/json", length: int = len(BODY)) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Type: {kind}", f"Content-Length: {length}"]
    return "\r\n".join([*lines, "Expect: 100-continue", "", ""]).encode()


@pytest.mark.parametrize("path", [MEASURE, "/api/v1/nothing", "/nothing", "/monitor"])
@pytest.mark.parametrize("length", [40, 1_000_000])
async def test_a_refusal_before_the_body_says_that_it_closes(rest: Rest, dial: Dial, path: str, length: int) -> None:
    """It may send its body all the same, or another request: nobody could tell which."""
    reader, writer = await dial(rest, head(path, "text/plain", length))
    answer = await asyncio.wait_for(reader.readuntil(b"}"), 60)
    writer.close()
    assert answer[:10] == b"HTTP/1.1 4"
    assert b"connection: close" in answer.lower()


async def test_with_its_body_it_keeps_its_connection(rest: Rest, dial: Dial) -> None:
    reader, writer = await dial(rest, b"")
    for _ in range(2):
        writer.write(head())
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60) == CONTINUE
        writer.write(BODY)
        assert (await answer_on(reader))[0] == 200
    writer.write(MONITOR)
    assert (await answer_on(reader))[0] == 200


async def test_a_small_body_refused_once_it_is_here_costs_no_connection(rest: Rest, dial: Dial) -> None:
    reader, writer = await dial(rest, head("/nothing", "text/plain", len(BODY)) + BODY)
    assert (await answer_on(reader))[0] == 404
    writer.write(MONITOR)
    assert (await answer_on(reader))[0] == 200


async def test_an_edge_that_stops_closes_behind_it(rest: Rest, dial: Dial) -> None:
    """Though its body comes only after that."""
    reader, writer = await dial(rest, head())
    assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60) == CONTINUE
    for connection in rest.server.server_state.connections:
        connection.shutdown()
    writer.write(BODY)
    answer = await asyncio.wait_for(reader.read(), 60)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer.lower()
