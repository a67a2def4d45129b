"""Slow calls as server-sent events, over a real channel to scripted workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from hair.analysis.v1 import growth_pb2
from hair.worker.v1 import worker_service_pb2 as worker_pb2
from starlette.types import Message

from edge.exchange import Exchange
from edge.pool.config import DispatchConfig, PoolConfig
from edge.reload import InForce
from edge.room import Room
from edge.settings import parse
from edge.stream import News, StreamedAnswer, is_wanted
from edge.upstream.channel import ChannelSecurity
from edge.upstream.driver import Driver
from hairmesh.client import Progress, Queued
from hairmesh.client.envelope import Envelope
from hairmesh.client.envelope import Told as ClientTold
from hairmesh.client.plain import Client
from tests.edge.rest import (
    GROW,
    MEASURE,
    PHOTO,
    STYLES,
    FakeMesh,
    Rest,
    eventually,
    failed,
    grown_region,
    grown_styles,
    picture,
    serving,
)
from tests.fakes.worker import PASSWORD, FakeWorker, Grow, Hold, Refuse, png

EVENTS = {"Accept": "text/event-stream"}
TRIANGLE = "[[10, 10], [100, 10], [50, 90]]"

Told = tuple[str, dict[str, Any]]
"""Name and data of an event; a comment has no name."""


class Listener:
    """Reads one stream event by event, as strictly as the format is written down."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self.bytes = 0
        self._chunks = response.aiter_bytes()
        self._text = ""

    async def next(self) -> Told | None:
        """The next event or comment, None at the end."""
        async with asyncio.timeout(60):
            while "\n\n" not in self._text:
                chunk = await anext(self._chunks, None)
                if chunk is None:
                    assert self._text == "", "it ends with a whole event"
                    return None
                self.bytes += len(chunk)
                self._text += chunk.decode()
        block, _, self._text = self._text.partition("\n\n")
        if block.startswith(":"):
            return "", {}
        name, data = block.split("\n")
        assert (name[:7], data[:6]) == ("event: ", "data: ")
        return name[7:], json.loads(data[6:])

    async def rest(self) -> list[Told]:
        """Everything up to the end."""
        told = []
        while (event := await self.next()) is not None:
            told.append(event)
        return told


def listening(rest: Rest, path: str = STYLES, **options: Any) -> AbstractAsyncContextManager[Listener]:
    headers = {**EVENTS, **options.pop("headers", {})}
    data = options.pop("data", {"region": TRIANGLE} if path == GROW else {})

    @asynccontextmanager
    async def context() -> AsyncIterator[Listener]:
        files = {"image": ("p.jpg", PHOTO)}
        async with rest.client.stream("POST", path, files=files, data=data, headers=headers) as response:
            yield Listener(response)

    return context()


Serve = Callable[..., Awaitable[Rest]]


