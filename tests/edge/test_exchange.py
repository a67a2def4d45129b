"""A request from its first byte to its line in the log: clients leave, bodies do not end, the server stops."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import threading
from pathlib import Path

import pytest
import structlog
from hair.analysis.v1 import masks_pb2

from edge import exchange
from edge.calls import Call, Outcome
from edge.images import local
from tests.edge.rest import (
    ANNOTATED,
    MASKS,
    MEASURE,
    PHOTO,
    WORKER,
    FakeMesh,
    Rest,
    eventually,
    failed,
    measured,
    serving,
)
from tests.fakes.worker import png


def form(photo: bytes = PHOTO) -> bytes:
    return b'--b\r\nContent-Disposition: form-data; name="image"; filename="p.jpg"\r\n\r\n' + photo + b"\r\n--b--\r\n"


def head(*lines: str) -> bytes:
    return "\r\n".join(
        [f"POST {MEASURE} HTTP/1.1", "Host: x", "Content-Type: multipart/form-data; boundary=b", *lines, "", ""]
    ).encode()


def post(body: bytes) -> bytes:
    return head(f"Content-Length: {len(body)}") + body


@pytest.mark.parametrize("leave", ["close", "reset", "half"])
async def test_a_client_that_leaves_cancels_its_call(rest: Rest, mesh: FakeMesh, leave: str) -> None:
    mesh.gate = asyncio.Event()
    _reader, writer = await rest.raw(post(form()))
    await asyncio.wait_for(mesh.called.wait(), 60)
    if leave == "half":
        writer.write_eof()
    elif leave == "reset":
        writer.transport.abort()
    else:
        writer.close()
    await asyncio.wait_for(mesh.cancelled.wait(), 60)
    writer.close()
    await rest.stop()
    (line,) = rest.log_lines()
    assert (line["client"], line["code"], line["http_status"]) == ("client_closed", None, None)
    assert (line["call_id"], line["workers"]) == ("7c1e44f0-1", [WORKER])


async def test_a_client_that_leaves_at_once_cancels_its_call_too(rest: Rest, mesh: FakeMesh) -> None:
    """Before the watch for it has begun."""
    mesh.gate = asyncio.Event()
    _reader, writer = await rest.raw(post(form()))
    writer.close()
    await asyncio.wait_for(mesh.called.wait(), 60)
    await asyncio.wait_for(mesh.cancelled.wait(), 60)


async def test_a_client_that_waits_is_answered_however_long_it_takes(rest: Rest, mesh: FakeMesh) -> None:
    mesh.gate = asyncio.Event()
    asyncio.get_running_loop().call_later(exchange.WATCH_AFTER_S * 3, mesh.gate.set)
    response = await rest.measure()
    assert response.status_code == 200
    assert (await rest.measure()).status_code == 200  # the connection is still good


async def test_a_client_that_leaves_while_sending_never_reaches_a_worker(rest: Rest, mesh: FakeMesh) -> None:
    body = form()
    _reader, writer = await rest.raw(head(f"Content-Length: {len(body)}") + body[:100])
    writer.close()
    await eventually(rest.settings.request_log.path.exists)
    await rest.stop()
    (line,) = rest.log_lines()
    assert line["client"] == "client_closed"
    assert mesh.calls == []


async def test_a_chunked_body_is_counted(rest: Rest, mesh: FakeMesh) -> None:
    """B14: the limit holds without a Content-Length, and what comes after it is not read."""

    def send_and_read() -> tuple[int, bytes]:
        with socket.create_connection(("127.0.0.1", rest.port), timeout=60) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)  # whatever the machine is set to
            connection.sendall(head("Transfer-Encoding: chunked"))
            sent = 0
            with contextlib.suppress(ConnectionError):  # the edge has heard enough
                while sent < 60_000_000:
                    connection.sendall(b"19000\r\n" + bytes(0x19000) + b"\r\n")
                    sent += 0x19000
            return sent, connection.recv(65_536)

    sent, answer = await asyncio.to_thread(send_and_read)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"code":1004' in answer
    assert b"connection: close" in answer.lower()
    assert sent < 40_000_000
    assert mesh.calls == []


async def test_a_client_that_sends_before_it_reads_sees_its_refusal(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3 MB against a limit of 2 MiB: closing at once would reset the connection under its feet."""
    monkeypatch.setattr(exchange, "LINGER_S", 60.0)  # a busy machine is not what is tested
    body = form(bytes(3_000_000))
    reader, writer = await rest.raw(head(f"Content-Length: {len(body)}"))
    writer.write(body)
    await writer.drain()
    assert b'"reason":"BODY_TOO_LARGE"' in await reader.read()
    writer.close()


async def test_a_refused_client_that_sends_nothing_is_let_go(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "LINGER_S", 0.05)
    reader, writer = await rest.raw(head("Content-Length: 99999999"))
    assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.1 413")
    writer.close()


