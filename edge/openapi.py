"""The OpenAPI document: answers from the protos' descriptors, errors from the one table, so that neither can drift.

FastAPI lists the routes; what is handed to it here are plain dictionaries, so that no answer is validated on its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edge import openapi_admin, openapi_calls, openapi_stats
from edge.images import openapi as openapi_images
from edge.images.serve import PngResponse
from edge.local import openapi as openapi_local
from edge.monitor import DRILL_OFF, DRILL_ON, NO_WORKER
from edge.openapi_messages import Schema
from edge.openapi_refusals import RETRY_AFTER

TITLE = "HairMesh"
DESCRIPTION = """One portrait photo in; facial measurements in millimetres and pictures out.

Every answer under `/api/`, good or bad, is one envelope: `code` (0 is good), `message` (Chinese by default, English
where `Accept-Language` prefers it), `request_id` and `data`. In refusals `data.reason` is stable and never translated,
`data.details` holds the measured value and the limit it broke, `data.advice` says what to do before the next try.
`message`, `advice` and every `text` are for people, in the language asked for; `details`, and where a norm is from, are
for programs and their authors, in English where they hold words.
Left and right are the subject's; coordinates are pixels of the upright photo, y down; mm come with 95 % intervals and
are not validated against callipers. Pictures are PNG under URLs that cannot be guessed, kept for a while."""


def _probe(summary: str, good: Schema, bad: Schema | None = None) -> dict[str, Any]:
    """What FastAPI is told about one route outside `/api/`."""
    responses: dict[int | str, Schema] = {200: _json_example("Good.", good)}
    if bad is not None:
        responses[503] = _json_example("Not good.", bad)
    return {"summary": summary, "tags": ["operations"], "response_model": None, "responses": responses}


def _json_example(description: str, example: Schema) -> Schema:
    kinds: Mapping[type, str] = {bool: "boolean", int: "integer", str: "string"}
    properties = {name: {"type": kinds[type(value)]} for name, value in example.items()}
    schema = {"type": "object", "properties": properties, "required": list(example)}
    return {"description": description, "content": {"application/json": {"schema": schema, "example": example}}}


_COUNTS = {"status": "ok", "service": "gateway", "workers_total": 5, "workers_healthy": 3}
_MONITOR = {**_COUNTS, "workers_primary_total": 3, "workers_primary_healthy": 3}
_NONE_ONLINE = {**_MONITOR, "status": "unhealthy", "workers_healthy": 0, "workers_primary_healthy": 0}
_READY = {"status": "ok", "service": "gateway", "picture_store_writable": True, "local_vision_stuck": False}

HEALTH = _probe("Is the process up? Always 200", _COUNTS)
LIVEZ = _probe("Liveness: would a restart help?", {"status": "ok", "service": "gateway"})
READYZ = _probe(
    "Readiness: may calls come here?", _READY, {**_READY, "status": "unavailable", "picture_store_writable": False}
)
MONITOR = _probe("For alerting: is any worker online?", _MONITOR, {**_NONE_ONLINE, "message": NO_WORKER})
_PLAIN_REFUSAL = {"status": "error", "message": "…"}
FAULT: dict[str, Any] = {
    "summary": f"Alert drill: `/monitor` answers 503 while it is on ({DRILL_ON}; {DRILL_OFF})",
    "tags": ["operations"],
    "response_model": None,
    "responses": {
        200: _json_example("Switched.", {"status": "ok", "simulated": True, "message": DRILL_ON}),
        400: _json_example("Not a JSON boolean.", _PLAIN_REFUSAL),
        401: _json_example("Wrong token, nothing changed.", _PLAIN_REFUSAL),
        429: _json_example("Too many wrong ones came from this address.", _PLAIN_REFUSAL) | {"headers": RETRY_AFTER},
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "properties": {"enabled": {"type": "boolean"}},
                        "required": ["enabled"],
                        "additionalProperties": False,
                    }
                }
            },
        },
        "security": [{"drill": []}],
    },
}
PICTURE: dict[str, Any] = {
    "summary": "A picture of an answer",
    "tags": ["pictures"],
    "response_model": None,
    "response_class": PngResponse,
    "responses": {
        200: {
            "description": "The picture.",
            "content": {"image/png": {"schema": {"type": "string", "contentMediaType": "image/png"}}},
        },
        404: _json_example("There is no such picture (any more).", _PLAIN_REFUSAL),
        503: _json_example("The store does not answer.", _PLAIN_REFUSAL) | {"headers": RETRY_AFTER},
    },
    "openapi_extra": {"parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]},
}


def components() -> dict[str, Schema]:
    """What the routes refer to."""
    return {
        "schemas": {
            "Pool": openapi_admin.POOL_SCHEMA,
            "Stats": openapi_stats.STATS_SCHEMA,
            **openapi_calls.schemas(),
            **openapi_local.schemas(),
        },
        "securitySchemes": openapi_admin.SECURITY_SCHEMES,
        "examples": {
            "pool": {"value": openapi_admin.POOL_EXAMPLE},
            "stats": {"value": openapi_stats.STATS_EXAMPLE},
            **openapi_calls.examples(),
            **openapi_local.examples(),
            "removed": {"value": openapi_images.EXAMPLE},
        },
    }
