"""The spans of one request: itself, its waiting, its attempts. What workers do is told by them, in the same trace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Self

from edge.exchange import Exchange
from edge.stats import Outcome
from hairmesh.spans import Collector, Span, SpanKind
from hairmesh.wire import ANALYZE_SERVICE


def spans_of(exchange: Exchange, outcome: Outcome, ended_s: float) -> Iterator[Span]:
    """Of a request that is over and recorded. Names follow OpenTelemetry's semantic conventions where there are any."""
    trace = exchange.trace
    own = trace.context
    yield Span(
        f"{outcome.method} {outcome.route}",
        SpanKind.SERVER,
        own,
        exchange.trace_parent_id,
        exchange.started_s,
        ended_s,
        {
            "http.request.method": outcome.method,
            "http.route": outcome.route,
            "http.response.status_code": outcome.status,
            "hairmesh.request_id": exchange.request_id,
            "hairmesh.code": outcome.code,
            "hairmesh.reason": outcome.reason,
        },
        failed=outcome.status >= 500,
    )
    for number, attempt in enumerate(trace.attempts, start=1):
        yield Span("queue", SpanKind.INTERNAL, own.child(), own.span_id, attempt.waited_since_s, attempt.began_s)
        yield Span(
            f"{ANALYZE_SERVICE}/{attempt.method}",
            SpanKind.CLIENT,
            attempt.context,
            own.span_id,
            attempt.began_s,
            attempt.ended_s,
            {
                "rpc.system": "grpc",
                "rpc.service": ANALYZE_SERVICE,
                "rpc.method": attempt.method,
                "rpc.response.status_code": attempt.code,
                "server.address": attempt.worker,
                "hairmesh.attempt": number,
            },
            failed=attempt.code != "OK",
        )
    if trace.call_id and not trace.attempts:  # it waited in vain
        yield Span("queue", SpanKind.INTERNAL, own.child(), own.span_id, trace.submitted_s, ended_s, failed=True)


class Tracing:
    """Sends them."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    @classmethod
    def to(cls, otlp_endpoint: str | None) -> Self | None:
        """None where no collector is configured; then nothing of OpenTelemetry is loaded."""
        return cls(Collector(otlp_endpoint, "hairmesh-edge")) if otlp_endpoint else None

    def tell(self, exchange: Exchange, outcome: Outcome, ended_s: float) -> None:
        """A recorded request is over."""
        self._collector.tell(spans_of(exchange, outcome, ended_s))

    async def close(self) -> None:
        """Send what is left."""
        await asyncio.to_thread(self._collector.close)
