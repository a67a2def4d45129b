"""A worker in this process, on a loopback socket, with everything a client needs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RequestInfo, RetryInfo
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_status.rpc_status import from_call
from hair.analysis.v1 import common_pb2, growth_pb2, measure_pb2
from hair.analysis.v1.analyze_service_pb2_grpc import AnalyzeServiceStub
from hair.worker.v1 import worker_service_pb2 as pb
from hair.worker.v1.worker_service_pb2_grpc import WorkerServiceStub

from hairmesh.wire import ANALYZE_SERVICE, CLIENT_OPTIONS, TOKEN_KEY
from tests.worker.fakes import FakePipeline
from worker.engine import PipelineLoader
from worker.server import Worker
from worker.settings import Settings
from worker.thresholds import Thresholds

MessageT = TypeVar("MessageT", bound=Message)

PATIENCE_S = 100.0
"""For whatever takes moments: a busy machine is no reason to fail."""
BRIEF_S = 4.0
"""Deadline of a call that is to run out of time, and to have begun before, on however busy a machine."""
PASSWORD = "correct-horse"
Metadata = tuple[tuple[str, str], ...]
TOKEN: Metadata = ((TOKEN_KEY, PASSWORD),)
QUICK = Thresholds(
    beat_s=0.02,
    progress_period_s=0.1,
    load_retry_s=0.05,
    canary_retry_s=0.05,
    disk_out_min_s=0.1,
    dep_retry_s=0.02,
    watch_gap_s=0.0,
)
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def settings(**changes: object) -> Settings:
    """Loopback, a free port, no disk check, no waiting at the end."""
    plain: dict[str, object] = {
        "listen": "127.0.0.1:0",
        "accept_passwords": [PASSWORD],
        "health": {"min_free_gb": 0},
        "drain_delay_seconds": 0,
        "drain_grace_seconds": 5,
    }
    return Settings.model_validate({**plain, **changes})


def request(data: bytes, **fields: Any) -> measure_pb2.MeasureRequest:
    """A measure call with `data` as its photo."""
    return measure_pb2.MeasureRequest(photo=common_pb2.Image(data=data), **fields)


class Client:
    """Stubs on one channel."""

    def __init__(self, address: str, password: str = PASSWORD) -> None:
        self.target = address
        self.token = ((TOKEN_KEY, password),)
        self.channel = aio.insecure_channel(address, options=CLIENT_OPTIONS)
        self.analyze = AnalyzeServiceStub(self.channel)
        self.worker = WorkerServiceStub(self.channel)
        self.health: Any = HealthStub(self.channel)

    def measure(
        self, data: bytes, *, timeout_s: float = 60.0, metadata: Metadata | None = None, **fields: Any
    ) -> aio.UnaryUnaryCall[measure_pb2.MeasureRequest, measure_pb2.MeasureResponse]:
        return self.analyze.Measure(request(data, **fields), timeout=timeout_s, metadata=metadata or self.token)

    def grow_styles(
        self, data: bytes, *, timeout_s: float = 60.0, metadata: Metadata | None = None, **fields: Any
    ) -> aio.UnaryStreamCall[growth_pb2.GrowStylesRequest, growth_pb2.GrowStylesResponse]:
        message = growth_pb2.GrowStylesRequest(photo=common_pb2.Image(data=data), **fields)
        return self.analyze.GrowStyles(message, timeout=timeout_s, metadata=metadata or self.token)

    def grow_region(
        self, data: bytes, *, timeout_s: float = 60.0, metadata: Metadata | None = None, **fields: Any
    ) -> aio.UnaryStreamCall[growth_pb2.GrowRegionRequest, growth_pb2.GrowRegionResponse]:
        message = growth_pb2.GrowRegionRequest(photo=common_pb2.Image(data=data), **fields)
        return self.analyze.GrowRegion(message, timeout=timeout_s, metadata=metadata or self.token)

    async def status(self, metadata: Metadata | None = None) -> pb.WorkerStatus:
        response = await self.worker.GetStatus(pb.GetStatusRequest(), metadata=metadata or self.token, timeout=60)
        return response.status

    async def until(self, good: Callable[[pb.WorkerStatus], bool]) -> pb.WorkerStatus:
        """The first state told by `WatchStatus` that is `good`."""
        stream = self.worker.WatchStatus(pb.WatchStatusRequest(), metadata=self.token, timeout=60)
        try:
            async for message in stream:
                if good(message.status):
                    return message.status
        finally:
            stream.cancel()
        raise AssertionError("the stream ended first")

    async def until_serving(self) -> pb.WorkerStatus:
        return await self.until(lambda status: status.state == pb.SERVING_STATE_SERVING)

    async def until_slot(self, state: pb.SlotState.ValueType) -> pb.WorkerStatus:
        return await self.until(lambda status: status.slot.state == state)

    async def check(self, name: str = ANALYZE_SERVICE, metadata: Metadata | None = None) -> int:
        response = await self.health.Check(
            health_pb2.HealthCheckRequest(service=name),
            metadata=self.token if metadata is None else metadata,
            timeout=60,
        )
        status: int = response.status
        return status

    async def reason(self, name: str = ANALYZE_SERVICE) -> str:
        call = self.health.Check(health_pb2.HealthCheckRequest(service=name), metadata=self.token, timeout=60)
        await call
        return str(dict(await call.trailing_metadata()).get("x-health-reason", ""))


@contextlib.asynccontextmanager
async def running(
    load: PipelineLoader, *, thresholds: Thresholds = QUICK, warm: bool = True, **changes: object
) -> AsyncIterator[tuple[Worker, Client]]:
    """A worker and a client of it; both are gone afterwards."""
    worker = await Worker.start(settings(**changes), load_pipeline=load, thresholds=thresholds)
    client = Client(worker.address)
    try:
        if warm:
            await client.until_serving()
        yield worker, client
    finally:
        await client.channel.close()
        await worker.stop()


@contextlib.contextmanager
def released(pipeline: FakePipeline) -> Iterator[FakePipeline]:
    """Lets go of every held call at the end, so that no thread outlives its test."""
    try:
        yield pipeline
    finally:
        pipeline.release.set()
        pipeline.canary_gate.set()


async def started(pipeline: FakePipeline) -> None:
    """Until the compute thread works on a call."""
    assert await asyncio.to_thread(pipeline.started.wait, PATIENCE_S)
    pipeline.started.clear()


async def whole(stream: AsyncIterable[MessageT]) -> list[MessageT]:
    """Every message of a stream."""
    return [message async for message in stream]


def kinds(messages: Iterable[Message]) -> list[str]:
    """Which message of a growth call each is, those of progress left out."""
    named = [message.WhichOneof("event") for message in messages]
    return [name for name in named if name and name != "progress"]


async def refused(call: Any) -> tuple[grpc.StatusCode, ErrorInfo, dict[str, Message]]:
    """The code, the error info and all details of a call that must fail."""
    try:
        await call
    except aio.AioRpcError as error:
        status = from_call(error)  # type: ignore[arg-type]  # the stub knows synchronous calls only
        details: dict[str, Message] = {}
        for packed in status.details if status else ():
            for kind in (ErrorInfo, BadRequest, RetryInfo, RequestInfo):
                if packed.Is(kind.DESCRIPTOR):
                    message = kind()
                    packed.Unpack(message)
                    details[kind.DESCRIPTOR.name] = message
        info = details.get("ErrorInfo", ErrorInfo())
        assert isinstance(info, ErrorInfo)
        return error.code(), info, details
    raise AssertionError("the call was answered")
