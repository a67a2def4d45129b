"""Clients that would like to go on in another protocol, over real sockets: served in the one they speak."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from edge.server.connection import Connection
from edge.server.crowd import Closed
from tests.edge.rest import MEASURE, PHOTO, FakeMesh, Rest, eventually
from tests.edge.server.conftest import Dial
from tests.edge.server.test_one_at_a_time import BODY, closed

H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__AAAAAA\r\n"
HEAD = f"POST {MEASURE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode() + H2C
MONITOR = b"GET /monitor HTTP/1.1\r\nHost: x\r\n"
WITH_LENGTH = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"


async def answer_on(reader: asyncio.StreamReader) -> tuple[int, Any]:
    """Status and content of the next answer."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    (length,) = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(head.split()[1]), json.loads(await asyncio.wait_for(reader.readexactly(length), 60))


@pytest.mark.parametrize("pieces", ["one packet", "the body later", "cut everywhere"])
@pytest.mark.parametrize("sent", [WITH_LENGTH, CHUNKED], ids=["with its length", "chunked"])
async def test_a_call_has_its_body_and_its_connection(
    rest: Rest, dial: Dial, mesh: FakeMesh, sent: bytes, pieces: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = sent.index(b"\r\n\r\n") + 4
    cuts = {"one packet": [], "the body later": [end], "cut everywhere": [3, 60, end - 2, end + 1, end + 9]}[pieces]
    came, take = bytearray(), Connection.data_received

    def noted(self: Connection, data: bytes) -> None:
        take(self, data)
        came.extend(data)

    monkeypatch.setattr(Connection, "data_received", noted)
    reader, writer = await dial(rest, b"")
    for start, stop in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        writer.write(sent[start:stop])
        await eventually(lambda stop=stop: len(came) == stop)  # type: ignore[misc]
    status, envelope = await answer_on(reader)
    assert (status, envelope["code"]) == (200, 0)
    assert mesh.request.photo.data == PHOTO
    writer.write(MONITOR + H2C + b"\r\n")
    assert (await answer_on(reader))[0] == 200
    assert closed(rest) == {}


async def test_a_websocket_is_answered_as_any_other_request(rest: Rest, dial: Dial) -> None:
    key = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n\r\n"
    reader, writer = await dial(rest, b"GET /nothing HTTP/1.1\r\nHost: x\r\n" + key)
    assert (await answer_on(reader))[0] == 404
    writer.write(f"GET {MEASURE} HTTP/1.1\r\nHost: x\r\n".encode() + key)
    assert (await answer_on(reader))[0] == 405


async def test_its_wish_to_close_is_heard(rest: Rest, dial: Dial) -> None:
    reader, _ = await dial(rest, MONITOR + b"Connection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n")
    assert b"connection: close" in (await asyncio.wait_for(reader.read(), 60)).lower()


async def test_the_edge_is_nobodys_proxy(rest: Rest, dial: Dial) -> None:
    for target in (b"x:443", b"/monitor"):
        reader, _ = await dial(rest, b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n\r\nhello")
        assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.1 400")
    assert closed(rest) == {Closed.BAD_REQUEST: 2}


async def test_curl_that_offers_http2(rest: Rest, mesh: FakeMesh, tmp_path: Path) -> None:
    if (curl := shutil.which("curl")) is None:
        pytest.skip("curl is not here")
    (tmp_path / "p.jpg").write_bytes(PHOTO)
    url = f"http://127.0.0.1:{rest.port}{MEASURE}"
    process = await asyncio.create_subprocess_exec(
        curl, "-sS", "--noproxy", "*", "-m", "20", "--http2", "-F", f"image=@{tmp_path / 'p.jpg'}", url,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert json.loads(out)["code"] == 0
    assert mesh.request.photo.data == PHOTO
