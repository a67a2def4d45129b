"""What the OpenAPI document says of `/admin/stats` and `/metrics`."""

from __future__ import annotations

from typing import Any

from starlette.responses import PlainTextResponse

from edge.openapi_admin import GUARDED, REFUSED, Schema, all_of, described, listing
from edge.stats import CLIENT_CLOSED, NO_CODE, NO_ROUTE, OTHER, QUANTILES, SLOT_S, WINDOWS_S


def _counts(description: str) -> Schema:
    return {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}, "description": description}


_LATENCY = all_of(
    "From the first byte of a request to its answer, in ms; null where there was none.",
    {
        **{
            name: described(
                "number", f"So long took {share:.0%} of them at most, as far as buckets can tell.", nullable=True
            )
            for name, share in QUANTILES.items()
        },
        "max": described("number", "The longest.", nullable=True),
    },
)
_SPAN = all_of(
    "Requests that ended in some time.",
    {
        "calls": described("integer", "How many.", minimum=0),
        "codes": _counts(f"By the envelope's code; `{NO_CODE}`: the client left before its answer was whole."),
        "reasons": _counts(
            f"Of those that were refused, by reason; `{CLIENT_CLOSED}`: the client left; `{OTHER}`: one that this edge"
            " does not know, of a newer worker."
        ),
        "latency_ms": _LATENCY,
    },
)
STATS_SCHEMA = all_of(
    "How requests under `/api/` went at one edge.",
    {
        "edge": all_of(
            "This process.",
            {
                "id": described("string", "Of this process: call ids begin with it."),
                "version": described("string", "Of the program."),
                "uptime_s": described("number", "In s."),
            },
        ),
        "windows_s": all_of(
            f"How far each window reaches back, in s: shorter after a start, and up to {SLOT_S:.0f} s more.",
            {name: described("number", "In s.") for name in WINDOWS_S},
        ),
        "routes": listing(
            "Every route that was asked for, by name.",
            all_of(
                "One route.",
                {
                    "route": described("string", f"As declared; `{NO_ROUTE}`: paths that are no route."),
                    "in_flight": described("integer", "Requests that have not ended.", minimum=0),
                    "since_start": _SPAN,
                    **dict.fromkeys(WINDOWS_S, _SPAN),
                },
            ),
        ),
    },
)
_FEW = {
    "calls": 41,
    "codes": {"0": 38, "1001": 2, "1007": 1},
    "reasons": {"BUSY": 1, "NO_FACE": 2},
    "latency_ms": {"p50": 231.4, "p90": 288.9, "p95": 310.2, "p99": 402.7, "max": 417.3},
}
_MANY = {
    "calls": 98210,
    "codes": {"0": 96011, "1001": 1804, "1007": 311, "none": 84},
    "reasons": {"BUSY": 290, "CLIENT_CLOSED": 84, "NO_FACE": 1804, "WORKER_FAILED": 21},
    "latency_ms": {"p50": 228.0, "p90": 281.1, "p95": 297.6, "p99": 711.3, "max": 9120.4},
}
STATS_EXAMPLE: dict[str, Any] = {
    "edge": {"id": "7c1e44f0", "version": "0.1.0", "uptime_s": 86461.2},
    "windows_s": dict(WINDOWS_S),
    "routes": [
        {
            "route": "/api/v1/face/measure",
            "in_flight": 1,
            "since_start": _MANY,
            "last_5_min": _FEW,
            "last_hour": {**_MANY, "calls": 511, "codes": {"0": 511}, "reasons": {}},
        }
    ],
}
STATS: dict[str, Any] = {
    "summary": "For operators: calls, codes, latencies and requests in flight, route by route",
    "tags": ["operations"],
    "response_model": None,
    "responses": {
        200: {
            "description": "Since the start, and of the last minutes and the last hour; from memory.",
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/Stats"},
                    "examples": {"stats": {"$ref": "#/components/examples/stats"}},
                }
            },
        },
        **REFUSED,
    },
    **GUARDED,
}
METRICS: dict[str, Any] = {
    "summary": "For Prometheus: everything that is counted; docs/metrics.md names it",
    "tags": ["operations"],
    "response_model": None,
    "response_class": PlainTextResponse,
    "responses": {
        200: {"description": "Prometheus' text form.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **REFUSED,
    },
    **GUARDED,
}
