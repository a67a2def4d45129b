"""The fake worker keeps the rules of a real one, or tests against it would prove nothing."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator

import grpc
import pytest
from hair.analysis.v1 import analyze_service_pb2_grpc, growth_pb2, measure_pb2
from hair.worker.v1 import worker_service_pb2 as worker_pb2
from hair.worker.v1 import worker_service_pb2_grpc

from hairmesh import wire
from tests.fakes.worker import PASSWORD, FakeWorker, Grow, Hold, Refuse, measure_response, png

METADATA = ((wire.TOKEN_KEY, PASSWORD), (wire.CALL_ID_KEY, "call-1"))


@pytest.fixture
async def worker() -> AsyncIterator[FakeWorker]:
    made = FakeWorker()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def channel(worker: FakeWorker) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(worker.address, options=wire.CLIENT_OPTIONS) as made:
        yield made


@pytest.mark.parametrize("size_bytes", [200, 2_000, 300_000])
def test_its_picture_is_a_png_of_the_stated_size(size_bytes: int) -> None:
    data = png(size_bytes)
    assert len(data) == size_bytes
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    assert len(zlib.decompress(data[start + 4 : start + 4 + length])) == height * (width + 1)
    response = measure_pb2.MeasureResponse.FromString(measure_response(size_bytes))
    assert response.annotated_image.data == data


async def test_four_calls_at_once_and_one_computes(worker: FakeWorker, channel: grpc.aio.Channel) -> None:
    stub = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
    hold = worker.hold()
    first = stub.Measure(measure_pb2.MeasureRequest(), metadata=METADATA)
    await hold.started.wait()
    for _ in range(3):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Measure(measure_pb2.MeasureRequest(), metadata=METADATA)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    hold.release.set()
    await first
    assert worker.computing_most == 1


async def test_the_slot_outlives_a_cancelled_call_and_its_status_says_so(
    worker: FakeWorker, channel: grpc.aio.Channel
) -> None:
    stub = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
    status = worker_service_pb2_grpc.WorkerServiceStub(channel).WatchStatus(
        worker_pb2.WatchStatusRequest(), metadata=METADATA
    )
    hold = worker.hold()
    call = stub.Measure(measure_pb2.MeasureRequest(), metadata=METADATA)
    await hold.started.wait()
    call.cancel()
    seen = []
    async with asyncio.timeout(60):
        async for message in status:
            slot = message.status.slot
            seen.append((slot.state, slot.call.call_id))
            if slot.state == worker_pb2.SLOT_STATE_ABANDONED:
                hold.release.set()
            if slot.state == worker_pb2.SLOT_STATE_FREE and slot.epoch == 1:
                break
    assert seen[-2:] == [(worker_pb2.SLOT_STATE_ABANDONED, "call-1"), (worker_pb2.SLOT_STATE_FREE, "")]


async def test_strangers_learn_nothing(worker: FakeWorker, channel: grpc.aio.Channel) -> None:
    stub = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Measure(measure_pb2.MeasureRequest(), metadata=((wire.TOKEN_KEY, "guess"),))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_former_password_opens_as_well(worker: FakeWorker, channel: grpc.aio.Channel) -> None:
    worker.password, worker.former_password = "new", PASSWORD
    stub = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
    for password in ("new", PASSWORD):
        await stub.Measure(measure_pb2.MeasureRequest(), metadata=((wire.TOKEN_KEY, password),))


async def test_a_slow_call_tells_its_steps_then_its_results_then_the_summary(
    worker: FakeWorker, channel: grpc.aio.Channel
) -> None:
    stub = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
    worker.growth = Grow(steps=3, results=2, png_bytes=5_000)
    request = growth_pb2.GrowStylesRequest()
    told = [message async for message in stub.GrowStyles(request, metadata=METADATA)]
    assert [message.WhichOneof("event") for message in told] == [*["progress"] * 3, *["result"] * 2, "summary"]
    assert [(message.progress.step, message.progress.total) for message in told[:3]] == [(1, 3), (2, 3), (3, 3)]
    assert [len(message.result.grown_image.data) for message in told[3:5]] == [5_000, 5_000]
    assert worker.status().slot.state == worker_pb2.SLOT_STATE_FREE


async def test_a_slow_call_can_fail_midway(worker: FakeWorker, channel: grpc.aio.Channel) -> None:
    stub = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
    worker.script.append(Grow(midway=Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"), midway_at=2))
    call = stub.GrowRegion(growth_pb2.GrowRegionRequest(), metadata=METADATA)
    for _ in range(2):
        message = await call.read()
        assert isinstance(message, growth_pb2.GrowRegionResponse)
        assert message.WhichOneof("event") == "progress"
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()
    assert caught.value.code() is grpc.StatusCode.INTERNAL


async def test_a_slow_call_that_hangs_midway_keeps_the_slot_and_its_counter_stands_still(
    worker: FakeWorker, channel: grpc.aio.Channel
) -> None:
    stub = analyze_service_pb2_grpc.AnalyzeServiceStub(channel)
    hold = Hold()
    worker.script.append(Grow(midway=hold, midway_at=1))
    call = stub.GrowRegion(growth_pb2.GrowRegionRequest(), metadata=METADATA)
    first = await call.read()
    assert isinstance(first, growth_pb2.GrowRegionResponse)
    await hold.started.wait()
    slot = worker.status().slot
    assert (slot.state, slot.call.stage, slot.call.step_counter) == (worker_pb2.SLOT_STATE_BUSY, "growing", 2)
    call.cancel()
    async with asyncio.timeout(60):
        while worker.status().slot.state != worker_pb2.SLOT_STATE_ABANDONED:  # noqa: ASYNC110  (it is the outside that looks)
            await asyncio.sleep(0.005)
    hold.release.set()
