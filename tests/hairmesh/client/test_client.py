"""The client where the service refuses, breaks, or takes its time."""

from __future__ import annotations

import asyncio
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from hairmesh import certs
from hairmesh.client import (
    AsyncClient,
    BusyError,
    Client,
    GatewayError,
    HairMeshError,
    NoFaceError,
    NotAnEnvelopeError,
    OutOfOrderError,
    ParameterError,
    PictureError,
    PictureStoreError,
    TooLargeError,
    TooLateError,
    TransportError,
    UnauthorizedError,
    UnavailableError,
    UnreachableError,
    UntrustedError,
)
from hairmesh.client.plain import Client as PlainClient
from tests.edge.rest import PHOTO, FakeMesh, serving
from tests.hairmesh.client.conftest import Clock
from tests.hairmesh.client.scripted import SPECIAL, Reply, Server, envelope, refused


def test_busy_is_asked_again_when_it_says(server: Server, client: Client, clock: Clock, tmp_path: Path) -> None:
    photo = tmp_path / "Patient Name.jpg"
    photo.write_bytes(PHOTO)
    server.replies = [refused(1007, "BUSY", retry_after_s=4), refused(1008, "TOO_MANY_REQUESTS", 429, 10), SPECIAL]
    waits: list[tuple[str, float]] = []
    answer = client.special_points(photo, timeout_s=60, on_wait=lambda why, pause_s: waits.append((str(why), pause_s)))
    assert [why.split(",")[0] for why, _ in waits] == ["words (BUSY", "words (TOO_MANY_REQUESTS"]
    assert [pause_s for _, pause_s in waits] == clock.slept
    assert answer.data.points["menton"].y_px == 2.5
    assert clock.slept == pytest.approx([4.2, 10.5])
    assert [seen.headers["x-request-timeout-ms"] for seen in server.seen] == ["60000", "55800", "45300"]
    for seen in server.seen:
        assert PHOTO in seen.body
        assert b"Patient" not in seen.body
        assert b"Content-Type: image/jpeg" in seen.body


def test_never_beyond_its_patience(server: Server, client: Client, clock: Clock) -> None:
    server.replies = [refused(1007, "NO_WORKER", retry_after_s=10)]
    with pytest.raises(BusyError, match="NO_WORKER, request r-1") as caught:
        client.measure(PHOTO, timeout_s=25)
    assert clock.slept == pytest.approx([10.5, 10.5])
    assert len(server.seen) == 3
    error = caught.value
    assert (error.code, error.http_status, error.retry_after_s, error.advice) == (1007, 503, 10, "Later.")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refused(1001, "NO_FACE", 400), NoFaceError),
        (refused(1007, "LOCAL_MODELS_MISSING", retry_after_s=60), OutOfOrderError),
        (refused(1008, "TOO_MANY_WRONG_TOKENS", 429, 6), UnauthorizedError),
        (Reply(404, {}, b"<html>"), NotAnEnvelopeError),
        (Reply(504, {"retry-after": "1"}, b"<html>"), TooLateError),
        (Reply(302, {"location": "http://127.0.0.1:1/"}), NotAnEnvelopeError),
    ],
)
def test_what_time_does_not_mend_is_said_at_once(
    server: Server, client: Client, clock: Clock, reply: Reply, kind: type[Exception]
) -> None:
    server.replies = [reply]
    with pytest.raises(kind):
        client.measure(PHOTO)
    assert len(server.seen) == 1


LOST = refused(1007, "EDGE_FAILED", retry_after_s=1)
"""What nginx says of a call whose edge has ended with it."""
NO_EDGE = refused(1007, "NO_EDGE", retry_after_s=3)
"""What it says where no edge took anything of the call."""
EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
BEGUN = Reply(200, EVENTS, b'event: queued\ndata: {"position":2,"attempt":1}\n\n')
"""A stream without an end."""
PAGE = Reply(503, {}, b"<html>")
"""Of some proxy that has no answer of an edge."""


@pytest.mark.parametrize(("lost", "pause_s"), [(Reply(breaks=True), 0.525), (LOST, 1.05)])
def test_a_fast_call_that_was_lost_with_its_edge_is_made_once_more(
    server: Server, client: Client, clock: Clock, lost: Reply, pause_s: float
) -> None:
    server.replies = [lost, SPECIAL]
    assert client.special_points(PHOTO)
    assert clock.slept == pytest.approx([pause_s])
    assert [PHOTO in seen.body for seen in server.seen] == [True, True]


