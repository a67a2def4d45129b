"""What the OpenAPI document says of refusals: one table of reasons, by HTTP status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from edge.errors import TABLE, ApiError
from edge.messages import Lang
from edge.openapi_examples import DETAILS, REQUEST_ID
from edge.openapi_messages import Schema, ref
from edge.parameters import Parameters

_BESIDE = ("NOT_FOUND", "METHOD_NOT_ALLOWED")
"""Never on a call that is made as documented."""
_DONE_WITHOUT = ("HAIRLINE_HIDDEN",)
"""For a call that cannot do without the hairline: those of today answer with what they have."""
_OF_WORKERS = {"NO_WORKER", "WORKER_FAILED", "STORE_FULL", "STORE_FAILED", "PICTURES_REMOVED"}
_OF_LOCAL_VISION = {"LOCAL_VISION_MISSING", "LOCAL_MODELS_MISSING", "LOCAL_VISION_STUCK"}


def example_ref(name: str) -> Schema:
    """Examples stand in `components`: FastAPI would drop every null in them on the routes."""
    return {"$ref": f"#/components/examples/{name}"}


def envelope(data: Schema, code: Schema) -> Schema:
    """What every answer under `/api/` is."""
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


REFUSAL = envelope(
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

HEADERS = {
    "X-Request-ID": {"schema": {"type": "string"}, "description": "As in the envelope."},
    "Content-Language": {
        "schema": {"type": "string", "enum": [lang.value for lang in Lang]},
        "description": "Language of `message` and `advice`.",
    },
    "RateLimit-Policy": {
        "schema": {"type": "string"},
        "description": (
            "Where requests are limited: how many may be made (`q`) in how many seconds (`w`), as in "
            "draft-ietf-httpapi-ratelimit-headers-10."
        ),
    },
    "RateLimit": {
        "schema": {"type": "string"},
        "description": "Then: how many are left (`r`), and in how many seconds all will be again (`t`).",
    },
}
RETRY_AFTER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds after which to try again."}}


def refusals(parameters: type[Parameters], *, local: bool) -> dict[int | str, Schema]:
    """Responses of a call with these parameters by HTTP status, each reason with an example from the table.

    `local`: computed on the edge itself.
    """
    return refused(*(reason for reason in TABLE if _can_happen(reason, parameters, local=local)))


def refused(*reasons: str) -> dict[int | str, Schema]:
    """Responses by HTTP status: these reasons, and what can happen anywhere under `/api/`."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for reason in reasons:
        by_status[TABLE[reason].http_status].append(reason)
    found: dict[int | str, Schema] = {
        status: _response(_said(group), group) for status, group in sorted(by_status.items())
    }
    return found | {"default": _elsewhere()}


def _elsewhere() -> Schema:
    words = (
        f"Anything else under `/api/`: {_said(_BESIDE, with_status=True)} "
        f"Kept for a call that cannot do without the hairline; all can now, and growth names it as `grown_reason`: "
        f"{_said(_DONE_WITHOUT, with_status=True)}"
    )
    return _response(words, _BESIDE)


def _said(reasons: Iterable[str], *, with_status: bool = False) -> str:
    rows = ((reason, TABLE[reason]) for reason in reasons)
    return "; ".join(f"{f'{row.http_status} ' * with_status}`{reason}` {row.message.en}" for reason, row in rows)


def _response(description: str, reasons: Collection[str]) -> Schema:
    return {
        "description": description,
        "headers": HEADERS | (RETRY_AFTER if any(TABLE[reason].retry_after_s for reason in reasons) else {}),
        "content": {
            "application/json": {
                "schema": ref("Refusal"),
                "examples": {reason: example_ref(reason) for reason in reasons},
            }
        },
    }


def refusal_example(reason: str) -> Schema:
    """The envelope of a refusal, in Chinese."""
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


def _can_happen(reason: str, parameters: type[Parameters], *, local: bool) -> bool:
    """Whether a call with these parameters may be refused for it."""
    if reason.startswith(("REGION_", "MASK_")):
        return "mask" in parameters.shape.files
    return reason not in {*_BESIDE, *_DONE_WITHOUT, *(_OF_WORKERS if local else _OF_LOCAL_VISION)}
