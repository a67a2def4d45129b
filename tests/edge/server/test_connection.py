"""What may come before a request is one, over real sockets: large heads, slow ones, none at all, too many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edge.server import connection
from edge.server.crowd import RESERVED, Closed, Crowd
from tests.edge.clock import Clock
from tests.edge.rest import MEASURE, PHOTO, FakeMesh, Rest, eventually, serving
from tests.edge.server.conftest import SMALL_BUFFER_BYTES, Dial

MONITOR = b"GET /monitor HTTP/1.1\r\nHost: x\r\n"
CALL = f"POST {MEASURE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
CHUNKED = CALL + b"Transfer-Encoding: chunked\r\n\r\n"
FEW = 8
PICTURE_BYTES = 6_000_000


def crowd_of(rest: Rest) -> Crowd:
    crowd: Crowd = rest.server.config.app.state.crowd  # type: ignore[union-attr]
    return crowd


def connections(rest: Rest) -> list[connection.Connection]:
    """All that are open."""
    return list(rest.server.server_state.connections)  # type: ignore[arg-type]  # ours


async def answered(reader: asyncio.StreamReader) -> tuple[int, Any]:
    """Status and content of an answer on a connection that ends behind it."""
    head, _, body = (await asyncio.wait_for(reader.read(), 60)).partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    return int(head.split()[1]), json.loads(body)


async def ended(reader: asyncio.StreamReader) -> bool:
    """Wait for the end of a connection: whether nothing was answered."""
    try:
        return await asyncio.wait_for(reader.read(), 60) == b""
    except ConnectionResetError:
        return True


@pytest.fixture
async def small(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[Rest]:
    """A REST side with room for few."""
    limits = {"max_connections": FEW, "max_body_bytes": 400_000, "max_uploading_bytes": 500_000}
    async with serving(tmp_path, mesh, limits=limits) as running:
        yield running


LARGE_HEADS = {
    "one header": b"X: " + b"a" * connection.MAX_HEAD_BYTES + b"\r\n\r\n",
    "many headers": b"X: a\r\n" * (connection.MAX_HEADERS + 1) + b"\r\n",
    "a header without an end": b"X: " + b"a" * 2 * connection.MAX_HEAD_BYTES,
}


@pytest.mark.parametrize("name", LARGE_HEADS)
async def test_a_large_head_is_refused(rest: Rest, name: str, dial: Dial) -> None:
    reader, _ = await dial(rest, MONITOR + LARGE_HEADS[name])
    assert await answered(reader) == (431, {"status": "error", "message": "请求头过大"})
    reader, _ = await dial(rest, CALL + b"Accept-Language: en\r\nX-Request-ID: mine\r\n" + LARGE_HEADS[name])
    status, envelope = await answered(reader)
    assert (status, envelope["code"], envelope["request_id"]) == (431, 1008, "mine")
    assert envelope["data"]["reason"] == "HEAD_TOO_LARGE"
    assert envelope["data"]["details"] == {"max_bytes": connection.MAX_HEAD_BYTES, "max_headers": 100}
    assert crowd_of(rest).closed == {Closed.HEAD_TOO_LARGE: 2}


async def test_a_long_url_is_part_of_the_head(rest: Rest, dial: Dial) -> None:
    reader, _ = await dial(rest, b"GET /monitor?" + b"a" * connection.MAX_HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await answered(reader))[0] == 431


async def test_a_head_of_common_size_is_none_of_this(rest: Rest) -> None:
    cookies = {"Cookie": "a" * 16_000, **{f"X-{number}": "a" for number in range(80)}}
    assert (await rest.client.get("/monitor", headers=cookies)).status_code == 200
    assert (await rest.client.get("/monitor", headers=cookies)).status_code == 200  # on the same connection


async def test_who_never_ends_a_head_is_cut_off(rest: Rest, dial: Dial) -> None:
    """Neither the answer nor the end of the connection stops it from sending: 100 MB of one header."""
    _, writer = await dial(rest, MONITOR + b"X: ")

    async def send() -> None:
        for _ in range(100):
            writer.write(b"a" * 1_000_000)
            await writer.drain()

    with pytest.raises(ConnectionError):
        await send()
    assert (await rest.client.get("/monitor")).status_code == 200


async def test_what_is_not_http_is_refused_in_our_form(rest: Rest, dial: Dial) -> None:
    reader, _ = await dial(rest, b"HELO there\r\n\r\n")
    assert await answered(reader) == (400, {"status": "error", "message": "无效的 HTTP 请求"})
    reader, _ = await dial(rest, CALL + b"Content-Length: -1\r\n\r\n")
    status, envelope = await answered(reader)
    assert (status, envelope["code"], envelope["data"]["reason"]) == (400, 1008, "BAD_REQUEST")


@pytest.mark.parametrize("path", ["/monitor", "/nothing", "/static/annotations/x.png"])
async def test_a_body_without_an_end_that_nobody_wants_is_cut_off(rest: Rest, dial: Dial, path: str) -> None:
    """Its answer is out at once; what still comes is dropped, and not for ever."""
    _, writer = await dial(rest, f"GET {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())

    async def send() -> None:
        for _ in range(100):
            writer.write(b"f4240\r\n" + bytes(1_000_000) + b"\r\n")
            await writer.drain()

    with pytest.raises(ConnectionError):
        await send()
    assert (await rest.client.get("/monitor")).status_code == 200


SLOW = {
    "a head": (b"", CALL, b"X: a\r\n"),
    "one on a connection that was kept": (MONITOR + b"\r\n", CALL, b"X: a\r\n"),
    "blank lines before a request": (b"", b"", b"\r\n"),
    "blank lines before another one": (MONITOR + b"\r\n", b"", b"\r\n"),
}


@pytest.mark.parametrize("name", SLOW)
async def test_a_slow_head_is_given_up(rest: Rest, clock: Clock, name: str, dial: Dial) -> None:
    """Slowloris: something more comes all the time, and never a whole head."""
    before, begun, piece = SLOW[name]
    reader, writer = await dial(rest, before)
    if before:
        await reader.readuntil(b"}")
    await eventually(lambda: len(connections(rest)) == 1)
    (served,) = connections(rest)
    writer.write(begun)
    for number in range(1, 5):
        writer.write(piece)
        await eventually(lambda: served._spent == len(begun) + number * len(piece))  # noqa: B023  (awaited here)
        await clock.forward(1.0)
    assert crowd_of(rest).closed == {}
    await clock.forward(connection.HEAD_TIMEOUT_S - 4.0)  # since it began: what came later does not count
    assert crowd_of(rest).closed == {Closed.HEAD_LATE: 1}
    status, content = await answered(reader)
    assert status == 408
    if begun:
        assert (content["code"], content["data"]["reason"]) == (1008, "HEAD_LATE")


async def test_a_connection_without_a_request_is_closed(rest: Rest, clock: Clock, dial: Dial) -> None:
    reader, _ = await dial(rest, b"")
    await eventually(lambda: len(connections(rest)) == 1)
    await clock.forward(connection.HEAD_TIMEOUT_S)
    assert await ended(reader)
    assert crowd_of(rest).closed == {Closed.HEAD_LATE: 1}


async def test_waiting_for_an_answer_has_nothing_to_do_with_it(rest: Rest, mesh: FakeMesh, clock: Clock) -> None:
    mesh.gate = asyncio.Event()
    call = asyncio.create_task(rest.measure())
    await mesh.called.wait()
    await clock.forward(2 * connection.HEAD_TIMEOUT_S)
    mesh.gate.set()
    assert (await call).status_code == 200
    assert crowd_of(rest).closed == {}


async def test_small_chunks_are_no_fault(rest: Rest) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="image"; filename="p.jpg"\r\n\r\n' + PHOTO + b"\r\n--b--\r\n"

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(form), 16):
            yield form[start : start + 16]

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert (await rest.client.post(MEASURE, content=pieces(), headers=headers)).status_code == 200


FRAMING = {"trailers": b"0\r\n" + b"X: a\r\n" * 40_000, "one trailer": b"0\r\nX: " + b"a" * 300_000}


@pytest.mark.parametrize("name", FRAMING)
async def test_what_stands_around_a_body_is_bounded(rest: Rest, mesh: FakeMesh, name: str, dial: Dial) -> None:
    reader, writer = await dial(rest, CHUNKED + b"2\r\n{}\r\n")
    await eventually(lambda: rest.server.server_state.tasks != set())
    writer.write(FRAMING[name])
    writer.write(FRAMING[name])
    status, envelope = await answered(reader)
    assert (status, envelope["data"]["reason"]) == (400, "BAD_REQUEST")
    assert mesh.calls == []


async def test_more_connections_than_there_is_room_for(small: Rest, dial: Dial) -> None:
    """The first one waits longest, and goes; the last comes in, and is answered."""
    idle = [await dial(small, b"") for _ in range(FEW + RESERVED)]
    await eventually(lambda: len(crowd_of(small)) == FEW + RESERVED)
    assert (await small.client.get("/monitor")).status_code == 200
    assert await ended(idle[0][0])
    assert crowd_of(small).closed == {Closed.CROWDED_OUT: 1}


async def test_more_requests_than_there_is_room_for(small: Rest, mesh: FakeMesh) -> None:
    mesh.gate = asyncio.Event()
    calls = [asyncio.create_task(small.measure()) for _ in range(FEW)]
    await eventually(lambda: len(mesh.calls) == FEW)
    refused = await small.measure(headers={"Accept-Language": "en"})
    assert (refused.status_code, refused.json()["data"]["reason"]) == (503, "BUSY")
    assert refused.json()["data"]["details"]["max_requests"] == FEW
    assert refused.headers["Retry-After"]
    assert (await small.client.get("/monitor")).status_code == 200
    mesh.gate.set()
    assert [each.status_code for each in await asyncio.gather(*calls)] == [200] * FEW
    assert (await small.measure()).status_code == 200


async def test_bodies_that_arrive_at_once_share_their_room(small: Rest, dial: Dial) -> None:
    """Announced bytes take none of it: only those that came do."""
    head = CALL + b"Content-Length: 390000\r\n\r\n"
    announced = [await dial(small, head) for _ in range(5)]
    _, holds = await dial(small, head + b" " * 350_000)
    room = small.server.config.app.state.room  # type: ignore[union-attr]
    await eventually(lambda: room.body_bytes == 350_000)
    assert (await small.measure()).status_code == 200  # a small one has room
    reader, _ = await dial(small, head + b" " * 200_000)
    status, envelope = await answered(reader)
    assert (status, envelope["code"], envelope["data"]["reason"]) == (503, 1007, "BUSY")
    assert envelope["data"]["details"]["max_uploading_bytes"] == 500_000
    assert (await small.client.get("/monitor")).status_code == 200
    for each in (holds, *(writer for _, writer in announced)):
        each.close()
    await eventually(lambda: room.body_bytes == 0)


@pytest.fixture
async def picture(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[tuple[Rest, bytes]]:
    """A REST side, and what asks it for a picture of which the system's buffers take little."""
    mesh.response.annotated_image.data = bytes(PICTURE_BYTES)  # type: ignore[attr-defined]
    async with serving(tmp_path, mesh, send_buffer_bytes=SMALL_BUFFER_BYTES) as rest:
        url = (await rest.measure()).json()["data"]["annotated_image_url"]
        yield rest, f"GET /{url.split('/', 3)[3]} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def waiting(rest: Rest) -> connection.Connection:
    """The one whose answer waits to be taken."""
    await eventually(lambda: any(each.unread_bytes for each in connections(rest)))
    (one,) = [each for each in connections(rest) if each.unread_bytes]
    return one