def test_a_photo_is_not_carried_from_edge_to_edge(server: Server, client: Client, clock: Clock) -> None:
    """However the edges are lost, and whatever lies between."""
    server.replies = [LOST, NO_EDGE, refused(1007, "BUSY", retry_after_s=2), Reply(breaks=True), SPECIAL]
    with pytest.raises(TransportError, match="broke"):
        client.special_points(PHOTO)
    assert len(server.seen) == 4
    server.replies = [LOST, LOST, SPECIAL]
    with pytest.raises(UnavailableError, match="EDGE_FAILED"):
        client.special_points(PHOTO)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(breaks=True), TransportError),
        (LOST, UnavailableError),
        (BEGUN, TransportError),
        (PAGE, GatewayError),
        (refused(1007, "STORE_FULL", retry_after_s=60), PictureStoreError),
    ],
)
def test_a_slow_call_that_somebody_may_have_computed_is_made_once(
    server: Server, client: Client, clock: Clock, reply: Reply, kind: type[Exception]
) -> None:
    server.replies = [reply]
    for ask in (lambda: client.styles(PHOTO, on_progress=print), lambda: client.grow(PHOTO, mask=PHOTO)):
        server.seen.clear()
        with pytest.raises(kind):
            ask()
        assert len(server.seen) == 1


def test_a_slow_call_that_nobody_has_begun_is_waited_for(server: Server, client: Client, clock: Clock) -> None:
    busy = b"event: result\ndata: " + envelope(1007, "BUSY", details={"retry_after_s": 3}) + b"\n\n"
    noface = b"event: result\ndata: " + envelope(1001, "NO_FACE") + b"\n\n"
    server.replies = [NO_EDGE, Reply(200, EVENTS, BEGUN.content + busy), Reply(200, EVENTS, noface)]
    told: list[object] = []
    with pytest.raises(NoFaceError):
        client.styles(PHOTO, on_progress=told.append)
    assert len(told) == 1
    assert clock.slept == pytest.approx([3.15, 3.15])


