"""What comes behind a request before its answer is out, over real sockets: it takes no memory and touches no answer."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import structlog

from edge.exchange import LINGER_S
from edge.server.crowd import Closed
from tests.edge.clock import Clock
from tests.edge.rest import MEASURE, PHOTO, STYLES, FakeMesh, Rest, eventually, grown_styles, serving
from tests.edge.server.conftest import SMALL_BUFFER_BYTES, Dial

BODY = json.dumps({"image_base64": base64.b64encode(PHOTO).decode()}).encode()
TINY = b"GET /health HTTP/1.1\r\n\r\n"
GARBAGE = b"\x00\x01garbage\r\n\r\n"
BEHIND = {
    "a request": TINY,
    "another call": b"",
    "several": 3 * TINY,
    "garbage": GARBAGE,
    "a request and garbage": TINY + GARBAGE,
    "a large head": TINY[:-2] + b"X: " + b"a" * 100_000,
    "many blank lines": b"\r\n" * 50_000,
}


def call(route: str = MEASURE, *headers: str) -> bytes:
    """One call as JSON."""
    lines = [f"POST {route} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(BODY)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + BODY


BEHIND["another call"] = call()


def only_answer(sent: bytes) -> tuple[int, Any]:
    """Status and content of the one answer of a connection; nothing else stands in it."""
    head, _, body = sent.partition(b"\r\n\r\n")
    (length,) = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    assert len(body) == length
    return int(head.split()[1]), json.loads(body)


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """Everything until the connection ends."""
    return await asyncio.wait_for(reader.read(), 60)


def closed(rest: Rest) -> dict[Closed, int]:
    """How many connections the edge ended, by why."""
    counts: dict[Closed, int] = rest.server.config.app.state.crowd.closed  # type: ignore[union-attr]
    return counts


@pytest.mark.parametrize("packet", ["in its packet", "later"])
@pytest.mark.parametrize("behind", BEHIND)
async def test_a_call_is_answered_whatever_comes_behind_it(
    rest: Rest, dial: Dial, mesh: FakeMesh, behind: str, packet: str, caplog: pytest.LogCaptureFixture
) -> None:
    mesh.gate = asyncio.Event()
    with structlog.testing.capture_logs() as logs, caplog.at_level(logging.INFO):
        reader, writer = await dial(rest, call() + (BEHIND[behind] if packet == "in its packet" else b""))
        await asyncio.wait_for(mesh.called.wait(), 60)
        if packet == "later":
            writer.write(BEHIND[behind])
        if behind != "many blank lines" or packet == "later":  # some are allowed in front of a request
            await eventually(lambda: closed(rest) == {Closed.SENT_AHEAD: 1})
        writer.write(TINY)
        await eventually(lambda: closed(rest) == {Closed.SENT_AHEAD: 1})
        mesh.gate.set()
        status, envelope = only_answer(await rest_of(reader))
        await rest.stop()
    assert (status, envelope["code"]) == (200, 0)
    assert len(mesh.calls) == 1
    (line,) = rest.log_lines()
    assert (line["http_status"], line["client"]) == (200, "answered")
    assert [entry for entry in logs if entry["log_level"] in ("warning", "error")] == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_stream_that_runs_is_not_written_into(rest: Rest, dial: Dial, mesh: FakeMesh) -> None:
    mesh.gate, mesh.results = asyncio.Event(), grown_styles()
    reader, writer = await dial(rest, call(STYLES, "Accept: text/event-stream"))
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    begun = await asyncio.wait_for(reader.readuntil(b"event: queued"), 60)
    writer.write(TINY)
    writer.write(GARBAGE)
    await eventually(lambda: closed(rest) == {Closed.SENT_AHEAD: 1})
    mesh.gate.set()
    sent = begun + await rest_of(reader)
    assert b"transfer-encoding: chunked" in head.lower()
    assert b"HTTP/1.1" not in sent
    assert b"event: result" in sent
    assert sent.endswith(b"0\r\n\r\n")


async def test_a_flood_of_tiny_requests_costs_one(rest: Rest, dial: Dial, mesh: FakeMesh) -> None:
    """1 MB of them behind a call that runs, and 1 MB of nothing else: each connection has one answer, and ends."""
    mesh.gate = asyncio.Event()
    flood = TINY * (1_000_000 // len(TINY))
    reader, _ = await dial(rest, call() + flood)
    await asyncio.wait_for(mesh.called.wait(), 60)
    alone, _ = await dial(rest, flood)
    assert only_answer(await rest_of(alone))[0] == 200
    assert (await rest.client.get("/monitor")).status_code == 200
    mesh.gate.set()
    assert only_answer(await rest_of(reader))[0] == 200
    assert rest.server.server_state.total_requests == 3
    assert closed(rest) == {Closed.SENT_AHEAD: 2}


async def test_what_comes_behind_a_request_is_bounded(rest: Rest, dial: Dial, mesh: FakeMesh) -> None:
    mesh.gate = asyncio.Event()
    _, writer = await dial(rest, call())
    await asyncio.wait_for(mesh.called.wait(), 60)

    async def send() -> None:
        for _ in range(100):
            writer.write(b"a" * 1_000_000)
            await writer.drain()

    with pytest.raises(ConnectionError):
        await send()
    await asyncio.wait_for(mesh.cancelled.wait(), 60)


@pytest.mark.parametrize("leave", ["closes", "resets"])
@pytest.mark.parametrize("behind", ["a request", "another call", "garbage"])
async def test_a_client_that_leaves_is_noticed_all_the_same(
    rest: Rest, dial: Dial, mesh: FakeMesh, behind: str, leave: str
) -> None:
    mesh.gate = asyncio.Event()
    _, writer = await dial(rest, call() + BEHIND[behind])
    await asyncio.wait_for(mesh.called.wait(), 60)
    await eventually(lambda: closed(rest) == {Closed.SENT_AHEAD: 1})
    if leave == "closes":
        writer.close()
    else:
        writer.transport.abort()
    await asyncio.wait_for(mesh.cancelled.wait(), 60)
    await rest.stop()
    (line,) = rest.log_lines()
    assert (line["client"], line["code"]) == ("client_closed", None)


async def test_a_client_that_reads_slowly_has_its_answer_to_the_end(
    tmp_path: Path, dial: Dial, mesh: FakeMesh, clock: Clock
) -> None:
    """The connection waits to be closed until all of it is out, not a fixed time."""
    size = 6_000_000
    mesh.response.annotated_image.data = bytes(size)  # type: ignore[attr-defined]
    async with serving(tmp_path, mesh, send_buffer_bytes=SMALL_BUFFER_BYTES) as rest:
        url = (await rest.measure()).json()["data"]["annotated_image_url"]
        request = f"GET /{url.split('/', 3)[3]} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        reader, _ = await dial(rest, request + TINY, small=True)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        await eventually(lambda: closed(rest) == {Closed.SENT_AHEAD: 1})
        got = 0
        for _ in range(10):
            got += len(await asyncio.wait_for(reader.readexactly(100_000), 60))
            await clock.forward(LINGER_S)
        while piece := await asyncio.wait_for(reader.read(1_000_000), 60):
            got += len(piece)
    assert b"200 OK" in head
    assert got == size


async def test_one_after_the_other_is_as_before(rest: Rest, dial: Dial) -> None:
    """As soon as the last byte of an answer is there, and with blank lines that some clients send behind a body."""
    reader, writer = await dial(rest, b"")
    for _ in range(50):
        writer.write(b"GET /monitor HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(reader.readuntil(b"}"), 60)
        writer.write(call() + b"\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        (length,) = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await asyncio.wait_for(reader.readexactly(length), 60)
    assert closed(rest) == {}
