"""What a worker says of itself goes into logs, `/admin/pool` and terminals: as text, never as a command."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from hair.analysis.v1 import measure_pb2
from hair.worker.v1 import worker_service_pb2 as worker_pb2
from structlog.testing import capture_logs

from edge.upstream import refusal
from hairmesh.plain import printable
from hairmesh.wire import ERROR_DOMAIN
from tests.edge.upstream.conftest import MakeDriver, MakeWorkers, until
from tests.fakes.worker import FakeWorker

EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\n2026 worker x: BUSY | all is well\x9b31m\u202e"
LONG = "x" * 100_000


def says(worker: FakeWorker, text: str) -> Callable[[], worker_pb2.WorkerStatus]:
    """Its status with `text` wherever there is text."""
    honest = worker.status

    def status() -> worker_pb2.WorkerStatus:
        told = honest()
        told.boot_id = text
        told.reasons[:] = [text, text]
        told.slot.state = worker_pb2.SLOT_STATE_BUSY
        told.slot.call.call_id = told.slot.call.stage = text
        return told

    return status


@pytest.mark.parametrize("text", [EVIL, LONG], ids=["evil", "long"])
async def test_a_status_is_shown_as_harmless_text(
    workers: MakeWorkers, driver: MakeDriver, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (worker,) = await workers(1)
    monkeypatch.setattr(worker, "status", says(worker, text))
    with capture_logs() as logs:
        edge = await driver(worker.address)
        worker.tell(serving=False, cause="disk")
        await until(lambda: "status: " in edge.snapshot().endpoints[0].evidence)
        (endpoint,) = edge.snapshot().endpoints
    shown = [endpoint.evidence, endpoint.boot_id, endpoint.stage, *(entry.what for entry in endpoint.history)]
    assert endpoint.stage == printable(text, 128)
    assert all(line.isprintable() and len(line) < 700 for line in shown), shown
    assert len(str(logs)) < 20_000


@pytest.mark.parametrize("text", [EVIL, LONG], ids=["evil", "long"])
def test_and_so_is_a_refusal(text: str) -> None:
    info = error_details_pb2.ErrorInfo(reason=text, domain=ERROR_DOMAIN, metadata={text: text})
    fault = error_details_pb2.BadRequest(field_violations=[error_details_pb2.BadRequest.FieldViolation(field=text)])
    status = status_pb2.Status(code=3)
    status.details.add().Pack(info)
    status.details.add().Pack(fault)
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    error = grpc.aio.AioRpcError(grpc.StatusCode.INVALID_ARGUMENT, grpc.aio.Metadata(), trailing)
    said = refusal.read(error, measure_pb2.MeasureRequest())
    ((name, value),) = said.details.items()
    assert said.reason == said.field == name == printable(text, 128)
    assert value == printable(text)
