"""A call in its trace: who asked for it, and the spans it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import grpc

from hairmesh.spans import Span, SpanKind
from hairmesh.trace_context import TraceContext
from hairmesh.wire import ANALYZE_SERVICE, TRACE_KEY
from worker.progress import StageTime

_OUR_FAULT = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""Codes that OpenTelemetry calls an error of a server; a refused photo is none."""


@dataclass(frozen=True, slots=True)
class CallTrace:
    """One call."""

    own: TraceContext
    parent_id: str
    """Span of whoever called; empty where a trace begins here."""

    @classmethod
    def of(cls, metadata: Iterable[tuple[str, str | bytes]], *, traced: bool) -> CallTrace:
        """In the caller's trace, or in one of its own. `traced`: whether spans are wanted."""
        sent = TraceContext.read([value for key, value in metadata if key == TRACE_KEY and isinstance(value, str)])
        if sent is None:
            return cls(TraceContext.new(sampled=traced), "")
        return cls(sent.child(), sent.span_id)

    def spans(
        self, method: str, code: grpc.StatusCode, began_s: float, ended_s: float, stages: Iterable[StageTime]
    ) -> Iterator[Span]:
        """The call and each of its stages; moments of the monotonic clock."""
        attributes = {
            "rpc.system": "grpc",
            "rpc.service": ANALYZE_SERVICE,
            "rpc.method": method,
            "rpc.response.status_code": code.name,
        }
        name, failed = f"{ANALYZE_SERVICE}/{method}", code in _OUR_FAULT
        yield Span(name, SpanKind.SERVER, self.own, self.parent_id, began_s, ended_s, attributes, failed=failed)
        for time in stages:
            yield Span(
                f"stage {time.stage}",
                SpanKind.INTERNAL,
                self.own.child(),
                self.own.span_id,
                time.began_s,
                time.ended_s,
                {"hairmesh.stage": str(time.stage)},
            )
