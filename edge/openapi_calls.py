"""What the OpenAPI document says of the calls: bodies, answers, streams."""

from __future__ import annotations

from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2, masks_pb2, measure_pb2

from edge import openapi_examples
from edge.errors import TABLE
from edge.exchange import MAX_PATIENCE_MS
from edge.kinds import DRAWN_BESIDE
from edge.openapi_messages import Schema, message_schemas, or_null, ref
from edge.openapi_refusals import HEADERS, REFUSAL, envelope, example_ref, refusal_example, refusals
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
from edge.upload import PHOTO, in_json

REGION, MASK = "region", "mask"
"""Of which a call that takes them takes exactly one."""
_FILES = {
    "image": f"The photo: {', '.join(MEDIA_TYPES)}; by its bytes.",
    "mask": "The region as a picture of the size of the upright photo: inside is above half brightness.",
}
_A_REGION: Schema = {REGION: [[60, 20], [140, 20], [100, 60]]}
_BASE64 = "Base64, plain or URL-safe, padded or not, wrapped or not, with or without a `data:` prefix."


def _request_body(parameters: type[Parameters]) -> Schema:
    """The two ways to send files with the parameters."""
    shape, properties = parameters.shape, parameters.model_json_schema().get("properties", {})
    files = {
        name: {"type": "string", "contentMediaType": "application/octet-stream", "description": _FILES[name]}
        for name in sorted(shape.files)
    }
    texts = {in_json(name): _base64_text(name) for name in sorted(shape.files)}

    def body(photo: str, inside: Schema) -> Schema:
        return {"type": "object", "properties": inside, "required": [photo], "additionalProperties": False}

    in_form = {name: _in_form(name, schema, parameters) for name, schema in properties.items()}
    form, plain = body(PHOTO, {**files, **in_form}), body(in_json(PHOTO), {**texts, **properties})
    if MASK in shape.files:
        form["oneOf"] = [{"required": [name]} for name in (REGION, MASK)]
        plain["oneOf"] = [_given(REGION, without=in_json(MASK)), _given(in_json(MASK), without=REGION)]
    encoding = {name: {"contentType": ", ".join(MEDIA_TYPES.values())} for name in sorted(shape.files)}
    example = {in_json(PHOTO): openapi_examples.BLANK_PHOTO, **(_A_REGION if MASK in shape.files else {})}
    return {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": form, "encoding": encoding},
            "application/json": {
                "schema": plain,
                "examples": {"blank": {"summary": "A blank picture: put your photo in its place.", "value": example}},
            },
        },
    }


def _base64_text(name: str) -> Schema:
    """A file in JSON; only the photo must be there."""
    kind: object = "string" if name == PHOTO else ["string", "null"]
    return {"type": kind, "contentEncoding": "base64", "description": f"{_FILES[name]} {_BASE64}"}


def _given(name: str, *, without: str) -> Schema:
    """Of two properties the one that is given; the other is null, or is not there."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}, without: {"type": "null"}}}


def _in_form(name: str, schema: Schema, parameters: type[Parameters]) -> Schema:
    """A parameter as a form field: a list as it is, or as one field with commas; a region as its JSON text.

    A form has no null: a field that is not meant is not sent.
    """
    said, description = dict(schema), schema["description"]
    if "anyOf" in said:  # what it is, or null, which is the default
        (one,) = (each for each in said.pop("anyOf") if each != {"type": "null"})
        del said["default"]
        said |= one
    if name == REGION:
        return {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": one,
            "description": description,
        }
    if name in parameters.shape.lists:
        said["description"] = f"{description} One field with commas, or the field repeated."
    return said


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


_KEYS: list[dict[str, list[str]]] = [{}, {"apiKey": []}, {"apiKeyHeader": []}]
"""A key is needed where the configuration names some."""


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
            "schema": envelope(ref(data), {"type": "integer", "const": 0}),
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
            200: {"description": "The answer.", "headers": HEADERS, "content": answers},
            **refusals(parameters, local=local),
        },
        "openapi_extra": {
            "requestBody": _request_body(parameters),
            "parameters": _REQUEST_HEADERS,
            "security": _KEYS,
        },
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
        "or bad; a bad one says in `details.retry_after_s` what the header `Retry-After` says elsewhere. What goes "
        "wrong before the first event is an ordinary answer. Leaving ends the call."
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
        **{reason: {"value": refusal_example(reason)} for reason in TABLE},
    }
