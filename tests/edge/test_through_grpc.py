"""One call all the way: HTTP, pool, a real channel, a scripted worker, and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from hair.analysis.v1 import measure_pb2

from edge.pool.config import DispatchConfig, PoolConfig
from edge.upstream.channel import ChannelSecurity
from edge.upstream.driver import Driver
from tests.edge.rest import PHOTO, Rest, serving
from tests.fakes.worker import PASSWORD, Answer, FakeWorker, Refuse, png


@pytest.fixture
async def worker() -> AsyncIterator[FakeWorker]:
    started = FakeWorker()
    await started.start()
    yield started
    await started.stop()


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


async def test_a_client_that_leaves_frees_the_worker(rest: Rest, worker: FakeWorker) -> None:
    hold = worker.hold()
    request = asyncio.create_task(rest.measure())
    await hold.started.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    hold.release.set()
    assert (await rest.measure()).status_code == 200


async def test_monitor_follows_the_worker(rest: Rest, worker: FakeWorker) -> None:
    assert (await rest.client.get("/monitor")).json()["workers_healthy"] == 1
    worker.tell(serving=False, cause="disk")
    async with asyncio.timeout(5):
        while (await rest.client.get("/monitor")).json()["workers_healthy"]:
            pass
    response = await rest.measure()
    assert (response.status_code, response.json()["data"]["reason"]) == (503, "NO_WORKER")
    assert response.json()["message"] == "后端服务暂不可用，请稍后重试"
