"""What the OpenAPI document says of the calls: bodies, answers, refusals, streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2, masks_pb2, measure_pb2

from edge import openapi_examples
from edge.errors import TABLE, ApiError
from edge.exchange import MAX_PATIENCE_MS
from edge.kinds import DRAWN_BESIDE
from edge.messages import Lang
from edge.openapi_examples import DETAILS, REQUEST_ID
from edge.openapi_messages import Schema, message_schemas, or_null, ref
from edge.parameters import (
    GrowParameters,
    HairlinesParameters,
    MasksParameters,
    MeasureParameters,
    Parameters,
    StylesParameters,
)
from edge.photo import MEDIA_TYPES
from edge.stream import MEDIA_TYPE as EVENT_STREAM
from edge.upload import in_json


def example_ref(name: str) -> Schema:
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


REFUSAL = _envelope(
    {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": f"Stable name, such as: {', '.join(TABLE)}."},
            "details": {
                "type": "object",
                "description": (
                    "The measured value and the limit it broke; the field's name for parameters; `retry_after_s` "
                    "where a retry may help, as in the header, which the result of a stream has not."
                ),
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
RETRY_AFTER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds after which to try again."}}


def _refusals(reasons: Iterable[str]) -> dict[int | str, Schema]:
    """Responses of the given reasons by HTTP status, each reason with an example from the table."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for reason in reasons:
        by_status[TABLE[reason].http_status].append(reason)
    return {status: _response(_said(group), group) for status, group in sorted(by_status.items())}


def _elsewhere() -> Schema:
    """What never happens on a call that is made as documented, and has its envelope all the same."""
    found = ["NOT_FOUND", "METHOD_NOT_ALLOWED"]
    kept = sorted(_NEVER_ON_CALLS - set(found))
    words = (
        f"Anything else under `/api/`: {_said(found, with_status=True)} Kept for what is to come, and given by no call "
        f"now: {_said(kept, with_status=True)}"
    )
    return _response(words, found)


def _said(reasons: Iterable[str], *, with_status: bool = False) -> str:
    rows = ((reason, TABLE[reason]) for reason in reasons)
    return "; ".join(f"{f'{row.http_status} ' * with_status}`{reason}` {row.message.en}" for reason, row in rows)


def _response(description: str, reasons: Collection[str]) -> Schema:
    return {
        "description": description,
        "headers": _HEADERS | (RETRY_AFTER if any(TABLE[reason].retry_after_s for reason in reasons) else {}),
        "content": {
            "application/json": {
                "schema": ref("Refusal"),
                "examples": {reason: example_ref(reason) for reason in reasons},
            }
        },
    }


def _refusal_example(reason: str) -> Schema:
    error = ApiError(reason, DETAILS.get(reason))
    later = {} if error.retry_after_s is None else {"retry_after_s": error.retry_after_s}
    return {
        "code": error.row.code,
        "message": error.message.of(Lang.ZH),
        "request_id": REQUEST_ID,
        "data": {
            "reason": reason,
            "details": {**error.details, **later},
            "advice": error.advice.of(Lang.ZH) if error.advice else None,
        },
    }


_FILES = {
    "image": f"The photo: {', '.join(MEDIA_TYPES)}; by its bytes.",
    "mask": "The region as a picture of the size of the upright photo: inside is above half brightness.",
}
_BASE64 = "Base64, plain or URL-safe, padded or not, wrapped or not, with or without a `data:` prefix."


def _request_body(parameters: type[Parameters]) -> Schema:
    """The two ways to send files with the parameters."""
    shape, properties = parameters.shape, parameters.model_json_schema().get("properties", {})
    files = {
        name: {"type": "string", "contentMediaType": "application/octet-stream", "description": _FILES[name]}
        for name in sorted(shape.files)
    }
    texts = {
        in_json(name): {"type": "string", "contentEncoding": "base64", "description": f"{_FILES[name]} {_BASE64}"}
        for name in sorted(shape.files)
    }

    def body(photo: str, inside: Schema) -> Schema:
        return {"type": "object", "properties": inside, "required": [photo], "additionalProperties": False}

    in_form = {name: _in_form(name, schema, parameters) for name, schema in properties.items()}
    return {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": body("image", {**files, **in_form})},
            "application/json": {"schema": body(in_json("image"), {**texts, **properties})},
        },
    }


def _in_form(name: str, schema: Schema, parameters: type[Parameters]) -> Schema:
    """A parameter as a form field: a list as it is, or as one field with commas; a region as its JSON text."""
    if name in parameters.shape.lists:
        return {**schema, "description": f"{schema['description']} One field with commas, or the field repeated."}
    if name == "region":
        text = {"type": "string", "contentMediaType": "application/json", "contentSchema": schema["anyOf"][0]}
        return {**text, "description": schema["description"]}
    return schema


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
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_PATIENCE_MS},
    },
    {
        "name": "Accept-Language",
        "in": "header",
        "description": "`en` first: English messages and labels; else Chinese.",
        "schema": {"type": "string"},
    },
]
_NEVER_ON_CALLS = {"UNAUTHORIZED", "NOT_FOUND", "METHOD_NOT_ALLOWED", "TOO_MANY_REQUESTS"}
_OF_WORKERS = {
    "NO_WORKER",
    "WORKER_FAILED",
    "HAIRLINE_HIDDEN",
    "STORE_FULL",
    "STORE_FAILED",
}
_OF_LOCAL_VISION = {"LOCAL_VISION_MISSING", "LOCAL_MODELS_MISSING", "LOCAL_VISION_STUCK"}


