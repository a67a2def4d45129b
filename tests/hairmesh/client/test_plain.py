"""The plain client against a server that answers what it is told to."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.exchange import MAX_PATIENCE_MS
from hairmesh.client import NotAnEnvelopeError, Progress, Queued
from hairmesh.client.envelope import Envelope, Events
from hairmesh.client.plain import Client
from hairmesh.client.routes import MAX_TIMEOUT_S


class Server(ThreadingHTTPServer):
    """Envelopes every request with `reply` and remembers what came."""

    reply: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")
    seen: list[tuple[str, str, str | None, bytes]]
    patience_ms: str | None = None
    accept: str | None = None


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append((self.command, self.path, self.headers.get("accept-language"), body))
        self.server.accept = self.headers.get("accept")
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


@pytest.mark.parametrize(
    ("call", "path", "parts"),
    [
        (
            lambda client: client.styles(b"photo bytes", styles=["m", "bell"], sex="male", seed=7, lang="en"),
            "/api/v1/hair/styles",
            ['name="styles"\r\n\r\nm,bell\r\n', 'name="sex"\r\n\r\nmale\r\n', 'name="seed"\r\n\r\n7\r\n'],
        ),
        (
            lambda client: client.grow(b"photo bytes", region=[(1, 2), (3.5, 4), (5, 6)], seed=0, lang="en"),
            "/api/v1/hair/grow",
            ['name="region"\r\n\r\n[[1, 2], [3.5, 4], [5, 6]]\r\n', 'name="seed"\r\n\r\n0\r\n'],
        ),
        (
            lambda client: client.grow(b"photo bytes", mask=b"mask bytes", lang="en"),
            "/api/v1/hair/grow",
            ['name="mask"; filename="mask"', "mask bytes"],
        ),
        (
            lambda client: client.hairlines(
                b"photo bytes", styles=["m"], height="low", density_per_cm2=35.5, lang="en"
            ),
            "/api/v1/hair/hairlines",
            ['name="styles"\r\n\r\nm\r\n', 'name="height"\r\n\r\nlow\r\n', 'name="density_per_cm2"\r\n\r\n35.5\r\n'],
        ),
        (lambda client: client.features(b"photo bytes", lang="en"), "/api/v1/face/features", []),
        (
            lambda client: client.masks(b"photo bytes", parts=["hair", "neck"], lang="en"),
            "/api/v1/face/masks",
            ['name="parts"\r\n\r\nhair,neck\r\n'],
        ),
        (lambda client: client.masks(b"photo bytes", lang="en"), "/api/v1/face/masks", []),
        (lambda client: client.special_points(b"photo bytes", lang="en"), "/api/v1/face/special-points", []),
    ],
)
def test_every_call_says_what_is_wanted_and_nothing_else(
    server: Server, client: Client, call: Callable[[Client], Envelope], path: str, parts: list[str]
) -> None:
    server.reply = (200, {}, envelope(0, "ok", {}))
    assert call(client).ok
    _, asked, language, body = server.seen[0]
    assert asked == path
    assert language == "en"
    for part in ['name="image"; filename="photo"', "photo bytes", 'name="lang"\r\n\r\nen\r\n', *parts]:
        assert part in body.decode()
    assert body.count(b"Content-Disposition") == 2 + sum('name="' in part for part in parts)


def test_a_language_that_is_none_is_for_the_service_to_refuse(server: Server, client: Client) -> None:
    """As a header it would be passed over in silence."""
    server.reply = (200, {}, envelope(0, "ok", {}))
    client.measure(b"photo bytes", lang="français")
    _, _, language, body = server.seen[0]
    assert language is None
    assert "français" in body.decode()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_may_be_of_any_kind(server: Server, client: Client, kind: Callable[[bytes], bytes]) -> None:
    server.reply = (200, {}, envelope(0, "ok", {}))
    client.grow(kind(b"photo bytes"), mask=kind(b"mask bytes"))
    body = server.seen[0][3]
    for name, content in (("image", b"photo bytes"), ("mask", b"mask bytes")):
        assert re.search(rb'name="%b"; filename=[^\n]+\r\n(?:[^\n]+\r\n)*\r\n%b\r\n' % (name.encode(), content), body)


def test_an_empty_choice_is_sent_as_it_is(server: Server, client: Client) -> None:
    """The service refuses it; None alone means all of them."""
    server.reply = (200, {}, envelope(0, "ok", {}))
    client.masks(b"photo", parts=[])
    client.masks(b"photo", parts=None)
    assert ['name="parts"' in seen[3].decode() for seen in server.seen] == [True, False]


def test_slow_calls_may_take_longer_unless_it_is_said(server: Server, client: Client) -> None:
    server.reply = (200, {}, envelope(0, "ok", {}))
    told = []
    with Client(f"http://127.0.0.1:{server.server_address[1]}", timeout_s=12.5) as brief:
        for asked in (client, brief):
            for call in (
                asked.measure,
                asked.styles,
                asked.grow,
                lambda photo, asked=asked: list(asked.follow_grow(photo)),
            ):
                call(b"photo")
                told.append(server.patience_ms)
    assert told == ["150000", "420000", "420000", "420000", "12500", "12500", "12500", "12500"]


@pytest.mark.parametrize("timeout_s", [0, -1, 0.0004, 3600.1, float("nan"), float("inf")])
def test_patience_that_the_edge_would_refuse_is_refused_at_once(timeout_s: float) -> None:
    assert MAX_TIMEOUT_S * 1000 == MAX_PATIENCE_MS
    with pytest.raises(ValueError, match="timeout_s must be from"):
        Client("http://127.0.0.1:1", timeout_s=timeout_s)


STREAM = (
    b'event: queued\ndata: {"position":2,"attempt":1}\n\n'
    b":\n\n"
    b'event: progress\ndata: {"stage":"growing","step":1,"total":3,"attempt":1,"results_done":1,"results_total":4}\n\n'
    b"event: newer\ndata: 5\n\n"
    b"event: result\ndata: %b\n\n"
)
EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_slow_call_is_told_as_it_goes(server: Server, client: Client, end: bytes) -> None:
    text = "一\u2028二"  # breaks a line for some, but not in this format
    stream = (
        STREAM % json.dumps({"code": 0, "message": text, "request_id": "r", "data": {}}, ensure_ascii=False).encode()
    )
    server.reply = (200, EVENTS, stream.replace(b"\n", end))
    told = list(client.follow_styles(b"photo", styles=["m"]))
    assert told[:2] == [
        Queued(position=2, attempt=1),
        Progress(stage="growing", step=1, total=3, attempt=1, results_done=1, results_total=4),
    ]
    (answer,) = told[2:]
    assert isinstance(answer, Envelope)
    assert (answer.ok, answer.message) == (True, text)
    assert server.accept == "text/event-stream"


def test_what_is_refused_before_the_stream_is_its_answer(server: Server, client: Client) -> None:
    server.reply = (503, {"retry-after": "5"}, envelope(1007, "…", {"reason": "NO_WORKER"}))
    (answer,) = client.follow_grow(b"photo", mask=b"mask")
    assert isinstance(answer, Envelope)
    assert (answer.http_status, answer.reason, answer.retry_after_s) == (503, "NO_WORKER", 5.0)


def test_a_stream_that_breaks_off_is_no_answer(server: Server, client: Client) -> None:
    server.reply = (200, EVENTS, STREAM.partition(b"event: result")[0])
    with pytest.raises(httpx.HTTPError, match="before its result"):
        list(client.follow_styles(b"photo"))


@pytest.mark.parametrize("event", [b"event: queued\ndata: [1]\n\n", b"event: result\ndata: {}\n\n"])
def test_events_that_are_none_of_ours(server: Server, client: Client, event: bytes) -> None:
    server.reply = (200, EVENTS, event)
    with pytest.raises(NotAnEnvelopeError):
        list(client.follow_styles(b"photo"))


@given(cuts=st.lists(st.integers(1, 200), max_size=8))
def test_events_come_apart_wherever_they_are_cut(cuts: list[int]) -> None:
    stream = STREAM % b'{"a": 1}'
    places = [0, *sorted({min(cut, len(stream)) for cut in cuts}), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(places)]
    events = Events()
    told = [event for chunk in chunks for event in events.feed(chunk)]
    assert [name for name, _ in told] == ["queued", "progress", "newer", "result"]
    assert told[-1][1] == b'{"a": 1}'
