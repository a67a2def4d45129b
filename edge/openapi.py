"""The OpenAPI document: answers from the protos' descriptors, errors from the one table, so that neither can drift.

FastAPI lists the routes; what is handed to it here are plain dictionaries, so that no answer is validated on its way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hair.analysis.v1 import measure_pb2

from edge import openapi_admin, translate
from edge.errors import TABLE, ApiError
from edge.images.serve import PngResponse
from edge.messages import Lang
from edge.monitor import DRILL_OFF, DRILL_ON, NO_WORKER
from edge.openapi_examples import DETAILS, REQUEST_ID, measure_answer
from edge.parameters import MeasureParameters, Parameters
from edge.photo import MEDIA_TYPES
from edge.proto_docs import describe

Schema = dict[str, Any]

TITLE = "HairMesh"
DESCRIPTION = """One portrait photo in; facial measurements in millimetres and pictures out.

Every answer under `/api/`, good or bad, is one envelope: `code` (0 is good), `message` (Chinese by default, English
where `Accept-Language` prefers it), `request_id` and `data`. In refusals `data.reason` is stable and never translated,
`data.details` holds the measured value and the limit it broke, `data.advice` says what to do before the next try.
Left and right are the subject's; coordinates are pixels of the upright photo, y down; mm come with 95 % intervals and
are not validated against callipers. Pictures are PNG under URLs that cannot be guessed, kept for a while."""

_SCALARS: Mapping[str, Schema] = {
    "double": {"type": "number"},
    "float": {"type": "number"},
    "int32": {"type": "integer"},
    "int64": {"type": "integer"},
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
}
_SCALAR_NAMES = {
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_STRING: "string",
}
_PICTURE = {"type": "string", "format": "uri", "examples": ["https://face.example/static/annotations/<id>.png"]}


def message_schemas(descriptor: Descriptor) -> dict[str, Schema]:
    """JSON schemas of a message and of every message in it, by name, for `translate.to_json`'s output."""
    schemas: dict[str, Schema] = {}
    waiting = [descriptor]
    while waiting:
        message = waiting.pop()
        if message.name in schemas:
            continue
        schemas[message.name] = {
            "type": "object",
            "description": describe(message),
            "properties": {translate.json_name(field): _field_schema(field) for field in message.fields},
            "required": [translate.json_name(field) for field in message.fields],
            "additionalProperties": False,
        }
        values = map(translate.value_field, message.fields)
        waiting += [value.message_type for value in values if value.message_type and not translate.is_image(value)]
    return schemas


def _field_schema(field: FieldDescriptor) -> Schema:
    one = _value_schema(translate.value_field(field))
    if translate.is_map(field):
        schema: Schema = {"type": "object", "additionalProperties": one}
    elif field.is_repeated:
        schema = {"type": "array", "items": one}
    elif translate.is_nullable(field):
        schema = {"anyOf": [one, {"type": "null"}]}
    else:
        schema = one
    return {**schema, "description": describe(field)}


def _value_schema(field: FieldDescriptor) -> Schema:
    if translate.is_image(field):
        return dict(_PICTURE)
    if field.message_type is not None:
        return _ref(field.message_type.name)
    if field.enum_type is not None:
        enum = field.enum_type
        names = [translate.enum_name(enum, number) for number in sorted(enum.values_by_number) if number != 0]
        return {"type": "string", "enum": names, "description": describe(enum)}
    return dict(_SCALARS[_SCALAR_NAMES[field.type]])


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _example_ref(name: str) -> Schema:
    """Examples stand in `components`: FastAPI would drop every null in them on the routes."""
    return {"$ref": f"#/components/examples/{name}"}


def _envelope(data: Schema, code: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {
            "code": code,
            "message": {"type": "string", "description": "For people; in the language of `Accept-Language`."},
            "request_id": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
            "data": data,
        },
        "required": ["code", "message", "request_id", "data"],
        "additionalProperties": False,
    }


_REFUSAL = _envelope(
    {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": f"Stable name, such as: {', '.join(TABLE)}."},
            "details": {
                "type": "object",
                "description": "The measured value and the limit it broke; the field's name for parameters.",
                "additionalProperties": {"type": ["string", "number"]},
            },
            "advice": {"type": ["string", "null"], "description": "What to do before the next try."},
        },
        "required": ["reason", "details", "advice"],
        "additionalProperties": False,
    },
    {"type": "integer", "enum": sorted({row.code for row in TABLE.values()})},
)

_HEADERS = {
    "X-Request-ID": {"schema": {"type": "string"}, "description": "As in the envelope."},
    "Content-Language": {
        "schema": {"type": "string", "enum": [lang.value for lang in Lang]},
        "description": "Language of `message` and `advice`.",
    },
}
_RETRY_AFTER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds after which to try again."}}