def _can_happen(reason: str, parameters: type[Parameters], *, local: bool) -> bool:
    """Whether a call with these parameters may be refused for it."""
    if reason.startswith(("REGION_", "MASK_")):
        return "mask" in parameters.shape.files
    return reason not in _NEVER_ON_CALLS | (_OF_WORKERS if local else _OF_LOCAL_VISION)


def call(
    summary: str,
    data: str,
    parameters: type[Parameters],
    example: str,
    *,
    streams: bool = False,
    local: bool = False,
) -> Schema:
    """What FastAPI is told about one call; `data` is a schema, `example` an example in `components`.

    `local`: computed on the edge itself.
    """
    answers: Schema = {
        "application/json": {
            "schema": _envelope(ref(data), {"type": "integer", "const": 0}),
            "examples": {example: example_ref(example)},
        }
    }
    if streams:
        answers[EVENT_STREAM] = {"schema": ref("EventStream"), "examples": {"stream": example_ref("stream")}}
    return {
        "summary": summary,
        "tags": ["calls"],
        "response_model": None,
        "responses": {
            200: {"description": "The answer.", "headers": _HEADERS, "content": answers},
            **_refusals(reason for reason in TABLE if _can_happen(reason, parameters, local=local)),
            "default": _elsewhere(),
        },
        "openapi_extra": {"requestBody": _request_body(parameters), "parameters": _REQUEST_HEADERS},
    }


MEASURE = call(
    "Measure a face: thirds and fifths (三庭五眼), widths, hairline, in px and mm",
    "MeasureResponse",
    MeasureParameters,
    "measure",
)
STYLES = call(
    "Grow hair to several hairline styles. Slow: streams its progress if asked",
    "GrownStyles",
    StylesParameters,
    "styles",
    streams=True,
)
GROW = call(
    "Grow hair in a marked region. Slow: streams its progress if asked",
    "GrownRegion",
    GrowParameters,
    "grow",
    streams=True,
)
HAIRLINES = call("Draw hairline designs on the photo", "DesignHairlinesResponse", HairlinesParameters, "hairlines")
MASKS = call("Mask hair, skin and the parts of the face", "SegmentFaceResponse", MasksParameters, "masks")

_EVENT_STREAM: Schema = {
    "type": "string",
    "description": (
        "With `Accept: text/event-stream`: a `queued` event (QueuedEvent) whenever an attempt is due, `progress` "
        "events (Progress) while it runs, a comment line every 10 s, then one `result` event with the envelope, good "
        "or bad. What goes wrong before the first event is an ordinary answer. Leaving ends the call."
    ),
}
_QUEUED: Schema = {
    "type": "object",
    "description": "Data of a `queued` event.",
    "properties": {
        "position": {"type": "integer", "minimum": 0, "description": "Calls that are to get a worker before this one."},
        "attempt": {"type": "integer", "minimum": 1, "description": "The attempt that is due, counted from 1."},
    },
    "required": ["position", "attempt"],
    "additionalProperties": False,
}


def _joined(description: str, *parts: Schema) -> Schema:
    """One object with the fields of several."""
    return {
        "type": "object",
        "description": description,
        "properties": {name: schema for part in parts for name, schema in part["properties"].items()},
        "required": [name for part in parts for name in part["required"]],
        "additionalProperties": False,
    }


def _without(name: str, schema: Schema) -> Schema:
    """An object's schema without one of its fields."""
    properties = {each: inside for each, inside in schema["properties"].items() if each != name}
    return {**schema, "properties": properties, "required": list(properties)}


def schemas() -> dict[str, Schema]:
    """What the calls refer to."""
    found: dict[str, Schema] = {}
    for message in (
        measure_pb2.MeasureResponse,
        hairlines_pb2.DesignHairlinesResponse,
        masks_pb2.SegmentFaceResponse,
        growth_pb2.StyleResult,
        growth_pb2.RegionResult,
        growth_pb2.GrowthSummary,
        common_pb2.Progress,
    ):
        found |= message_schemas(message.DESCRIPTOR)
    region, summary = found.pop("RegionResult"), found.pop("GrowthSummary")
    result, design = found["StyleResult"], found["HairlineDesign"]
    result["properties"]["design"] = or_null(ref("StyleDesign"), result["properties"]["design"]["description"])
    styles = {"type": "array", "items": ref("StyleResult"), "description": "In the order asked for."}
    results = {"properties": {"results": styles}, "required": ["results"]}
    return {
        **found,
        "StyleDesign": _without(DRAWN_BESIDE, design),
        "GrownStyles": _joined("The styles, and what is common to them.", results, summary),
        "GrownRegion": _joined(region["description"], region, summary),
        "QueuedEvent": _QUEUED,
        "EventStream": _EVENT_STREAM,
        "Refusal": REFUSAL,
    }


def examples() -> dict[str, Schema]:
    """Examples by name."""
    return {
        "measure": {"value": openapi_examples.measure_answer()},
        "styles": {"value": openapi_examples.styles_answer()},
        "grow": {"value": openapi_examples.grow_answer()},
        "hairlines": {"value": openapi_examples.hairlines_answer()},
        "masks": {"value": openapi_examples.masks_answer()},
        "stream": {"value": openapi_examples.streamed_answer()},
        **{reason: {"value": _refusal_example(reason)} for reason in TABLE},
    }
