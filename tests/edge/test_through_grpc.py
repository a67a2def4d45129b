"""One call all the way: HTTP, pool, a real channel, a scripted worker, and back."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from hair.analysis.v1 import measure_pb2
from hair.worker.v1 import worker_service_pb2 as worker_pb2
from starlette.middleware.base import BaseHTTPMiddleware

from edge.app import create_app
from edge.exchange import ApiExchanges
from edge.pool.config import DispatchConfig, PoolConfig
from edge.settings import parse
from edge.unread import WithoutUnread
from edge.upstream.channel import ChannelSecurity
from edge.upstream.driver import Driver
from tests.edge.rest import (
    GROW,
    HAIRLINES,
    MASKS,
    MEASURE,
    PHOTO,
    STYLES,
    FakeMesh,
    Rest,
    eventually,
    serving,
)
from tests.fakes.worker import PASSWORD, Answer, FakeWorker, Refuse, png


@pytest.fixture
async def rest(tmp_path: Path, worker: FakeWorker) -> AsyncIterator[Rest]:
    config = PoolConfig(workers=(worker.address,), dispatch=DispatchConfig(queue_wait_seconds=0.2, max_retries=0))
    async with serving(tmp_path, Driver(config, PASSWORD, ChannelSecurity())) as running:
        yield running


async def test_a_photo_in_and_a_picture_out(rest: Rest, worker: FakeWorker) -> None:
    worker.script.append(Answer(png_bytes=300_000))
    response = await rest.measure(headers={"X-Request-ID": "mine"}, pupillary_distance_mm="64")
    assert response.status_code == 200
    data = response.json()["data"]
    assert data["scale"]["source"] == "iris"
    assert data["measurements"]["face_height"]["mm"] == 185.0
    picture = await rest.client.get(data["annotated_image_url"])
    assert picture.content == png(300_000)
    (seen,) = worker.seen
    asked = measure_pb2.MeasureRequest.FromString(seen.request)
    assert asked.photo.data == PHOTO
    assert asked.pupillary_distance_mm == 64
    assert seen.metadata["x-request-id"] == "mine"
    await rest.stop()
    (line,) = rest.log_lines()
    assert (line["worker"], line["attempts"]) == (worker.address, 1)
    assert (line["call_id"], line["workers"]) == (seen.call_id, [worker.address])


async def test_the_request_log_says_which_workers_were_tried_and_joins_the_other_logs(
    tmp_path: Path, worker: FakeWorker
) -> None:
    bad = FakeWorker(default=Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"))
    await bad.start()
    config = PoolConfig(workers=(bad.address, worker.address))
    with structlog.testing.capture_logs() as lines:
        async with serving(tmp_path, Driver(config, PASSWORD, ChannelSecurity())) as rest:
            assert (await rest.measure(headers={"X-Request-ID": "mine"})).status_code == 200
    await bad.stop()
    (line,) = rest.log_lines()
    assert (line["workers"], line["worker"], line["attempts"]) == ([bad.address, worker.address], worker.address, 2)
    assert line["call_id"] == bad.seen[0].call_id == worker.seen[0].call_id
    (failed,) = [each for each in lines if each["event"] == "attempt_failed"]
    assert (failed["call_id"], failed["request_id"]) == (line["call_id"], "mine")


@pytest.mark.parametrize(
    ("refusal", "http_status", "code", "reason", "details"),
    [
        (
            Refuse(grpc.StatusCode.FAILED_PRECONDITION, "YAW", {"yaw_deg": "31.5", "max": "25"}),
            400,
            1003,
            "YAW",
            {"yaw_deg": 31.5, "max": 25},
        ),
        (
            Refuse(grpc.StatusCode.INVALID_ARGUMENT, "DAMAGED_IMAGE", {"format": "JPEG"}),
            400,
            1005,
            "DAMAGED_IMAGE",
            {"format": "JPEG"},
        ),
        (Refuse(grpc.StatusCode.FAILED_PRECONDITION, "INPUT_FAILED"), 400, 1005, "INPUT_FAILED", {}),
        (Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"), 503, 1007, None, {}),
        (Refuse(grpc.StatusCode.UNAVAILABLE), 503, 1007, None, {}),
    ],
)
async def test_what_a_worker_refuses(
    rest: Rest,
    worker: FakeWorker,
    refusal: Refuse,
    http_status: int,
    code: int,
    reason: str | None,
    details: dict[str, object],
) -> None:
    worker.script.append(refusal)
    response = await rest.measure()
    body = response.json()
    assert (response.status_code, body["code"]) == (http_status, code)
    if reason:
        assert (body["data"]["reason"], body["data"]["details"]) == (reason, details)
    assert ("retry-after" in response.headers) == (code == 1007)


async def test_a_busy_pool(rest: Rest, worker: FakeWorker) -> None:
    hold = worker.hold()
    first = asyncio.create_task(rest.measure())
    await hold.started.wait()
    second = await rest.measure()
    assert (second.status_code, second.json()["data"]["reason"]) == (503, "BUSY")
    hold.release.set()
    assert (await first).status_code == 200


async def test_patience_ends(rest: Rest, worker: FakeWorker) -> None:
    hold = worker.hold()
    response = await rest.measure(headers={"X-Request-Timeout-Ms": "150"})
    assert (response.status_code, response.json()["code"]) == (504, 1007)
    assert response.json()["data"]["reason"] == "DEADLINE"
    hold.release.set()


async def test_b38_a_worker_that_never_answers_costs_no_more_than_one_attempt(
    tmp_path: Path, worker: FakeWorker
) -> None:
    dispatch = DispatchConfig(queue_wait_seconds=0.2, max_retries=0, request_timeout_seconds=2)
    config = PoolConfig(workers=(worker.address,), dispatch=dispatch)
    hold = worker.hold()
    async with serving(tmp_path, Driver(config, PASSWORD, ChannelSecurity())) as rest, asyncio.timeout(60):
        response = await rest.measure()
        assert response.status_code in {503, 504}
        assert response.json()["code"] == 1007
        assert int(response.headers["retry-after"]) >= 1
        await eventually(lambda: slot_of(worker) == worker_pb2.SLOT_STATE_ABANDONED)
        hold.release.set()
        await eventually(lambda: slot_of(worker) == worker_pb2.SLOT_STATE_FREE)


async def test_17_a_queued_call_is_answered_when_its_own_time_is_up(tmp_path: Path, worker: FakeWorker) -> None:
    config = PoolConfig(workers=(worker.address,))
    hold = worker.hold()
    async with serving(tmp_path, Driver(config, PASSWORD, ChannelSecurity())) as rest:
        running = asyncio.create_task(rest.measure())
        await hold.started.wait()
        begun_s = time.monotonic()
        response = await rest.measure(headers={"X-Request-Timeout-Ms": "1000"})
        assert time.monotonic() - begun_s > 0.9
        assert (response.status_code, response.json()["data"]["reason"]) == (504, "DEADLINE")
        assert not running.done(), "nothing but its own time ended it"
        hold.release.set()
        assert (await running).status_code == 200
        assert len(worker.seen) == 1


@pytest.mark.parametrize("leave", ["closes", "resets"])
async def test_18_a_client_that_leaves_frees_the_worker(rest: Rest, worker: FakeWorker, leave: str) -> None:
    hold = worker.hold()
    _reader, writer = await rest.raw(form())
    await hold.started.wait()
    if leave == "closes":
        writer.close()
    else:
        writer.transport.abort()
    await eventually(lambda: slot_of(worker) == worker_pb2.SLOT_STATE_ABANDONED)
    assert (await rest.measure()).json()["data"]["reason"] == "BUSY", "the slot is free when the thread has ended"
    hold.release.set()
    await eventually(lambda: slot_of(worker) == worker_pb2.SLOT_STATE_FREE)
    assert (await rest.measure()).status_code == 200
    await rest.stop()
    left, waited, answered = rest.log_lines()
    assert left["client"] == "client_closed"
    assert (left["call_id"], left["workers"], left["attempts"]) == (worker.seen[0].call_id, [worker.address], 1)
    assert (waited["reason"], waited["worker"], waited["workers"], waited["attempts"]) == ("BUSY", "", [], 0)
    assert answered["call_id"] == worker.seen[-1].call_id


def test_19_no_middleware_stands_between_a_client_that_leaves_and_its_call(tmp_path: Path) -> None:
    """Behind a `BaseHTTPMiddleware` nothing hears of it."""
    content = {
        "workers": ["127.0.0.1:1"],
        "shared_password": PASSWORD,
        "static": {"dir": str(tmp_path)},
        "request_log": {"path": str(tmp_path / "log")},
    }
    app = create_app(parse(json.dumps(content).encode()), FakeMesh())
    kinds: list[object] = [middleware.cls for middleware in app.user_middleware]
    assert kinds == [ApiExchanges, WithoutUnread]
    assert not {BaseHTTPMiddleware} & {*ApiExchanges.__mro__, *WithoutUnread.__mro__}


def slot_of(worker: FakeWorker) -> int:
    """What its status says of its slot."""
    return worker.status().slot.state


def form() -> bytes:
    """A measure request, as it goes over the wire."""
    part = b'--b\r\nContent-Disposition: form-data; name="image"; filename="p"\r\n\r\n' + PHOTO + b"\r\n--b--\r\n"
    head = f"POST {MEASURE} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    return head.encode() + f"Content-Length: {len(part)}\r\n\r\n".encode() + part


async def test_monitor_follows_the_worker(rest: Rest, worker: FakeWorker) -> None:
    assert (await rest.client.get("/monitor")).json()["workers_healthy"] == 1
    worker.tell(serving=False, cause="disk")
    async with asyncio.timeout(60):
        while (await rest.client.get("/monitor")).json()["workers_healthy"]:
            pass
    response = await rest.measure()
    assert (response.status_code, response.json()["data"]["reason"]) == (503, "NO_WORKER")
    assert response.json()["message"] == "后端服务暂不可用，请稍后重试"


@pytest.mark.parametrize(
    ("path", "method", "fields"),
    [
        (HAIRLINES, "DesignHairlines", {"styles": "m"}),
        (MASKS, "SegmentFace", {"parts": "hair"}),
        (STYLES, "GrowStyles", {"styles": "m"}),
        (GROW, "GrowRegion", {"region": "[[10, 10], [90, 10], [50, 90]]"}),
    ],
)
async def test_every_call_reaches_its_rpc_and_its_pictures_can_be_read(
    rest: Rest, worker: FakeWorker, path: str, method: str, fields: dict[str, Any]
) -> None:
    response = await rest.post(path, **fields)
    assert (response.status_code, response.json()["code"]) == (200, 0)
    assert [seen.method for seen in worker.seen] == [method]
    urls = re.findall(r'"(http[^"]+\.png)"', response.text)
    assert urls
    assert {(await rest.client.get(url)).content for url in urls} == {png(2_000)}
