"""One request across real processes: the same ids on every line, and its spans in a collector."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from hairmesh.client import MEASURE_ROUTE
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Record, Service
from tests.fakes.otlp import OtlpReceiver, SeenSpan, otlp_receiver

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ADMIN_TOKEN = "SENTINEL-admin-token"
RPC = "hair.analysis.v1.AnalyzeService/Measure"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    with otlp_receiver() as receiver:
        yield receiver


@pytest.fixture
async def traced(tmp_path: Path, collector: OtlpReceiver) -> AsyncIterator[Service]:
    """An edge and a worker that both send their spans."""
    service = Service(tmp_path / "service")
    tracing = {"otlp_endpoint": collector.endpoint}
    service.add_worker(config={"tracing": tracing})
    try:
        await service.start(admin_tokens=[ADMIN_TOKEN], tracing=tracing)
        yield service
    finally:
        await service.stop()


async def measure(service: Service, image: bytes, **headers: str) -> Record:
    """One call; its answer."""
    files = {"image": ("SENTINEL.jpg", image, "image/jpeg")}
    data = {"pupillary_distance_mm": "61.25"}
    answer = await service.client.post(MEASURE_ROUTE, files=files, data=data, headers=headers)
    body: Record = answer.json()
    return body


def of(spans: Sequence[SeenSpan], trace_id: str) -> list[SeenSpan]:
    """Those of one trace, in order of their beginnings."""
    return sorted((span for span in spans if span.trace_id == trace_id), key=lambda span: span.began_ns)


async def test_spans_lead_from_the_request_to_each_stage(traced: Service, collector: OtlpReceiver) -> None:
    began_ns = time.time_ns()
    answer = await measure(
        traced,
        photo(seconds=0.05),
        **{
            "traceparent": f"00-{TRACE}-{PARENT}-01",
            "tracestate": "vendor=SENTINEL",
            "X-Request-ID": "request-of-the-test",
            "X-Admin-Token": ADMIN_TOKEN,
            "X-Forwarded-For": "203.0.113.99",
        },
    )
    assert answer["code"] == 0
    spans = of(await collector.until(lambda spans: len(of(spans, TRACE)) >= 6), TRACE)
    by_name = {span.name: span for span in spans}
    http, queue = by_name[f"POST {MEASURE_ROUTE}"], by_name["queue"]
    (attempt,) = (span for span in spans if span.name == RPC and span.kind == "CLIENT")
    (call,) = (span for span in spans if span.name == RPC and span.kind == "SERVER")
    stages = [span for span in spans if span.name.startswith("stage ")]

    assert (http.service, http.kind, http.parent_id) == ("hairmesh-edge", "SERVER", PARENT)
    assert queue.parent_id == attempt.parent_id == http.span_id
    assert (call.service, call.parent_id) == ("hairmesh-worker", attempt.span_id)
    assert [stage.name for stage in stages] == ["stage parsing", "stage drawing"]
    assert {stage.parent_id for stage in stages} == {call.span_id}
    for inner, outer in ((queue, http), (attempt, http), (call, attempt), *((stage, call) for stage in stages)):
        assert outer.began_ns - 2_000_000 <= inner.began_ns <= inner.ended_ns <= outer.ended_ns + 2_000_000, inner.name
    assert began_ns <= http.began_ns <= http.ended_ns <= time.time_ns()
    assert stages[0].ended_ns - stages[0].began_ns >= 45_000_000
    assert not any(span.failed for span in spans)
    assert len({span.span_id for span in spans}) == len(spans)

    assert http.attributes["http.route"] == MEASURE_ROUTE
    assert http.attributes["http.response.status_code"] == 200
    assert http.attributes["hairmesh.request_id"] == "request-of-the-test"
    assert attempt.attributes["server.address"] == traced.workers[0].address
    assert attempt.attributes["rpc.response.status_code"] == call.attributes["rpc.response.status_code"] == "OK"
    for secret in (b"SENTINEL", traced.token.encode(), b"203.0.113.99", b"61.25", b"\xff\xd8\xff"):
        assert not any(secret in body for body in collector.bodies), secret


async def test_what_fails_shows_where_and_a_client_that_wants_no_trace_leaves_none(
    traced: Service, collector: OtlpReceiver
) -> None:
    unwanted = TRACE[::-1]
    await measure(traced, photo(), traceparent=f"00-{unwanted}-{PARENT}-00")
    await measure(traced, photo())
    traced.workers[0].send(signal.SIGUSR1)
    answer = await measure(traced, photo(), traceparent=f"00-{TRACE}-{PARENT}-01")
    assert answer["code"] == 1001
    spans = of(await collector.until(lambda spans: len(of(spans, TRACE)) >= 5), TRACE)
    by_kind = {span.kind: span for span in spans if span.name == RPC}
    assert by_kind["SERVER"].attributes["rpc.response.status_code"] == "FAILED_PRECONDITION"
    assert by_kind["CLIENT"].failed
    assert not by_kind["SERVER"].failed, "a photo without a face is no fault of the worker's"
    (http,) = (span for span in spans if span.parent_id == PARENT)
    assert (http.attributes["hairmesh.code"], http.attributes["hairmesh.reason"]) == ("1001", "NO_FACE")
    assert of(collector.spans, unwanted) == []
    (own,) = (span for span in collector.spans if span.kind == "SERVER" and span.parent_id == "")
    assert own.name == f"POST {MEASURE_ROUTE}", "who sends no trace gets one"


async def test_one_request_id_and_one_trace_id_on_every_line(tmp_path: Path) -> None:
    service = Service(tmp_path / "service")
    service.add_worker()
    service.add_worker()
    try:
        await service.start()
        first, second = service.workers
        await lose_the_worker(service)
        await measure(service, photo(), traceparent="00-not-a-valid-one", **{"X-Request-ID": "second"})
        await service.edge.end(signal.SIGTERM)
        (lost, good) = [line for line in service.requests() if line["request_id"] in {"first", "second"}]
        assert lost["trace_id"] == TRACE
        assert lost["attempts"] == 2
        assert good["trace_id"] not in {TRACE, ""}
        lines = [*service.edge.records, *first.records, *second.records]
        for request in (lost, good):
            about = [line for line in lines if line.get("request_id") == request["request_id"]]
            assert {line["event"] for line in about} >= {"call", "computing"}
            assert {line.get("trace_id") for line in about} == {request["trace_id"]}, about
        edges = [line for line in service.edge.records if line.get("request_id") == "first"]
        assert {line["event"] for line in edges} >= {"attempt_failed", "worker_state"}
    finally:
        await service.stop()


async def lose_the_worker(service: Service) -> None:
    """A request whose first worker is killed while it computes."""
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-ID": "first"}
    call = asyncio.create_task(measure(service, photo(seconds=3), **headers))
    begun = [asyncio.create_task(worker.event("computing")) for worker in service.workers]
    await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
    busy = next(worker for worker, task in zip(service.workers, begun, strict=True) if task.done())
    for task in begun:
        task.cancel()
    await busy.end()
    assert (await call)["code"] == 0


@pytest.mark.parametrize("module", ["edge.command", "worker.command"])
def test_nothing_that_sends_spans_is_loaded_where_it_is_off(module: str) -> None:
    code = f"import sys, json, {module}; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)  # the web framework brings OpenTelemetry's interface, which does nothing
    assert not [name for name in loaded if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "requests"))]
