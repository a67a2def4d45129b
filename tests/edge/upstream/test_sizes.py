"""Field report B39: messages about gRPC's default limit of 4 MiB, and above our own."""

from __future__ import annotations

import pytest
from hair.analysis.v1 import measure_pb2
from structlog.testing import capture_logs

from edge.calls import Call, CallFailedError
from hairmesh.wire import MAX_MESSAGE_BYTES
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers
from tests.fakes.worker import Answer

MIB = 1024 * 1024
ABOVE_OURS = MAX_MESSAGE_BYTES + 1


def call(photo_bytes: int = 1) -> Call:
    message = measure_pb2.MeasureRequest()
    message.photo.data = bytes(photo_bytes)
    return Call("Measure", message, "request-1")


@pytest.mark.parametrize("size_bytes", [4 * MIB - 100, 4 * MIB, 5 * MIB, 40 * MIB])
async def test_b39_pictures_about_the_default_limit_pass_both_ways(
    workers: MakeWorkers, driver: MakeDriver, size_bytes: int
) -> None:
    (worker,) = await workers(1)
    answer = measure_pb2.MeasureResponse()
    answer.annotated_image.data = bytes(size_bytes)
    worker.script.append(Answer(response=answer))
    mesh = await driver(worker.address)
    outcome = await mesh.call(call(size_bytes))
    assert isinstance(outcome.response, measure_pb2.MeasureResponse)
    assert len(outcome.response.annotated_image.data) == size_bytes
    assert len(worker.seen[0].request) > size_bytes


async def test_b39_above_our_limit_is_nobodys_fault_and_not_tried_again(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    first, second = await workers(2)
    mesh = await driver(first.address, second.address)
    with pytest.raises(CallFailedError) as caught:
        await mesh.call(call(ABOVE_OURS))
    assert (caught.value.reason, caught.value.attempts) == ("BODY_TOO_LARGE", 1)
    assert caught.value.details == {"max_bytes": MAX_MESSAGE_BYTES}
    assert mesh.online().healthy == 2
    for _ in range(2):
        assert (await mesh.call(call())).attempts == 1, "both slots are free"


async def test_b39_an_answer_above_our_limit_is_no_fault_of_the_client(
    workers: MakeWorkers, driver: MakeDriver
) -> None:
    """Another worker would answer the same, so it is not tried again, and costs none its standing."""
    first, second = await workers(2)
    mesh = await driver(first.address, second.address)
    answer = measure_pb2.MeasureResponse()
    answer.annotated_image.data = bytes(ABOVE_OURS)
    first.default = second.default = Answer(response=answer)
    asked = call()
    with capture_logs() as lines, pytest.raises(CallFailedError) as caught:
        await mesh.call(asked)
    assert (caught.value.reason, caught.value.attempts, caught.value.details) == ("WORKER_FAILED", 1, {})
    assert mesh.online().healthy == 2
    (line,) = [line for line in lines if line["event"] == "answer_not_taken"]
    assert (line["worker"], line["call_id"]) == (caught.value.worker, asked.trace.call_id)
    assert "message larger than max" in line["problem"]
    first.default = second.default = Answer()
    for _ in range(2):
        assert (await mesh.call(call())).attempts == 1, "both slots are free"
