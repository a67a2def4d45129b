"""Spans to a real receiver, and to one that is not there."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from hairmesh import __version__
from hairmesh.spans import Collector, Span, SpanKind, packages_missing
from hairmesh.stack import free_ports
from hairmesh.trace_context import TraceContext
from tests.fakes.otlp import OtlpReceiver, otlp_receiver


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with otlp_receiver() as receiver:
        yield receiver


def span(context: TraceContext, **changes: object) -> Span:
    now_s = time.monotonic()
    values: dict[str, object] = {
        "name": "work",
        "kind": SpanKind.INTERNAL,
        "context": context,
        "parent_id": "",
        "began_s": now_s - 0.25,
        "ended_s": now_s,
    }
    return Span(**values | changes)  # type: ignore[arg-type]


def test_what_is_told_arrives_when_it_closes(receiver: OtlpReceiver) -> None:
    collector = Collector(f"{receiver.endpoint}/", "hairmesh-test")
    first, second = TraceContext.new(sampled=True), TraceContext.new(sampled=False)
    attributes = {"text": "x", "count": 3, "share": 0.5}
    before_ns = time.time_ns()
    collector.tell([span(first, attributes=attributes, failed=True, parent_id="00f067aa0ba902b7"), span(second)])
    collector.close()
    (seen,) = receiver.spans  # the other one is not sampled
    assert (seen.trace_id, seen.span_id, seen.parent_id) == (first.trace_id, first.span_id, "00f067aa0ba902b7")
    assert (seen.service, seen.name, seen.kind, seen.failed) == ("hairmesh-test", "work", "INTERNAL", True)
    assert seen.attributes == attributes
    assert seen.ended_ns - seen.began_ns == pytest.approx(0.25e9, rel=1e-3)
    assert before_ns - 50_000_000 <= seen.ended_ns <= time.time_ns(), "the clock of the wall"
    assert __version__.encode() in receiver.bodies[0]


def test_a_collector_that_is_away_is_said_once_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    monkeypatch.setattr("hairmesh.spans.SEND_TIMEOUT_S", 0.2)
    (nobody,) = free_ports(1)
    with capture_logs() as said:
        collector = Collector(f"http://127.0.0.1:{nobody}", "hairmesh-test")
        began_s = time.monotonic()
        for _ in range(3):
            collector.tell(span(TraceContext.new(sampled=True)) for _ in range(600))
        assert time.monotonic() - began_s < 5
        collector.close()
    assert [line["event"] for line in said] == ["spans_not_sent"]


def test_no_proxy_of_the_environment_sees_them(receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    (nobody,) = free_ports(1)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{nobody}")
    collector = Collector(receiver.endpoint, "hairmesh-test")
    collector.tell([span(TraceContext.new(sampled=True))])
    collector.close()
    assert len(receiver.spans) == 1


def test_its_packages_are_known_to_be_here() -> None:
    assert not packages_missing()