@pytest.fixture
async def serve(tmp_path: Path, worker: FakeWorker) -> AsyncIterator[Serve]:
    """A REST side over `worker`, which is the backup of others if there are any."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(*others: FakeWorker, comment_every_s: float = 60.0, **dispatch: Any) -> Rest:
            primary = tuple(each.address for each in others)
            config = PoolConfig((*primary, worker.address), primary, dispatch=DispatchConfig(**dispatch))
            driver = Driver(config, PASSWORD, ChannelSecurity(), seed=1)
            return await stack.enter_async_context(serving(tmp_path, driver, comment_every_s=comment_every_s))

        yield start


def slot_of(worker: FakeWorker) -> int:
    return worker.status().slot.state


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("text/event-stream", True),
        ("TEXT/Event-Stream; charset=utf-8", True),
        ("text/event-stream, application/json;q=0.9", True),
        ("application/json;q=0.9, text/event-stream", True),
        ("text/event-stream, */*;q=0.1", True),
        ("text/event-stream;q=0.5, */*;q=0.4", True),
        ("text/event-stream, */*", True),
        ("text/event-stream;q=0.5, application/*;q=0.5", True),
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("text/html", False),
        ("text/event-stream, application/json", False),
        ("application/json, text/event-stream", False),
        ("text/event-stream;q=0.1, */*", False),
        ("text/*", False),
        ("text/plain, text/*;q=0.2", False),
        ("application/json;q=0, */*", False),
        ("text/event-stream;q=0.5, application/json", False),
        ("text/event-stream;q=0", False),
        ("text/event-stream;q=abc", False),
        ("text/*;q=0.1, application/*;q=0.2", False),
        ("text/event-streams", False),
    ],
)
def test_who_wants_events(accept: str, wanted: bool) -> None:
    assert is_wanted([accept]) is wanted
    assert is_wanted(accept.split(",")) is wanted, "several headers count as one"


@pytest.mark.parametrize("path", [STYLES, GROW])
async def test_a_call_is_told_as_it_goes(serve: Serve, worker: FakeWorker, path: str) -> None:
    worker.growth = Grow(steps=3, step_s=0.05, results=1, png_bytes=3_000)
    rest = await serve()
    async with listening(rest, path, headers={"X-Request-ID": "mine"}) as listener:
        told = await listener.rest()
    response = listener.response
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["x-request-id"] == "mine"
    assert set(response.headers["vary"].split(", ")) == {"Accept", "Accept-Language"}
    assert "content-length" not in response.headers
    assert [name for name, _ in told] == ["queued", "progress", "progress", "progress", "result"]
    assert told[0][1] == {"position": 0, "attempt": 1}
    assert told[1][1] == {
        "stage": "growing",
        "step": 1,
        "total": 3,
        "attempt": 1,
        "results_done": 0,
        "results_total": 1,
    }
    envelope = told[-1][1]
    assert list(envelope) == ["code", "message", "request_id", "data"]
    assert (envelope["code"], envelope["message"], envelope["request_id"]) == (0, "ok", "mine")
    grown = envelope["data"]["results"][0] if path == STYLES else envelope["data"]
    assert (await rest.client.get(grown["grown_image_url"])).content == png(3_000)
    await rest.stop()
    (line,) = rest.log_lines()
    assert (line["route"], line["http_status"], line["code"], line["reason"]) == (path, 200, 0, "")
    assert (line["client"], line["worker"], line["attempts"]) == ("answered", worker.address, 1)
    assert (line["bytes_out"], line["call_id"]) == (listener.bytes, worker.seen[0].call_id)
    assert line["duration_ms"] >= 150


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/event-stream;q=0.9"])
async def test_the_plain_answer_says_the_same(serve: Serve, worker: FakeWorker, accept: str) -> None:
    rest = await serve()
    response = await rest.post(STYLES, headers={"Accept": accept})
    assert response.headers["content-type"] == "application/json"
    async with listening(rest) as listener:
        streamed = (await listener.rest())[-1][1]
    plain = response.json()
    assert plain["code"] == streamed["code"] == 0
    for data in (plain["data"], streamed["data"]):
        for result in data["results"]:
            assert result.pop("image_url") != result.pop("grown_image_url")
    assert plain["data"] == streamed["data"]


async def test_a_client_that_knows_no_chunks_gets_the_plain_answer(rest: Rest, mesh: FakeMesh) -> None:
    """HTTP/1.0, which old proxies speak: sizes of chunks would stand in the middle of the events."""
    mesh.results = grown_styles(growth_pb2.StyleResult(style="round"))
    reader, writer = await rest.raw(form("1.0"))
    async with asyncio.timeout(60):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert b"transfer-encoding" not in head.lower()
    assert b"content-type: application/json" in head.lower()
    assert json.loads(body)["data"]["results"][0]["style"] == "round"


async def test_caches_are_told_that_there_are_two_kinds_of_answers(rest: Rest, mesh: FakeMesh) -> None:
    mesh.results = grown_styles(growth_pb2.StyleResult(style="round"))
    for answer in (await rest.post(STYLES), await rest.post(STYLES, b"no picture")):
        assert answer.headers["vary"] == "Accept, Accept-Language"
    assert (await rest.post(MEASURE)).headers["vary"] == "Accept-Language"


async def test_when_to_come_again_is_told_in_every_form(rest: Rest, mesh: FakeMesh) -> None:
    """A `result` has no headers: the body says it as well."""
    mesh.failure = failed("BUSY", retry_after_s=42)
    plain = await rest.post(STYLES)
    async with listening(rest) as listener:
        ((_, _), (_, streamed)) = await listener.rest()
    assert plain.headers["retry-after"] == "42"
    assert plain.json()["data"]["details"] == streamed["data"]["details"] == {"retry_after_s": 42}
    with Client(f"http://127.0.0.1:{rest.port}") as client:
        *_, told = await asyncio.to_thread(lambda: list(client.follow_styles(PHOTO)))
    assert isinstance(told, Envelope)
    assert told.retry_after_s == 42.0


async def test_a_fast_call_does_not_stream(serve: Serve) -> None:
    rest = await serve()
    response = await rest.post(MEASURE, headers=EVENTS)
    assert (response.headers["content-type"], response.json()["code"]) == ("application/json", 0)


# Errors


@pytest.mark.parametrize(
    ("data", "reason"),
    [({}, "MISSING_PARAMETER"), ({"region": "[[1, 1]]"}, "INVALID_PARAMETER"), ({"x": "1"}, "INVALID_PARAMETER")],
)
async def test_what_is_wrong_with_the_request_is_an_ordinary_answer(
    serve: Serve, data: dict[str, str], reason: str
) -> None:
    rest = await serve()
    async with listening(rest, GROW, data=data) as listener:
        assert listener.response.status_code == 400
        assert listener.response.headers["content-type"] == "application/json"
        assert json.loads(await listener.response.aread())["data"]["reason"] == reason


async def test_nobody_online_is_an_ordinary_answer(serve: Serve, worker: FakeWorker) -> None:
    rest = await serve()
    worker.tell(serving=False, cause="disk")
    async with asyncio.timeout(60):
        while (await rest.client.get("/monitor")).json()["workers_healthy"]:
            pass
    async with listening(rest) as listener:
        assert listener.response.status_code == 503
        assert int(listener.response.headers["retry-after"]) >= 1
        assert json.loads(await listener.response.aread())["data"]["reason"] == "NO_WORKER"
    await rest.stop()
    (line,) = rest.log_lines()
    assert (line["http_status"], line["code"], line["reason"]) == (503, 1007, "NO_WORKER")


async def test_patience_that_is_too_short_is_an_ordinary_answer(serve: Serve, worker: FakeWorker) -> None:
    worker.growth = Grow(steps=1, step_s=1.0)
    rest = await serve()
    for _ in range(5):  # how long such a call takes is known by then
        assert (await rest.post(STYLES)).status_code == 200
    async with listening(rest, headers={"X-Request-Timeout-Ms": "900"}) as listener:
        assert listener.response.status_code == 504
        details = json.loads(await listener.response.aread())["data"]["details"]
    assert details["timeout_ms"] == 900
    assert details["needed_ms"] >= 1000


@pytest.mark.parametrize(
    ("refusal", "code", "reason"),
    [
        (Refuse(grpc.StatusCode.FAILED_PRECONDITION, "NO_FACE"), 1001, "NO_FACE"),
        (Refuse(grpc.StatusCode.INVALID_ARGUMENT, "REGION_EMPTY", field="region"), 1008, "REGION_EMPTY"),
        (Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"), 1007, "NO_WORKER"),  # there was but this one
    ],
)
async def test_what_goes_wrong_later_stands_in_the_result(
    serve: Serve, worker: FakeWorker, refusal: Refuse, code: int, reason: str
) -> None:
    worker.script.append(Grow(steps=1, midway=refusal))
    rest = await serve(max_retries=0)
    async with listening(rest, headers={"Accept-Language": "en"}) as listener:
        told = await listener.rest()
    assert listener.response.status_code == 200
    assert [name for name, _ in told] == ["queued", "progress", "result"]
    envelope = told[-1][1]
    assert (envelope["code"], envelope["data"]["reason"]) == (code, reason)
    assert envelope["message"].isascii()
    assert envelope["request_id"] == listener.response.headers["x-request-id"]
    await rest.stop()
    (line,) = rest.log_lines()
    assert (line["http_status"], line["code"], line["reason"]) == (200, code, reason)
    assert line["client"] == "answered"


async def test_a_full_store_stands_in_the_result(tmp_path: Path) -> None:
    mesh = FakeMesh()
    result = growth_pb2.RegionResult()
    result.marked_image.data = png(1_100_000)
    mesh.results = grown_region(result)
    static = {"dir": str(tmp_path / "p"), "max_bytes": 1_048_576}
    async with serving(tmp_path, mesh, static=static) as rest, listening(rest, GROW) as listener:
        told = await listener.rest()
    assert [name for name, _ in told] == ["queued", "result"]
    assert (told[-1][1]["code"], told[-1][1]["data"]["reason"]) == (1007, "STORE_FULL")


@pytest.mark.parametrize("failure", [KeyError("SENTINEL /etc/passwd"), asyncio.CancelledError()])
async def test_a_fault_of_ours_stands_in_the_result_without_its_words(
    rest: Rest, mesh: FakeMesh, failure: BaseException
) -> None:
    mesh.failure = failure
    with structlog.testing.capture_logs() as logs:
        async with listening(rest) as listener:
            told = await listener.rest()
    assert (told[-1][1]["code"], told[-1][1]["data"]["reason"]) == (1007, "EDGE_FAILED")
    assert "SENTINEL" not in json.dumps(told)
    assert [entry["log_level"] for entry in logs] == ["error"]


async def test_a_stream_that_runs_when_the_server_stops_gets_its_result(rest: Rest, mesh: FakeMesh) -> None:
    mesh.gate = asyncio.Event()
    async with listening(rest) as listener:
        assert await listener.next() == ("queued", {"position": 0, "attempt": 1})
        (running,) = rest.server.server_state.tasks
        running.cancel()
        ((name, envelope),) = await listener.rest()
    assert (name, envelope["data"]["reason"]) == ("result", "SHUTTING_DOWN")
    assert mesh.cancelled.is_set()


# Queue, retries, deadlines


async def test_the_place_in_the_queue_is_told(serve: Serve, worker: FakeWorker) -> None:
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    rest = await serve()
    async with contextlib.AsyncExitStack() as stack:
        first = await stack.enter_async_context(listening(rest))
        assert await first.next() == ("queued", {"position": 0, "attempt": 1})
        await hold.started.wait()
        second = await stack.enter_async_context(listening(rest))
        assert await second.next() == ("queued", {"position": 0, "attempt": 1})
        third = await stack.enter_async_context(listening(rest))
        assert await third.next() == ("queued", {"position": 1, "attempt": 1})
        hold.release.set()
        for listener in (first, second, third):
            assert (await listener.rest())[-1][1]["code"] == 0


async def test_a_retry_is_told_as_the_second_attempt(serve: Serve, worker: FakeWorker) -> None:
    worker.growth = Grow(steps=2, step_s=0.05)
    bad = FakeWorker()
    bad.growth = Grow(steps=0, midway_at=0, midway=Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"))
    await bad.start()
    rest = await serve(bad)
    async with listening(rest) as listener:
        told = await listener.rest()
    await bad.stop()
    assert told[:2] == [("queued", {"position": 0, "attempt": 1}), ("queued", {"position": 0, "attempt": 2})]
    moves = [data for name, data in told if name == "progress"]
    assert [(at["step"], at["total"], at["attempt"]) for at in moves] == [(1, 2, 2), (2, 2, 2)]
    assert told[-1][1]["code"] == 0
    await rest.stop()
    (line,) = rest.log_lines()
    assert (line["attempts"], line["workers"]) == (2, [bad.address, worker.address])


async def test_the_clients_patience_ends_a_stream(serve: Serve, worker: FakeWorker) -> None:
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    rest = await serve(max_retries=0)
    async with listening(rest, headers={"X-Request-Timeout-Ms": "3000"}) as listener:
        told = await listener.rest()
    assert (told[-1][1]["code"], told[-1][1]["data"]["reason"]) == (1007, "DEADLINE")
    assert told[-1][1]["data"]["details"]["timeout_ms"] == 3000
    await eventually(lambda: slot_of(worker) == worker_pb2.SLOT_STATE_ABANDONED)
    hold.release.set()


async def test_an_attempt_may_take_the_growth_timeout_and_no_longer(serve: Serve, worker: FakeWorker) -> None:
    """Not the one of fast calls, which is shorter here than the call takes."""
    worker.growth = Grow(steps=2, step_s=0.3)
    rest = await serve(max_retries=0, request_timeout_seconds=0.1, growth_timeout_seconds=30)
    assert (await rest.post(STYLES)).json()["code"] == 0
    await rest.stop()
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    rest = await serve(max_retries=0, growth_timeout_seconds=0.4)
    response = await rest.post(STYLES)
    assert response.status_code in {503, 504}, "its worker is out for it, and there was but this one"
    assert response.json()["code"] == 1007
    assert int(response.headers["retry-after"]) >= 1
    hold.release.set()


async def test_comments_keep_the_connection_alive(serve: Serve, worker: FakeWorker) -> None:
    hold = Hold()
    worker.script.append(Grow(steps=2, midway=hold))
    rest = await serve(comment_every_s=0.05)
    async with listening(rest) as listener:
        names = [""]
        while names[-1] != "progress":
            names.append(((await listener.next()) or ("end", {}))[0])
        assert [name for name in names if name] == ["queued", "progress"]
        assert [await listener.next() for _ in range(3)] == [("", {})] * 3
        hold.release.set()
        told = [event for event in await listener.rest() if event[0]]
    assert [name for name, _ in told] == ["progress", "result"]


# Clients


@pytest.mark.parametrize("leave", ["closes", "resets"])
async def test_a_client_that_leaves_cancels_what_runs(serve: Serve, worker: FakeWorker, leave: str) -> None:
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    rest = await serve()
    reader, writer = await rest.raw(form())
    await reader.readuntil(b"event: progress")
    if leave == "closes":
        writer.close()
    else:
        writer.transport.abort()
    await eventually(lambda: slot_of(worker) == worker_pb2.SLOT_STATE_ABANDONED)
    hold.release.set()
    await rest.stop()
    (line,) = rest.log_lines()
    assert (line["client"], line["http_status"], line["code"], line["reason"]) == ("client_closed", 200, None, "")
    assert (line["attempts"], line["worker"]) == (1, worker.address)
    assert line["bytes_out"] > 0


async def test_a_client_that_leaves_leaves_the_queue(serve: Serve, worker: FakeWorker) -> None:
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    rest = await serve()
    async with listening(rest) as first:
        await hold.started.wait()
        reader, writer = await rest.raw(form())
        await reader.readuntil(b"event: queued")
        async with listening(rest) as third:
            assert await third.next() == ("queued", {"position": 1, "attempt": 1})
        writer.close()
        await eventually(lambda: len(rest.server.server_state.tasks) == 1)  # both have gone
        async with listening(rest) as last:
            assert await last.next() == ("queued", {"position": 0, "attempt": 1})
            hold.release.set()
            assert (await last.rest())[-1][1]["code"] == 0
        assert (await first.rest())[-1][1]["code"] == 0
    assert len(worker.seen) == 2, "those that left never reached a worker"


async def test_a_client_that_does_not_read_costs_no_memory() -> None:
    """Of a thousand steps that it did not wait for it hears of the last."""
    reads, sent = asyncio.Event(), list[bytes]()
    scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "method": "POST", "headers": [], "client": None}

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            sent.append(message["body"])
            await reads.wait()

    async def work(news: News) -> object:
        news.queued(0, 1)
        await eventually(lambda: bool(sent))
        for step in range(1000):
            response = growth_pb2.GrowStylesResponse()
            response.progress.stage, response.progress.step = "growing", step
            news.progress(response, 1)
        reads.set()
        return {}

    room = Room(InForce(parse(b'{"workers": ["127.0.0.1:1"], "shared_password": "loopback-secret"}')))
    await StreamedAnswer(Exchange(scope, receive, room=room), work, 60.0)(scope, receive, send)
    names = [line for line in b"".join(sent).split(b"\n") if line.startswith(b"event")]
    assert names == [b"event: queued", b"event: progress", b"event: result"]
    assert b'"step":999' in sent[1]


def form(version: str = "1.1") -> bytes:
    """A styles request that wants events, as it goes over the wire."""
    part = b'--b\r\nContent-Disposition: form-data; name="image"; filename="p"\r\n\r\n' + PHOTO + b"\r\n--b--\r\n"
    head = f"POST {STYLES} HTTP/{version}\r\nHost: x\r\nAccept: text/event-stream\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\n"
    return head.encode() + f"Content-Length: {len(part)}\r\n\r\n".encode() + part


async def test_a_large_answer_arrives_whole(serve: Serve, worker: FakeWorker) -> None:
    worker.growth = Grow(steps=1, results=7, png_bytes=200_000)
    rest = await serve()
    async with listening(rest) as listener:
        told = await listener.rest()
    results = told[-1][1]["data"]["results"]
    assert len({result["grown_image_url"] for result in results}) == 7
    asked = growth_pb2.GrowStylesRequest.FromString(worker.seen[0].request)
    assert asked.photo.data == PHOTO


async def test_our_own_client_follows_a_call(serve: Serve, worker: FakeWorker) -> None:
    worker.growth = Grow(steps=2, step_s=0.05)
    rest = await serve()

    def follow() -> list[ClientTold]:
        with Client(f"http://127.0.0.1:{rest.port}") as client:
            return list(client.follow_styles(PHOTO, styles=["round", "m"], seed=3))

    *told, answer = await asyncio.to_thread(follow)
    assert told == [Queued(0, 1), Progress("growing", 1, 2, 1, 0, 1), Progress("growing", 2, 2, 1, 0, 1)]
    assert isinstance(answer, Envelope)
    assert answer.ok
    assert growth_pb2.GrowStylesRequest.FromString(worker.seen[0].request).seed == 3


async def test_our_own_client_ends_a_call_that_it_follows_no_longer(serve: Serve, worker: FakeWorker) -> None:
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    rest = await serve()

    def begin() -> None:
        with Client(f"http://127.0.0.1:{rest.port}") as client:
            for told in client.follow_grow(PHOTO, region=[(10, 10), (90, 10), (50, 90)]):
                if isinstance(told, Progress):
                    break

    await asyncio.to_thread(begin)
    await eventually(lambda: slot_of(worker) == worker_pb2.SLOT_STATE_ABANDONED)
    hold.release.set()


async def test_a_mask_streams_as_well(serve: Serve, worker: FakeWorker) -> None:
    rest = await serve()
    files = {"image": ("p.jpg", PHOTO), "mask": ("m.png", picture("PNG", (240, 320)))}
    async with rest.client.stream("POST", GROW, files=files, headers=EVENTS) as response:
        told = await Listener(response).rest()
    assert told[-1][1]["code"] == 0
    assert growth_pb2.GrowRegionRequest.FromString(worker.seen[0].request).WhichOneof("area") == "mask"