async def test_expect_continue_is_not_asked_for_what_is_refused(rest: Rest) -> None:
    reader, writer = await rest.raw(head("Content-Length: 99999999", "Expect: 100-continue"))
    assert (await reader.readline()).startswith(b"HTTP/1.1 413")
    writer.close()


@pytest.mark.parametrize("lines", [("Content-Length: -1",), ("Content-Length: 5", "Content-Length: 6")])
async def test_lengths_that_are_none(rest: Rest, mesh: FakeMesh, lines: tuple[str, ...]) -> None:
    """B14."""
    reader, writer = await rest.raw(head(*lines) + form())
    assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    writer.close()
    assert mesh.calls == []


async def test_a_short_length_cuts_the_body(rest: Rest, mesh: FakeMesh) -> None:
    """B14: one that lies."""
    reader, writer = await rest.raw(head("Content-Length: 120") + form())
    answer = await reader.read()  # what follows the body is no request either: the connection ends
    assert answer.startswith(b"HTTP/1.1 400")
    writer.close()
    assert mesh.calls == []


async def test_small_unread_bodies_do_not_cost_the_connection(rest: Rest) -> None:
    for _ in range(2):
        response = await rest.client.post("/api/v1/nothing", content=bytes(1000))
        assert response.status_code == 404
        assert "connection" not in response.headers


async def test_an_error_of_ours_is_logged_with_its_place(rest: Rest, mesh: FakeMesh) -> None:
    mesh.failure = ZeroDivisionError("of ours")
    with structlog.testing.capture_logs() as logs:
        response = await rest.measure()
    assert response.json()["data"]["reason"] == "EDGE_FAILED"
    assert [entry["log_level"] for entry in logs] == ["error"]


async def test_a_cancellation_that_escapes_still_gets_an_answer(rest: Rest, mesh: FakeMesh) -> None:
    mesh.failure = asyncio.CancelledError()
    with structlog.testing.capture_logs():
        assert (await rest.measure()).json()["data"]["reason"] == "EDGE_FAILED"


async def test_requests_that_run_when_the_server_stops_are_answered(rest: Rest, mesh: FakeMesh) -> None:
    mesh.gate = asyncio.Event()
    rest.server.config.timeout_graceful_shutdown = 0
    request = asyncio.create_task(rest.measure())
    await mesh.called.wait()
    for listening in rest.server.servers:
        listening.close()
    (running,) = rest.server.server_state.tasks
    running.cancel()
    response = await request
    assert (response.status_code, response.json()["data"]["reason"]) == (503, "SHUTTING_DOWN")
    assert response.headers["retry-after"]


@pytest.mark.parametrize("waiting_room", [0, local.MAX_WAITING_BYTES])
async def test_a_disk_that_hangs_stops_neither_probes_nor_refusals(
    rest: Rest, monkeypatch: pytest.MonkeyPatch, waiting_room: int
) -> None:
    let_go = threading.Event()
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        let_go.wait(60)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(local, "MAX_WAITING_BYTES", waiting_room)
    monkeypatch.setattr(local, "IO_TIMEOUT_S", 60.0)  # nobody gives up meanwhile
    requests = [asyncio.create_task(rest.measure()) for _ in range(local.THREADS + 2)]
    for _ in range(20):
        assert (await rest.client.get("/monitor")).status_code == 200
    assert (await rest.measure(b"GIF89a")).status_code == 400
    if waiting_room:  # answered from memory
        urls = [(await request).json()["data"]["annotated_image_url"] for request in requests]
        assert {(await rest.client.get(url)).content for url in urls} == {ANNOTATED}
    else:
        assert not any(request.done() for request in requests)
    let_go.set()
    assert {(await request).status_code for request in requests} == {200}


async def test_probes_answer_while_sixty_requests_wait(rest: Rest, mesh: FakeMesh) -> None:
    mesh.gate = asyncio.Event()
    waiting = [asyncio.create_task(rest.measure()) for _ in range(60)]
    await eventually(lambda: len(mesh.calls) == 60)
    for path in ("/health", "/monitor", "/readyz"):
        assert (await rest.client.get(path)).status_code == 200
    assert not any(each.done() for each in waiting)
    mesh.gate.set()
    assert {response.status_code for response in await asyncio.gather(*waiting)} == {200}


