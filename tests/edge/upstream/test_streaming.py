"""The slow calls: progress as it comes, results of the attempt that succeeded, what becomes of one that does not."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from google.protobuf.message import Message
from hair.analysis.v1 import growth_pb2
from hair.worker.v1 import worker_service_pb2 as worker_pb2

from edge.calls import Call, CallFailedError
from edge.pool.config import DispatchConfig
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, Spawn, until
from tests.fakes.worker import Grow, Hold, Refuse


class Progress:
    """What a client is told on the way."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []
        """Attempt and step of every message."""

    def __call__(self, message: Message, attempt: int) -> None:
        assert isinstance(message, growth_pb2.GrowStylesResponse)
        self.told.append((attempt, message.progress.step))


def call(progress: Progress | None = None, *, timeout_s: float | None = None) -> Call:
    message = growth_pb2.GrowStylesRequest()
    message.photo.data = b"photo"
    return Call("GrowStyles", message, "request-1", slow=True, timeout_s=timeout_s, on_progress=progress)


def styles(results: tuple[Message, ...]) -> list[str]:
    return [each.result.style for each in results if isinstance(each, growth_pb2.GrowStylesResponse)]


async def test_progress_comes_on_the_way_and_results_at_the_end(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    hold = Hold()
    worker.growth = Grow(steps=3, results=2, png_bytes=100_000, midway_at=2, midway=hold)
    mesh, progress = await driver(worker.address), Progress()
    running = asyncio.create_task(mesh.call(call(progress)))
    await hold.started.wait()
    await until(lambda: progress.told == [(1, 1), (1, 2)])
    assert not running.done()
    hold.release.set()
    outcome = await running
    assert progress.told == [(1, 1), (1, 2), (1, 3)]
    assert styles(outcome.results) == ["style-0", "style-1", ""], "two results and the summary"
    assert isinstance(outcome.response, growth_pb2.GrowStylesResponse)
    assert outcome.response is outcome.results[-1]
    assert outcome.response.summary.backend == "local"
    assert (outcome.worker, outcome.attempts) == (worker.address, 1)


async def test_the_other_slow_call_streams_as_well_and_nobody_need_listen(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    (worker,) = await workers(1)
    mesh = await driver(worker.address)
    message = growth_pb2.GrowRegionRequest()
    message.photo.data = b"photo"
    outcome = await mesh.call(Call("GrowRegion", message, "request-1", slow=True))
    assert [type(each) for each in outcome.results] == [growth_pb2.GrowRegionResponse] * 2
    assert worker.seen[0].method == "GrowRegion"


async def test_a_worker_killed_midway_costs_an_attempt_and_its_results_are_dropped(
    spawn: Spawn, driver: MakeDriver
) -> None:
    dies, lives = await spawn(steps=1_000, step_s=0.02), await spawn(steps=2)
    mesh, progress = await driver(dies.address, lives.address), Progress()
    running = asyncio.create_task(mesh.call(call(progress)))
    await until(lambda: len(progress.told) >= 2)
    await dies.end()
    outcome = await running
    assert (outcome.worker, outcome.attempts) == (lives.address, 2)
    assert progress.told[-2:] == [(2, 1), (2, 2)], "told which attempt it is"
    assert styles(outcome.results) == ["style-0", ""]


async def test_a_refusal_midway_is_as_good_as_one_at_once(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    worker.growth = Grow(midway=Refuse(grpc.StatusCode.FAILED_PRECONDITION, "NO_FACE", {"faces": "0"}))
    mesh = await driver(worker.address)
    with pytest.raises(CallFailedError) as caught:
        await mesh.call(call())
    assert (caught.value.reason, caught.value.details) == ("NO_FACE", {"faces": 0})
    assert mesh.online().healthy == 1


async def test_a_client_that_leaves_cancels_the_stream(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    mesh = await driver(worker.address)
    leaving = asyncio.create_task(mesh.call(call()))
    await hold.started.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await until(lambda: worker.status().slot.state == worker_pb2.SLOT_STATE_ABANDONED)
    next_ = asyncio.create_task(mesh.call(call()))
    await until(lambda: mesh.snapshot().endpoints[0].stage == "growing")
    assert len(worker.seen) == 1, "the slot follows the computing"
    hold.release.set()
    assert (await next_).attempts == 1


async def test_a_stream_that_hangs_ends_at_its_deadline(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    mesh = await driver(worker.address, dispatch=DispatchConfig(max_retries=0))
    with pytest.raises(CallFailedError) as caught:
        await mesh.call(call(timeout_s=0.5))
    assert caught.value.reason == "DEADLINE"
    await until(lambda: worker.status().slot.state == worker_pb2.SLOT_STATE_ABANDONED)
    hold.release.set()


async def test_closing_ends_a_stream(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    mesh = await driver(worker.address)
    running = asyncio.create_task(mesh.call(call()))
    await hold.started.wait()
    await mesh.close()
    with pytest.raises(CallFailedError, match="NO_WORKER"):
        await running
    hold.release.set()


async def test_an_error_of_whoever_listens_ends_the_call_and_the_rpc(workers: MakeWorkers, driver: MakeDriver) -> None:
    (worker,) = await workers(1)
    hold = Hold()
    worker.script.append(Grow(midway=hold))
    mesh = await driver(worker.address)

    def listen(_message: Message, _attempt: int) -> None:
        raise ValueError("cannot be told")

    message = growth_pb2.GrowStylesRequest()
    with pytest.raises(ValueError, match="cannot be told"):
        await mesh.call(Call("GrowStyles", message, "request-1", slow=True, on_progress=listen))
    hold.release.set()
    await until(lambda: worker.status().slot.state == worker_pb2.SLOT_STATE_FREE)
    assert mesh.snapshot().inside == 0
