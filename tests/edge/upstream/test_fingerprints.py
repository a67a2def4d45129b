"""By what the pool knows inputs and clients again, and that nothing of it leaves the edge."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.message import Message
from hair.analysis.v1 import analyze_service_pb2, growth_pb2, hairlines_pb2, masks_pb2, measure_pb2
from structlog.testing import capture_logs

from edge.calls import Call, CallFailedError
from edge.pool.config import HealthCheckConfig
from edge.upstream.fingerprints import Fingerprints
from hairmesh import wire
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import Refuse

REQUESTS: tuple[type[Message], ...] = (
    measure_pb2.MeasureRequest,
    hairlines_pb2.DesignHairlinesRequest,
    masks_pb2.SegmentFaceRequest,
    growth_pb2.GrowStylesRequest,
    growth_pb2.GrowRegionRequest,
)


def request(kind: type[Message] = measure_pb2.MeasureRequest, photo: bytes = b"photo") -> Message:
    message = kind()
    message.photo.data = photo  # type: ignore[attr-defined]  # every request has one
    return message


def test_a_photo_is_the_same_whatever_is_asked_of_it() -> None:
    service = analyze_service_pb2.DESCRIPTOR.services_by_name["AnalyzeService"]
    assert {kind.DESCRIPTOR.name for kind in REQUESTS} == {method.input_type.name for method in service.methods}
    prints = Fingerprints()
    assert len({prints.of_input(request(kind)) for kind in REQUESTS}) == 1
    assert prints.of_input(request()) != prints.of_input(request(photo=b"photo."))


def test_outside_the_process_they_say_nothing() -> None:
    one, other = Fingerprints(), Fingerprints()
    assert one.of_input(request()) != other.of_input(request())
    assert one.of_client("192.0.2.7") != other.of_client("192.0.2.7")
    assert one.of_client("photo") != one.of_input(request()), "the two kinds never meet"
    assert one.of_client("") == ""
    assert "192.0.2.7" not in one.of_client("192.0.2.7")
    assert repr(one) == "<Fingerprints>"


async def test_workers_and_logs_hear_nothing_of_clients_and_inputs(workers: MakeWorkers, driver: MakeDriver) -> None:
    two = await workers(2)
    with capture_logs() as lines:
        mesh = await driver(*(worker.address for worker in two), health=HealthCheckConfig(cooldown_seconds=0))
        two[0].script.append(Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"))
        two[1].script.append(Refuse(grpc.StatusCode.INTERNAL, "WORKER_FAILED"))
        with pytest.raises(CallFailedError):
            await mesh.call(Call("Measure", request(), "request-1", client="192.0.2.7"))
    seen = [call for worker in two for call in worker.seen]
    assert len(seen) == 2
    for call in seen:
        ours = {wire.TOKEN_KEY, wire.REQUEST_ID_KEY, wire.CALL_ID_KEY, "traceparent"}
        assert set(call.metadata) == {*ours, "user-agent"}
    assert "192.0.2.7" not in f"{lines} {seen} {mesh.snapshot()}"


async def test_what_a_worker_can_do_is_heard_and_counts(workers: MakeWorkers, driver: MakeDriver) -> None:
    plain, able = await workers(2)
    mesh = await driver(plain.address, able.address)
    plain.lacks = {"growth": "dep_down:comfyui\n"}
    plain.tell(serving=True)
    able.capabilities = ["measure", "growth"]
    able.tell(serving=True)
    await until(lambda: mesh.snapshot().growth_capable == 1)
    await until(lambda: mesh.snapshot().endpoints[0].lacks == {"growth": "dep_down:comfyui\\n"})
    assert mesh.snapshot().endpoints[1].lacks == {}
    call = Call("GrowStyles", request(growth_pb2.GrowStylesRequest), "request-1", slow=True, capability="growth")
    assert {(await mesh.call(call)).worker for _ in range(4)} == {able.address}
