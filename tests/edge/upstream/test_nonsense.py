"""A server that answers with bytes that are no message of ours, wherever it likes: another program on the port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf.message import Message
from grpc import aio
from grpc_health.v1 import health_pb2
from hair.analysis.v1 import growth_pb2, measure_pb2
from hair.worker.v1 import worker_service_pb2 as worker_pb2

from edge.calls import Call, CallFailedError
from edge.pool.config import HealthCheckConfig
from edge.upstream.driver import Driver
from hairmesh import wire
from tests.edge.upstream.conftest import MakeDriver, until

NONSENSE = b"\xff\xff\xff\xff"
GOOD: dict[str, Message] = {
    "Check": health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING),
    "Watch": health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING),
    "WatchStatus": worker_pb2.WatchStatusResponse(
        status=worker_pb2.WorkerStatus(boot_id="boot", state=worker_pb2.SERVING_STATE_SERVING)
    ),
    "Measure": measure_pb2.MeasureResponse(),
    "GrowStyles": growth_pb2.GrowStylesResponse(summary=growth_pb2.GrowthSummary()),
}
A_RESULT = growth_pb2.GrowStylesResponse(result=growth_pb2.StyleResult(style="one"))
OFTEN = HealthCheckConfig(interval_seconds=0.05)


class Babbler(grpc.GenericRpcHandler):
    """Answers every RPC well, but for those in `nonsense`."""

    def __init__(self) -> None:
        self.nonsense: dict[str, bytes] = {}
        self.asked: list[str] = []

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        name = str(details.method).rpartition("/")[2]

        async def unary(_request: bytes, _context: object) -> bytes:
            self.asked.append(name)
            return self.nonsense.get(name, GOOD[name].SerializeToString())

        async def stream(_request: bytes, _context: object) -> AsyncIterator[bytes]:
            self.asked.append(name)
            if not name.startswith("Watch"):
                yield A_RESULT.SerializeToString()
            yield self.nonsense.get(name, GOOD[name].SerializeToString())
            if name.startswith("Watch"):
                await asyncio.Event().wait()
            if self.nonsense.get(name) == NONSENSE:  # amid what is good
                yield GOOD[name].SerializeToString()

        if name.startswith(("Watch", "Grow")):
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)


@pytest.fixture
async def babbler() -> AsyncIterator[tuple[Babbler, str]]:
    handler, server = Babbler(), aio.server(options=wire.SERVER_OPTIONS)
    server.add_generic_rpc_handlers((handler,))
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield handler, address
    await server.stop(None)


CALLS = {
    "Measure": Call("Measure", measure_pb2.MeasureRequest(), "request-1"),
    "GrowStyles": Call("GrowStyles", growth_pb2.GrowStylesRequest(), "request-1", slow=True),
}


async def ask(mesh: Driver, method: str = "Measure") -> str:
    try:
        await mesh.call(CALLS[method])
    except CallFailedError as error:
        return error.reason
    return "ok"


@pytest.mark.parametrize(
    ("method", "answer"),
    [("Measure", NONSENSE), ("GrowStyles", NONSENSE), ("GrowStyles", A_RESULT.SerializeToString())],
    ids=["no message", "no message in a stream", "a stream that ends before its summary"],
)
async def test_an_answer_that_is_no_answer_is_the_workers_fault(
    babbler: tuple[Babbler, str], driver: MakeDriver, method: str, answer: bytes
) -> None:
    handler, address = babbler
    mesh = await driver(address)
    assert await ask(mesh, method) == "ok"
    handler.nonsense[method] = answer
    assert await ask(mesh, method) == "NO_WORKER"
    assert (mesh.snapshot().endpoints[0].state, mesh.snapshot().endpoints[0].cause) == ("EJECTED", "passive")


@pytest.mark.parametrize("answer", [NONSENSE, b"\x08\x63"], ids=["no message", "a status nobody knows"])
async def test_a_probe_ends_whatever_comes_back_and_the_next_one_follows(
    babbler: tuple[Babbler, str], driver: MakeDriver, answer: bytes
) -> None:
    handler, address = babbler
    mesh = await driver(address, health=OFTEN)
    assert mesh.online().healthy == 1
    handler.nonsense["Check"] = answer
    await until(lambda: mesh.online().healthy == 0)
    del handler.nonsense["Check"]
    await until(lambda: mesh.online().healthy == 1)


@pytest.mark.parametrize("stream", ["Watch", "WatchStatus"])
async def test_a_stream_of_nonsense_is_opened_again(
    babbler: tuple[Babbler, str], driver: MakeDriver, stream: str
) -> None:
    handler, address = babbler
    handler.nonsense[stream] = NONSENSE
    mesh = await driver(address)
    await until(lambda: handler.asked.count(stream) >= 2)
    del handler.nonsense[stream]
    asked = handler.asked.count(stream)
    await until(lambda: handler.asked.count(stream) > asked)
    await until(lambda: mesh.online().healthy == 1)
    assert await ask(mesh) == "ok"
