"""Spans for an OpenTelemetry collector.

A span is told when it is over, from moments that were noted anyway: while a request runs, tracing costs nothing but the
ids. OpenTelemetry is loaded where a collector is configured, and nowhere else.
"""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, cast

import structlog

from hairmesh import __version__
from hairmesh.trace_context import TraceContext

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log = structlog.get_logger()

PATH = "/v1/traces"
"""Below the endpoint, as OTLP over HTTP has it."""
SEND_TIMEOUT_S = 5.0
MISSING = "needs packages that are not here: install hairmesh[tracing]"


class SpanKind(StrEnum):
    """Names of `opentelemetry.trace.SpanKind`."""

    SERVER = "SERVER"
    CLIENT = "CLIENT"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Span:
    """One that is over. Attributes hold names, codes and numbers: no photo, no token, no parameter, no client."""

    name: str
    kind: SpanKind
    context: TraceContext
    parent_id: str
    """Span it belongs to, 16 hexadecimal digits; empty for the first of its trace."""
    began_s: float
    """Monotonic clock of this process."""
    ended_s: float
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    failed: bool = False


def packages_missing() -> bool:
    """Whether `Collector` would have nothing to send with."""
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is None
    except ModuleNotFoundError:  # of a package above it
        return True


class Collector:
    """Sends spans to `endpoint`, such as `http://127.0.0.1:4318`, from a thread of its own.

    When that is away or slow, spans are dropped, and it is said once. No proxy of the environment is used, no redirect
    followed.
    """

    def __init__(self, endpoint: str, service: str) -> None:
        # Here: most processes never need it, and it takes half a second.
        import requests  # noqa: PLC0415
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        session = requests.Session()
        session.trust_env = False
        session.max_redirects = 0
        exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/") + PATH, session=session, timeout=SEND_TIMEOUT_S)
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # three lines for every batch; ours is one
        self._processor = BatchSpanProcessor(cast("SpanExporter", _Telling(exporter)))
        self._resource = Resource({"service.name": service, "service.version": __version__})

    def tell(self, spans: Iterable[Span]) -> None:
        """Have these sent; never waits. Those of traces that are not sampled are left out."""
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
        from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags  # noqa: PLC0415
        from opentelemetry.trace import SpanKind as TheirKind  # noqa: PLC0415

        to_epoch_ns = time.time_ns() - time.monotonic_ns()

        def context(trace_id: str, span_id: str, *, remote: bool) -> SpanContext:
            sampled = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=remote, trace_flags=sampled)

        for span in spans:
            if not span.context.sampled:
                continue
            trace_id = span.context.trace_id
            remote = span.kind is SpanKind.SERVER
            self._processor.on_end(
                ReadableSpan(
                    span.name,
                    context(trace_id, span.context.span_id, remote=False),
                    context(trace_id, span.parent_id, remote=remote) if span.parent_id else None,
                    self._resource,
                    dict(span.attributes),
                    kind=TheirKind[span.kind],
                    status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
                    start_time=to_epoch_ns + round(span.began_s * 1e9),
                    end_time=to_epoch_ns + round(span.ended_s * 1e9),
                )
            )

    def close(self) -> None:
        """Send what is left, for as long as one sending may take; to be called off the loop."""
        self._processor.shutdown()  # type: ignore[no-untyped-call]  # theirs


class _Telling:
    """An exporter that says when it begins to fail, and when that is over. See `SpanExporter`."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch, in the processor's thread."""
        result = self._exporter.export(spans)
        failing = result.name != "SUCCESS"
        if failing and not self._failing:
            log.warning("spans_not_sent", advice="tracing.otlp_endpoint does not take them; they are dropped")
        elif self._failing and not failing:
            log.info("spans_sent_again")
        self._failing = failing
        return result

    def shutdown(self) -> None:
        """Send no more."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is kept here."""
        return self._exporter.force_flush(timeout_millis)
