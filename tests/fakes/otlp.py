"""A real OTLP receiver: HTTP with protobuf bodies, as a collector takes them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from typing_extensions import override


@dataclass(frozen=True, slots=True)
class SeenSpan:
    """One that was received."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    began_ns: int
    ended_ns: int
    attributes: Mapping[str, object]
    failed: bool


class OtlpReceiver:
    """What was sent so far."""

    def __init__(self) -> None:
        self.spans: list[SeenSpan] = []
        self.bodies: list[bytes] = []
        self.endpoint = ""

    def take(self, path: str, body: bytes) -> None:
        """One request."""
        assert path == "/v1/traces", path
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [_seen(attributes["service.name"], span) for span in scope.spans]

    async def until(self, complete: Callable[[Sequence[SeenSpan]], bool]) -> Sequence[SeenSpan]:
        """Wait until what was received is all that a test wants."""
        async with asyncio.timeout(45):
            while not complete(self.spans):  # noqa: ASYNC110  (other processes send it)
                await asyncio.sleep(0.02)
        return self.spans


def _seen(service: str, span: SpanProto) -> SeenSpan:
    return SeenSpan(
        service=service,
        name=span.name,
        kind=SpanProto.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        began_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        attributes={each.key: getattr(each.value, each.value.WhichOneof("value") or "") for each in span.attributes},
        failed=span.status.code == Status.STATUS_CODE_ERROR,
    )


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    """One on loopback."""
    receiver = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