def nowhere() -> socket.socket:
    """An address at which nobody listens, for as long as it is open."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken


@pytest.mark.parametrize(
    ("given", "tries_s"),
    [
        ({}, [0.5, 1, 2, 4, 4]),
        ({"unreachable_s": 30}, [0.5, 1, 2, 4, 4, 4, 4, 4, 4]),
        ({"unreachable_s": 30, "timeout_s": 10}, [0.5, 1, 2, 4]),
        ({"unreachable_s": 0}, []),
        ({"retries": False}, []),
    ],
)
def test_an_edge_that_restarts_is_waited_for_and_a_wrong_address_is_not_for_long(
    clock: Clock, given: dict[str, Any], tries_s: list[float]
) -> None:
    with nowhere() as taken, Client(f"http://127.0.0.1:{taken.getsockname()[1]}", **given) as client:
        for ask in (client.measure, client.styles):
            clock.slept.clear()
            with pytest.raises(UnreachableError):
                ask(PHOTO)
            assert clock.slept == pytest.approx([1.05 * pause_s for pause_s in tries_s])


def test_an_edge_that_nginx_does_not_reach_is_waited_for_as_long(server: Server, client: Client, clock: Clock) -> None:
    server.replies = [NO_EDGE]
    with pytest.raises(BusyError, match="NO_EDGE"):
        client.measure(PHOTO)
    assert clock.slept == pytest.approx([3.15, 3.15, 3.15, 4.2])
    clock.slept.clear()
    outage = [NO_EDGE] * 4
    server.replies = [*outage, refused(1007, "BUSY", retry_after_s=1), *outage, SPECIAL]
    assert client.special_points(PHOTO), "the second one is another"


def test_a_client_that_asks_once(server: Server, clock: Clock) -> None:
    with Client(server.url, retries=False) as client:
        for reply in (refused(1007, "BUSY", retry_after_s=1), LOST, Reply(breaks=True), PAGE):
            server.replies = [reply]
            with pytest.raises(HairMeshError):
                client.measure(PHOTO)
    assert len(server.seen) == 4
    assert clock.slept == []


@pytest.mark.parametrize("status", [502, 503])
def test_a_proxy_with_no_edge_behind_it_is_waited_for_like_an_edge(
    server: Server, client: Client, clock: Clock, status: int
) -> None:
    """As any ingress answers while the edge behind it starts anew."""
    date = {"retry-after": "Mon, 30 Nov 2026 10:00:00 GMT"}
    page = [Reply(status, headers, b"<html>") for headers in ({"retry-after": "3"}, date, {})]
    server.replies = [*page, SPECIAL]
    assert client.special_points(PHOTO)
    assert clock.slept == pytest.approx([3.15, 1.05, 2.1])  # the first as it is told, though 0.5 s would be due
    server.replies = page[-1:]
    with pytest.raises(GatewayError, match=f"HTTP {status}.*proxy"):
        client.special_points(PHOTO)
    assert len(server.seen) == 4 + 6
    server.replies = [Reply(status, {"retry-after": "300"}, b"<html>")]
    with pytest.raises(GatewayError):
        client.special_points(PHOTO)
    assert len(server.seen) == 4 + 6 + 1  # beyond its patience


def test_the_key_goes_with_calls_alone_and_is_shown_nowhere(server: Server) -> None:
    with Client(server.url, api_key="SENTINEL") as client:
        client.special_points(PHOTO)
        server.replies = [Reply(200, {}, b"png")]
        client.picture(f"{server.url}/static/annotations/1.png")
        assert "SENTINEL" not in repr(client)
    assert [seen.headers.get("x-api-key") for seen in server.seen] == ["SENTINEL", None]


@pytest.mark.parametrize("key", ["SENTINEL\n", "SENTINEL密码", " SENTINEL", "SENT\0INEL", ""])
def test_a_secret_that_no_header_can_carry_is_named_and_not_shown(server: Server, client: Client, key: str) -> None:
    for name, use in (
        ("api_key", lambda: Client(server.url, api_key=key)),
        ("api_key", lambda: AsyncClient(server.url, api_key=key)),
        ("api_key", lambda: PlainClient(server.url, api_key=key)),
        ("admin_token", lambda: client.remove_pictures("r-1", admin_token=key)),
    ):
        with pytest.raises(ValueError, match=f"{name} must be printable ASCII") as caught:
            use()
        assert "SENT" not in str(caught.value)
    assert server.seen == []


@pytest.mark.parametrize("request_id", ["a\nb", "", "r" * 65, "编号", "r-1\n"])
def test_a_request_id_that_the_service_would_not_take(server: Server, client: Client, request_id: str) -> None:
    with pytest.raises(ValueError, match="request_id must be 1 to 64"):
        client.measure(PHOTO, request_id=request_id)
    assert server.seen == []


@pytest.mark.parametrize("told", ["Mon, 30 Nov 2026 10:00:00 GMT", "-5", "nan", "inf", "soon"])
def test_a_retry_after_that_is_no_number_of_seconds_says_nothing(
    server: Server, client: Client, clock: Clock, told: str
) -> None:
    """The reason stays what it is, and is waited for as where nothing is said; what the envelope says counts."""
    busy = envelope(1007, "BUSY")
    also_said = envelope(1007, "BUSY", details={"retry_after_s": 2})
    server.replies = [Reply(503, {"retry-after": told}, content) for content in (busy, also_said)] + [SPECIAL]
    waits: list[HairMeshError] = []
    client.special_points(PHOTO, on_wait=lambda why, _pause_s: waits.append(why))
    assert [type(why) for why in waits] == [BusyError, BusyError]
    assert clock.slept == pytest.approx([5.25, 2.1])


def test_a_refusal_in_a_log_names_the_parameter_or_the_limit(server: Server, client: Client) -> None:
    wrong = envelope(1008, "INVALID_PARAMETER", details={"field": "sex", "allowed": ["female", "male"]})
    large = envelope(1004, "BODY_TOO_LARGE", details={"size_bytes": 3_145_728, "max_bytes": 2_097_152})
    server.replies = [Reply(400, {}, wrong), Reply(413, {}, large)]
    with pytest.raises(ParameterError) as caught:
        client.hairlines(PHOTO)
    said = 'words (INVALID_PARAMETER, request r-1) {"field": "sex", "allowed": ["female", "male"]}'
    assert str(caught.value) == said
    with pytest.raises(TooLargeError, match='"max_bytes": 2097152'):
        client.hairlines(PHOTO)


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://face.example", "https://name:word@face.example", "http://"])
def test_addresses_that_will_not_do(url: str) -> None:
    with pytest.raises(ValueError, match="url must"):
        Client(url)


def test_a_picture_is_saved_whole_or_not_at_all(server: Server, client: Client, tmp_path: Path) -> None:
    server.replies = [Reply(200, {}, b"png"), Reply(404), Reply(200, {"transfer-encoding": "nonsense"}, b"p")]
    secret = f"{server.url}/static/annotations/SENTINEL.png"
    client.save_picture(secret, tmp_path / "a.png")
    for kind in (PictureError, TransportError):
        with pytest.raises(kind) as caught:
            client.save_picture(secret, tmp_path / "b.png")
        assert "SENTINEL" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"png"


def test_the_address_of_a_picture_stands_in_no_log(
    server: Server, client: Client, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Whoever has it sees the picture, and httpx logs every address that it asks."""
    caplog.set_level(logging.DEBUG)
    secret = f"{server.url}/static/annotations/SENTINEL.png"
    client.picture(secret)
    client.save_picture(secret, tmp_path / "a.png")
    with PlainClient(server.url) as plain:
        plain.picture(secret)
    assert "SENTINEL" not in caplog.text
    client.special_points(PHOTO)
    assert "/api/v1/face/special-points" in caplog.text, "other addresses are logged as ever"


