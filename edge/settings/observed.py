"""Sections about what the edge tells of itself: metrics, traces, the request log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from edge.settings.values import Address, BaseUrl, Section


class Metrics(Section):
    """A port of its own for Prometheus, beside `GET /metrics` with an admin token."""

    listen: Address | None = None
    """Plain HTTP for whoever reaches it: loopback, or a network of your own. Null: no such port."""


class Tracing(Section):
    """Spans of requests, calls and their stages, for an OpenTelemetry collector. Takes the extra `tracing`."""

    otlp_endpoint: BaseUrl | None = None
    """Where it takes OTLP over HTTP, without `/v1/traces`, such as `http://127.0.0.1:4318`. Null: no traces."""


class RequestLogFile(Section):
    """`request_log.jsonl`: one line per request under `/api/`."""

    path: Path = Path("request_log.jsonl")
    """Its file; its folder is made when it is not there."""
    max_bytes: Annotated[int, Field(ge=65_536)] = 67_108_864
    """Size at which it is renamed to `path.1`, that to `path.2` and so on."""
    keep: Annotated[int, Field(ge=1, le=1000)] = 5
    """How many older files stay."""
