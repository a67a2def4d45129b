"""The REST client against a server that answers what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from hairmesh.client import Client, NotAnEnvelopeError


class Server(ThreadingHTTPServer):
    """Answers every request with `reply` and remembers what came."""

    reply: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")
    seen: list[tuple[str, str, str | None, bytes]]
    patience_ms: str | None = None


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append((self.command, self.path, self.headers.get("accept-language"), body))
        self.server.patience_ms = self.headers.get("x-request-timeout-ms")
        status, headers, content = self.server.reply
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as started:
        started.seen = []
        thread = threading.Thread(target=started.serve_forever, args=(0.01,))
        thread.start()
        yield started
        started.shutdown()
        thread.join()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(f"http://127.0.0.1:{server.server_address[1]}") as made:
        yield made


def test_the_service_is_told_how_long_it_may_take(server: Server) -> None:
    server.reply = (200, {}, envelope(0, "ok", {}))
    with Client(f"http://127.0.0.1:{server.server_address[1]}", timeout_s=12.5) as client:
        client.measure(b"photo")
    assert server.patience_ms == "12500"


def envelope(code: int, message: str, data: object) -> bytes:
    return json.dumps({"code": code, "message": message, "request_id": "r-1", "data": data}).encode()


def test_good_answer(server: Server, client: Client) -> None:
    server.reply = (200, {}, envelope(0, "ok", {"annotated_image_url": "u"}))
    answer = client.measure(b"photo bytes", pupillary_distance_mm=63.5, annotate=False, lang="en")
    assert answer.ok
    assert answer.reason == ""
    assert answer.data == {"annotated_image_url": "u"}
    method, path, language, body = server.seen[0]
    assert (method, path, language) == ("POST", "/api/v1/face/measure", "en")
    for part in (b"photo bytes", b'name="image"', b"63.5", b"false"):
        assert part in body


def test_refusal_is_an_answer(server: Server, client: Client) -> None:
    server.reply = (503, {"retry-after": "5"}, envelope(1007, "…", {"reason": "NO_WORKER"}))
    answer = client.measure(b"photo")
    assert not answer.ok
    assert (answer.http_status, answer.code, answer.reason, answer.retry_after_s) == (503, 1007, "NO_WORKER", 5.0)


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"code": 0}', b'{"detail": "Not Found"}'])
def test_something_else_at_the_address(server: Server, client: Client, content: bytes) -> None:
    server.reply = (502, {}, content)
    with pytest.raises(NotAnEnvelopeError, match="502"):
        client.measure(b"photo")


def test_monitor_and_picture(server: Server, client: Client) -> None:
    server.reply = (503, {}, b'{"status":"unhealthy","workers_healthy":0}')
    assert client.monitor() == (503, {"status": "unhealthy", "workers_healthy": 0})
    server.reply = (404, {}, b"")
    with pytest.raises(httpx.HTTPStatusError):
        client.picture("/static/annotations/gone.png")