@pytest.mark.parametrize("gone", [Reply(breaks=True), Reply(503, {"retry-after": "0.5"}), Reply(502)])
def test_a_picture_is_asked_for_again_while_the_edge_restarts(
    server: Server, client: Client, clock: Clock, tmp_path: Path, gone: Reply
) -> None:
    server.replies = [gone, Reply(200, {}, b"png"), gone, Reply(200, {}, b"png")]
    waits: list[float] = []
    url = f"{server.url}/static/annotations/1.png"
    client.save_picture(url, tmp_path / "a.png", on_wait=lambda _why, pause_s: waits.append(pause_s))
    assert (tmp_path / "a.png").read_bytes() == b"png"
    assert client.picture(url) == b"png"
    assert clock.slept == pytest.approx([0.525, 0.525])
    assert waits == clock.slept[:1]


def test_pictures_are_removed_by_request(server: Server, client: Client) -> None:
    server.replies = [Reply(200, {}, envelope(0, removed=3)), refused(1008, "UNAUTHORIZED", 401)]
    assert client.remove_pictures("r-1", admin_token="SENTINEL") == 3
    assert (server.seen[0].method, server.seen[0].path) == ("DELETE", "/api/v1/requests/r-1/pictures")
    assert server.seen[0].headers["authorization"] == "Bearer SENTINEL"
    with pytest.raises(UnauthorizedError):
        client.remove_pictures("r-1", admin_token="wrong")


def test_threads_share_its_connections(server: Server, client: Client) -> None:
    client.special_points(PHOTO)
    client.special_points(PHOTO)
    assert server.connections == 1
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.special_points(PHOTO).data.points["menton"].x_px, range(64)))
    assert answers == [1.0] * 64
    assert server.connections <= 9


async def test_cancelling_ends_the_call(tmp_path: Path) -> None:
    mesh = FakeMesh(gate=asyncio.Event())
    async with serving(tmp_path, mesh) as rest, AsyncClient(f"http://127.0.0.1:{rest.port}") as client:
        call = asyncio.create_task(client.measure(PHOTO))
        await mesh.called.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(20):
            await mesh.cancelled.wait()


async def test_what_a_callback_raises_ends_the_call(tmp_path: Path) -> None:
    def enough(_news: object) -> None:
        raise RuntimeError("enough")

    def call(url: str) -> None:
        with Client(url) as client, pytest.raises(RuntimeError, match="enough"):
            client.styles(PHOTO, on_progress=enough)

    mesh = FakeMesh(gate=asyncio.Event())
    async with serving(tmp_path, mesh) as rest:
        await asyncio.to_thread(call, f"http://127.0.0.1:{rest.port}")
        async with asyncio.timeout(20):
            await mesh.cancelled.wait()


@pytest.mark.parametrize("error", [httpx.ConnectError("a web hook"), UnreachableError("a call of theirs")])
async def test_what_a_callback_raises_is_never_taken_for_the_services(server: Server, error: Exception) -> None:
    """Whatever it is: the call is not made again, and the error comes as it is."""

    def hook(_news: object) -> None:
        raise error

    def call() -> None:
        with Client(server.url) as client, pytest.raises(type(error)) as caught:
            client.styles(PHOTO, on_progress=hook)
        assert caught.value is error

    server.replies = [BEGUN]
    await asyncio.to_thread(call)
    async with AsyncClient(server.url) as client:
        with pytest.raises(type(error)) as caught:
            await client.styles(PHOTO, on_progress=hook)
    assert caught.value is error
    assert len(server.seen) == 2


async def test_only_an_authority_that_is_named_or_that_the_system_knows_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "certs"
    certs.write_dev(folder, (), days=1)
    tls = {"cert": str(folder / "edge.pem"), "key": str(folder / "edge.key")}

    def call(url: str) -> None:
        with Client(url, authority=folder / "ca.pem") as client:
            assert client.measure(PHOTO, annotate=False).data.scale is not None
        with Client(url) as client, pytest.raises(UntrustedError, match="certificate"):
            client.measure(PHOTO)

    def call_as_the_system(url: str) -> None:
        with Client(url) as client:
            assert client.measure(PHOTO, annotate=False).data.scale is not None
        with PlainClient(url) as plain:
            assert plain.measure(PHOTO, annotate=False).ok

    async with serving(tmp_path, FakeMesh(), tls=tls) as rest:
        url = f"https://localhost:{rest.port}"
        await asyncio.to_thread(call, url)
        monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
        await asyncio.to_thread(call_as_the_system, url)
        async with AsyncClient(url) as client:
            assert (await client.measure(PHOTO, annotate=False)).data.scale is not None