@pytest.mark.parametrize(
    ("size", "ready", "details", "advice"),
    [
        (600_000, 503, {"retry_after_s": 60}, "Please try again later."),
        (
            1_100_000,
            200,  # another one finds room
            {"size_bytes": 1_100_000, "max_bytes": 1_048_576, "retry_after_s": 60},
            "Have the operator give the picture store more room.",
        ),
    ],
    ids=["while others are there", "even if it were empty"],
)
async def test_a_store_without_room_is_said(
    tmp_path: Path, mesh: FakeMesh, size: int, ready: int, details: dict[str, int], advice: str
) -> None:
    large = measured()
    async with serving(tmp_path, mesh, static={"dir": str(tmp_path / "p"), "max_bytes": 1_048_576}) as rest:
        large.annotated_image.data = png(600_000)
        mesh.response = large
        assert (await rest.measure()).status_code == 200
        large.annotated_image.data = png(size)
        response = await rest.measure(headers={"Accept-Language": "en"})
        assert (response.status_code, response.json()["code"]) == (503, 1007)
        assert response.json()["data"] == {"reason": "STORE_FULL", "details": details, "advice": advice}
        assert response.headers["retry-after"] == "60"
        assert (await rest.client.get("/monitor")).status_code == 200
        assert (await rest.client.get("/readyz")).status_code == ready


async def test_an_answer_without_pictures_needs_no_room_and_says_nothing_of_it(tmp_path: Path, mesh: FakeMesh) -> None:
    async with serving(tmp_path, mesh, static={"dir": str(tmp_path / "p"), "max_bytes": 1_048_576}) as rest:
        mesh.response = large = measured()
        large.annotated_image.data = png(600_000)
        assert [(await rest.measure()).status_code for _ in range(2)] == [200, 503]
        mesh.response = masks_pb2.SegmentFaceResponse()
        assert (await rest.post(MASKS)).status_code == 200
        assert (await rest.client.get("/readyz")).status_code == 503


async def test_the_log_has_one_line_per_request(rest: Rest, mesh: FakeMesh) -> None:
    good = (await rest.measure(headers={"X-Request-ID": "mine"})).json()
    mesh.failure = failed("YAW", queue_s=1.5)
    await rest.measure()
    await rest.client.get("/api/SENTINEL?token=SENTINEL", headers={"X-Internal-Token": "SENTINEL"})
    await rest.client.get("/monitor?token=SENTINEL")
    await rest.client.get(good["data"]["annotated_image_url"])
    await rest.stop()
    first, second, third = rest.log_lines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", first.pop("time")), "as in the other logs"
    assert first.pop("duration_ms") > 0
    assert re.fullmatch(r"[0-9a-f]{32}", first.pop("trace_id"))
    assert first == {
        "request_id": "mine",
        "method": "POST",
        "route": MEASURE,
        "http_status": 200,
        "code": 0,
        "reason": "",
        "queue_ms": 250.0,
        "call_id": "7c1e44f0-1",
        "worker": WORKER,
        "workers": [WORKER],
        "attempts": 1,
        "bytes_in": first["bytes_in"],
        "bytes_out": len(json.dumps(good, ensure_ascii=False, separators=(",", ":")).encode()),
        "api_key": "",
        "client": "answered",
    }
    assert first["bytes_in"] > len(PHOTO)
    assert (second["code"], second["reason"], second["queue_ms"]) == (1003, "YAW", 1500.0)
    assert (second["call_id"], second["worker"]) == ("7c1e44f0-2", WORKER)
    assert (third["route"], third["http_status"]) == (None, 404)
    assert (third["call_id"], third["worker"], third["workers"], third["attempts"]) == ("", "", [], 0), "it had no call"
    assert "SENTINEL" not in rest.settings.request_log.path.read_text()


async def test_the_request_id_stands_in_the_logs_of_the_request(rest: Rest, mesh: FakeMesh) -> None:
    seen: list[str] = []
    call = mesh.call

    async def logging_call(asked: object) -> object:
        seen.append(structlog.contextvars.get_contextvars()["request_id"])
        return await call(asked)  # type: ignore[arg-type]

    mesh.call = logging_call  # type: ignore[method-assign, assignment]
    await rest.measure(headers={"X-Request-ID": "mine"})
    assert seen == ["mine"]
    assert "request_id" not in structlog.contextvars.get_contextvars()


async def test_everything_that_is_said_of_a_request_carries_its_ids(rest: Rest, mesh: FakeMesh) -> None:
    seen: list[dict[str, object]] = []
    run = mesh.call

    async def noting(call: Call) -> Outcome:
        seen.append(structlog.contextvars.get_contextvars())
        assert call.trace.context.trace_id == seen[-1]["trace_id"]
        return await run(call)

    mesh.call = noting  # type: ignore[method-assign]
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    await rest.measure(headers={"X-Request-ID": "mine", "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"})
    await rest.measure(headers={"X-Request-ID": "mine", "traceparent": f"00-{trace_id}-SENTINEL-01"})
    first, second = seen
    assert first == {"request_id": "mine", "trace_id": trace_id}
    assert re.fullmatch(r"[0-9a-f]{32}", str(second["trace_id"]))
    assert second["trace_id"] != trace_id, "one that is not valid is none"