async def test_who_does_not_take_its_answer_is_let_go(picture: tuple[Rest, bytes], clock: Clock, dial: Dial) -> None:
    rest, request = picture
    await dial(rest, request, small=True)
    await waiting(rest)
    for _ in range(PICTURE_BYTES // connection.NOT_READING_BYTES):  # the system's buffers may take some more at first
        await clock.forward(connection.NOT_READING_S)
    assert crowd_of(rest).closed == {Closed.NOT_READING: 1}


async def test_who_takes_it_slowly_gets_all_of_it(picture: tuple[Rest, bytes], clock: Clock, dial: Dial) -> None:
    """Little more than it has to in each span, and over several of them."""
    rest, request = picture
    reader, _ = await dial(rest, request, small=True)
    served = await waiting(rest)
    head = got = len(await reader.readuntil(b"\r\n\r\n"))
    for _ in range(5):
        enough = served.unread_bytes - connection.NOT_READING_BYTES
        while served.unread_bytes > enough:
            got += len(await reader.read(4_096))
        await clock.forward(connection.NOT_READING_S)
        assert crowd_of(rest).closed == {}, f"cut off after {got} bytes"
    assert served.unread_bytes > 0, "else nothing was slow"
    while got < head + PICTURE_BYTES:
        piece = await reader.read(400_000)
        assert piece, f"cut off after {got} bytes"
        got += len(piece)