def _refusals(reasons: Iterable[str]) -> dict[int | str, Schema]:
    """Responses of the given reasons by HTTP status, each reason with an example from the table."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for reason in reasons:
        by_status[TABLE[reason].http_status].append(reason)
    return {
        status: {
            "description": "; ".join(f"`{reason}` {TABLE[reason].message.en}" for reason in group),
            "headers": _HEADERS | (_RETRY_AFTER if any(TABLE[reason].retry_after_s for reason in group) else {}),
            "content": {
                "application/json": {
                    "schema": _ref("Refusal"),
                    "examples": {reason: _example_ref(reason) for reason in group},
                }
            },
        }
        for status, group in sorted(by_status.items())
    }


def _refusal_example(reason: str) -> Schema:
    error = ApiError(reason, DETAILS.get(reason))
    return {
        "code": error.row.code,
        "message": error.message.of(Lang.ZH),
        "request_id": REQUEST_ID,
        "data": {
            "reason": reason,
            "details": dict(error.details),
            "advice": error.advice.of(Lang.ZH) if error.advice else None,
        },
    }


def _request_body(parameters: type[Parameters]) -> Schema:
    """The two ways to send a photo with its parameters."""
    schema = parameters.model_json_schema()
    formats = ", ".join(MEDIA_TYPES)

    def body(photo: str, photo_schema: Schema) -> Schema:
        return {
            "type": "object",
            "properties": {photo: photo_schema, **schema["properties"]},
            "required": [photo],
            "additionalProperties": False,
        }

    file = {
        "type": "string",
        "contentMediaType": "application/octet-stream",
        "description": f"{formats}; by its bytes.",
    }
    text = {
        "type": "string",
        "contentEncoding": "base64",
        "description": "Plain or URL-safe, padded or not, wrapped or not, with or without a `data:` prefix.",
    }
    return {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": body("image", file)},
            "application/json": {"schema": body("image_base64", text)},
        },
    }


_REQUEST_HEADERS = [
    {
        "name": "X-Request-ID",
        "in": "header",
        "description": "Your id of the request, 1 to 64 characters of `[A-Za-z0-9._-]`; anything else gets a new one.",
        "schema": {"type": "string"},
    },
    {
        "name": "X-Request-Timeout-Ms",
        "in": "header",
        "description": "Your own total patience, in ms.",
        "schema": {"type": "integer", "minimum": 1},
    },
    {
        "name": "Accept-Language",
        "in": "header",
        "description": "`en` first: English messages and labels; else Chinese.",
        "schema": {"type": "string"},
    },
]
_NEVER_ON_CALLS = {"UNAUTHORIZED", "NOT_FOUND", "METHOD_NOT_ALLOWED", "TOO_MANY_REQUESTS"}


def _call(summary: str, answer: Descriptor, parameters: type[Parameters], example: str) -> dict[str, Any]:
    """What FastAPI is told about one call; `example` is a name in `components`."""
    return {
        "summary": summary,
        "tags": ["calls"],
        "response_model": None,
        "responses": {
            200: {
                "description": "The answer.",
                "headers": _HEADERS,
                "content": {
                    "application/json": {
                        "schema": _envelope(_ref(answer.name), {"type": "integer", "const": 0}),
                        "examples": {example: _example_ref(example)},
                    }
                },
            },
            **_refusals(reason for reason in TABLE if reason not in _NEVER_ON_CALLS),
        },
        "openapi_extra": {"requestBody": _request_body(parameters), "parameters": _REQUEST_HEADERS},
    }


MEASURE = _call(
    "Measure a face: thirds and fifths (三庭五眼), widths, hairline, in px and mm",
    measure_pb2.MeasureResponse.DESCRIPTOR,
    MeasureParameters,
    "measure",
)


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
_READY = {"status": "ok", "service": "gateway", "picture_store_writable": True}

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
        "parameters": [{"name": "X-Internal-Token", "in": "header", "required": True, "schema": {"type": "string"}}],
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
        503: _json_example("The store does not answer.", _PLAIN_REFUSAL) | {"headers": _RETRY_AFTER},
    },
    "openapi_extra": {"parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]},
}


def components() -> dict[str, Schema]:
    """What the routes refer to."""
    return {
        "schemas": {
            "Refusal": _REFUSAL,
            "Pool": openapi_admin.POOL_SCHEMA,
            **message_schemas(measure_pb2.MeasureResponse.DESCRIPTOR),
        },
        "securitySchemes": openapi_admin.SECURITY_SCHEMES,
        "examples": {
            "measure": {"value": measure_answer()},
            "pool": {"value": openapi_admin.POOL_EXAMPLE},
            **{reason: {"value": _refusal_example(reason)} for reason in TABLE},
        },
    }
