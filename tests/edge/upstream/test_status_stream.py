"""A worker whose status cannot be read gets no calls: the slot of one that is left behind would never come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import pytest
from hair.analysis.v1 import measure_pb2
from hair.worker.v1 import worker_service_pb2 as pb
from hair.worker.v1 import worker_service_pb2_grpc

from edge.calls import Call, CallFailedError
from edge.pool.config import HealthCheckConfig
from tests.edge.upstream.conftest import MakeDriver, until
from tests.fakes.answers import Context
from tests.fakes.worker import FakeWorker

CALL = Call("Measure", measure_pb2.MeasureRequest(), "request-1")
SELDOM = HealthCheckConfig(interval_seconds=3_600)
QUICK = HealthCheckConfig(interval_seconds=0.05, timeout_seconds=0.5)
Misbehaviour = Callable[[Context], Awaitable[object]]


async def refuse(context: Context) -> None:
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such method")


async def forbid(context: Context) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "not you")


async def raise_(_context: Context) -> None:
    raise KeyError("a fault of the worker's")


async def end(_context: Context) -> None:
    """Not one message."""


async def be_silent(_context: Context) -> None:
    await asyncio.Event().wait()


class OldWorker(FakeWorker):
    """One whose `WatchStatus` does something else, as long as `misbehave` is there."""

    misbehave: Misbehaviour | None = None


@pytest.fixture
async def worker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OldWorker]:
    made = OldWorker()
    add = worker_service_pb2_grpc.add_WorkerServiceServicer_to_server

    def add_misbehaving(servicer: worker_service_pb2_grpc.WorkerServiceServicer, server: grpc.aio.Server) -> None:
        good = servicer.WatchStatus

        async def watch_status(
            request: pb.WatchStatusRequest, context: Context
        ) -> AsyncIterator[pb.WatchStatusResponse]:
            if made.misbehave is not None:
                await made.misbehave(context)
                return
            async for message in good(request, context):  # type: ignore[union-attr, arg-type]
                yield message

        servicer.WatchStatus = watch_status  # type: ignore[method-assign]
        add(servicer, server)

    monkeypatch.setattr(worker_service_pb2_grpc, "add_WorkerServiceServicer_to_server", add_misbehaving)
    await made.start()
    yield made
    await made.stop()


@pytest.mark.parametrize(
    ("misbehave", "evidence"),
    [
        (refuse, "probe: WatchStatus: UNIMPLEMENTED"),
        (forbid, "probe: WatchStatus: UNAUTHENTICATED"),
        (raise_, "probe: WatchStatus: UNKNOWN"),
        (end, "probe: WatchStatus: no status"),
        (be_silent, "probe: WatchStatus: no answer"),
    ],
)
async def test_it_is_not_online_until_its_status_is_read(
    worker: OldWorker, driver: MakeDriver, misbehave: Misbehaviour, evidence: str
) -> None:
    worker.misbehave = misbehave
    mesh = await driver(worker.address, health=QUICK)
    assert mesh.online().healthy == 0, "not even at first, while its health is good"
    await until(lambda: mesh.snapshot().endpoints[0].state == "NOT_SERVING")
    (endpoint,) = mesh.snapshot().endpoints
    assert (endpoint.cause, endpoint.evidence) == ("probe", evidence)
    with pytest.raises(CallFailedError, match="NO_WORKER"):
        await mesh.call(CALL)
    worker.misbehave = None
    await until(lambda: mesh.online().healthy == 1)
    assert (await mesh.call(CALL)).attempts == 1


async def test_a_successor_that_lacks_it_is_noticed_without_a_probe_that_is_due(
    worker: OldWorker, driver: MakeDriver
) -> None:
    mesh = await driver(worker.address, health=SELDOM)
    assert mesh.online().healthy == 1
    await worker.stop()
    worker.misbehave = refuse
    await worker.start()
    await until(lambda: mesh.snapshot().endpoints[0].evidence == "probe: WatchStatus: UNIMPLEMENTED")
    assert mesh.online().healthy == 0
