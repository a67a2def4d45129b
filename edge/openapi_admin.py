"""What the OpenAPI document says of `/admin/`."""

from __future__ import annotations

from typing import Any

from edge import outside
from edge.messages import Text
from edge.openapi_refusals import RETRY_AFTER
from edge.pool.brake import SHAREABLE
from edge.pool.endpoint import State
from edge.pool.events import Cause, ProbeResult

Schema = dict[str, Any]


def described(kind: str, description: str, *, nullable: bool = False, **more: object) -> Schema:
    """A value of that kind."""
    return {"type": [kind, "null"] if nullable else kind, "description": description, **more}


def all_of(description: str, properties: Schema) -> Schema:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def listing(description: str, items: Schema) -> Schema:
    """An array."""
    return {"type": "array", "items": items, "description": description}


def _texts(description: str) -> Schema:
    return listing(description, {"type": "string"})


_DECISION = all_of(
    "One change of its state, or one decision about it.",
    {
        "age_s": described("number", "How long ago, in s."),
        "what": described("string", "A change of state or a decision, with its evidence."),
    },
)
_IN_FLIGHT = all_of(
    "A call.",
    {
        "call_id": described("string", "As the worker's log has it."),
        "age_s": described("number", "Since its attempt began, in s."),
        "left_behind": described("boolean", "Its attempt is over, its thread on the worker perhaps not."),
    },
)
_PROBE = all_of(
    "A probe.",
    {
        "result": described("string", "What it found.", enum=[each.name for each in ProbeResult]),
        "evidence": described("string", "What that rests on."),
        "age_s": described("number", "How long ago, in s."),
    },
)
_WORKER = all_of(
    "One worker.",
    {
        "address": described("string", "`host:port`."),
        "name": described("string", "The `dns:///` target that led to it; null: it stands in the file.", nullable=True),
        "primary": described("boolean", "Whether it is asked before the backups."),
        "state": described("string", "Calls go to SERVING ones only.", enum=[str(state) for state in State]),
        "cause": described(
            "string", "Why it is not SERVING.", nullable=True, enum=[*(str(cause) for cause in Cause), None]
        ),
        "evidence": described("string", "What its last change of state rests on."),
        "cooldown_left_s": described("number", "How long it stays ejected whatever probes say, in s; 0: it does not."),
        "last_probe": {
            "anyOf": [_PROBE, {"type": "null"}],
            "description": "Tells of a worker in a cooldown, which probes do not end; null: none has ended yet.",
        },
        "next_probe_in_s": described("number", "In s; null: one runs now.", nullable=True),
        "ejections": described("integer", "Doublings that its next cooldown gets; good calls make them fewer."),
        "leaving": described(
            "boolean", "No longer in the configuration: gets no new calls, or only until it is replaced."
        ),
        "boot_id": described("string", "Of its process; null: not heard of yet.", nullable=True),
        "capabilities": _texts("What it can do now."),
        "lacks": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "What it cannot do now, each with its own reason, such as `dep_down:comfyui`.",
        },
        "in_flight": {"anyOf": [_IN_FLIGHT, {"type": "null"}], "description": "This edge's call in its slot."},
        "stage": described("string", "What it does now by its own word; null: nothing.", nullable=True),
        "taken_by_others": described("boolean", "Whether another edge's call is in its slot."),
        "former_password": described(
            "boolean",
            "Whether it takes only the password before the one in force: a rotation that is not finished. An edge that"
            " starts anew does not get in.",
        ),
        "history": {
            "type": "array",
            "items": _DECISION,
            "description": "Its last changes and what was decided about it, the latest first.",
        },
    },
)
POOL_SCHEMA = all_of(
    "The pool of one edge at one moment.",
    {
        "edge": all_of(
            "This process.",
            {
                "id": described("string", "Of this process: call ids begin with it."),
                "version": described("string", "Of the program."),
                "uptime_s": described("number", "In s."),
            },
        ),
        "configuration": all_of(
            "What is in force.",
            {
                "version": described("integer", "Counts what was in force since the start.", minimum=1),
                "content_hash": described("string", "First 8 digits of the file's SHA-256, as `sha256sum` tells it."),
                "applied_at": described("string", "Since when it is in force.", format="date-time"),
                "awaiting_restart": _texts("Keys whose values in the file are in force after a restart only."),
                "problems": _texts("Why the file, as it is now, is not in force; empty when it is."),
            },
        ),
        "online": all_of(
            "By whom calls can be computed now.",
            {
                "workers_total": described("integer", "As in `/monitor`."),
                "workers_healthy": described("integer", "As in `/monitor`."),
                "workers_primary_total": described("integer", "As in `/monitor`."),
                "workers_primary_healthy": described("integer", "As in `/monitor`."),
                "growth_capable": described("integer", "Online ones that can grow hair."),
            },
        ),
        "braked": described("boolean", "Most went out for one cause: they come back by single trial calls."),
        "shared_cause": described(
            "string", "That cause; null: not braked.", nullable=True, enum=[*sorted(map(str, SHAREABLE)), None]
        ),
        "drill": described("boolean", "Whether `/monitor` answers 503 for an alert drill, whatever is shown here."),
        "queue": all_of(
            "Calls inside this edge.",
            {
                "inside": described("integer", "Calls that run or wait for a worker."),
                "max_in_flight": described("integer", "How many there may be of them."),
                "waiting_fast": described("integer", "Fast calls that wait, inside and outside."),
                "waiting_slow": described("integer", "Slow calls that wait, inside and outside."),
                "waiting_outside": described("integer", "Calls that wait to get inside."),
            },
        ),
        "local_vision": all_of(
            "What the edge computes itself with.",
            {
                "loaded": described("boolean", "Whether its models are in memory."),
                "inside": described("integer", "Calls that run or wait for their turn."),
                "hanging": described("integer", "Threads that hang; their memory comes back with a restart only."),
                "stuck": described("boolean", "Calls are refused with LOCAL_VISION_STUCK: restart the edge."),
            },
        ),
        "workers": {
            "type": "array",
            "items": _WORKER,
            "description": "In the order of the configuration; then those that are leaving.",
        },
    },
)
POOL_EXAMPLE: dict[str, Any] = {
    "edge": {"id": "7c1e44f0", "version": "0.1.0", "uptime_s": 86461.2},
    "configuration": {
        "version": 3,
        "content_hash": "0b5c6f1e",
        "applied_at": "2026-11-03T08:12:44+00:00",
        "awaiting_restart": [],
        "problems": [],
    },
    "online": {
        "workers_total": 2,
        "workers_healthy": 1,
        "workers_primary_total": 2,
        "workers_primary_healthy": 1,
        "growth_capable": 0,
    },
    "braked": False,
    "shared_cause": None,
    "drill": False,
    "queue": {"inside": 1, "max_in_flight": 64, "waiting_fast": 0, "waiting_slow": 0, "waiting_outside": 0},
    "local_vision": {"loaded": True, "inside": 0, "hanging": 0, "stuck": False},
    "workers": [
        {
            "address": "192.0.2.11:50051",
            "name": None,
            "primary": True,
            "state": "SERVING",
            "cause": None,
            "evidence": "probe: SERVING",
            "cooldown_left_s": 0.0,
            "last_probe": {"result": "GOOD", "evidence": "probe: SERVING", "age_s": 2.9},
            "next_probe_in_s": 5.1,
            "ejections": 0,
            "leaving": False,
            "boot_id": "5f0d6a5c3d9b4a7b",
            "capabilities": ["measure"],
            "lacks": {"growth": "dep_down:comfyui"},
            "in_flight": {"call_id": "7c1e44f0-812", "age_s": 0.3, "left_behind": False},
            "stage": "parsing",
            "taken_by_others": False,
            "former_password": False,
            "history": [{"age_s": 86460.9, "what": "SERVING: probe: SERVING"}],
        },
        {
            "address": "192.0.2.12:50051",
            "name": None,
            "primary": True,
            "state": "EJECTED",
            "cause": "passive",
            "evidence": "call: DEADLINE_EXCEEDED",
            "cooldown_left_s": 41.6,
            "last_probe": {"result": "UNREACHABLE", "evidence": "probe: UNAVAILABLE: connection refused", "age_s": 0.6},
            "next_probe_in_s": 0.4,
            "ejections": 1,
            "leaving": False,
            "boot_id": "0c2f9be1774e4f50",
            "capabilities": ["measure"],
            "lacks": {"growth": "dep_down:comfyui"},
            "in_flight": None,
            "stage": None,
            "taken_by_others": False,
            "former_password": False,
            "history": [
                {"age_s": 18.4, "what": "EJECTED passive: call: DEADLINE_EXCEEDED"},
                {"age_s": 86460.9, "what": "SERVING: probe: SERVING"},
            ],
        },
    ],
}

_REFUSAL = all_of(
    "Any refusal outside `/api/`.",
    {"status": {"const": "error"}, "message": described("string", "For people; in the language of `Accept-Language`.")},
)


def refusal(description: str, message: Text) -> Schema:
    """One outside `/api/`."""
    example = {"status": "error", "message": message.en}
    return {"description": description, "content": {"application/json": {"schema": _REFUSAL, "example": example}}}


CHALLENGE: Schema = {"WWW-Authenticate": {"schema": {"type": "string"}, "description": "How to send one: `Bearer`."}}
REFUSED: dict[int | str, Schema] = {
    401: refusal("No admin token, or a wrong one.", outside.ADMIN_TOKEN_WRONG) | {"headers": CHALLENGE},
    403: refusal("Switched off: the configuration names no admin token.", outside.ADMIN_OFF),
    429: refusal("Too many wrong ones came from this address.", outside.ADMIN_TOKENS_TOO_MANY)
    | {"headers": RETRY_AFTER},
}
"""Without a token that is in force."""
GUARDED: dict[str, Any] = {"openapi_extra": {"security": [{"admin": []}, {"adminHeader": []}]}}
POOL: dict[str, Any] = {
    "summary": "For operators: every worker with the evidence of its last decisions, queue, configuration in force",
    "tags": ["operations"],
    "response_model": None,
    "responses": {
        200: {
            "description": "This moment, from memory.",
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/Pool"},
                    "examples": {"pool": {"$ref": "#/components/examples/pool"}},
                }
            },
        },
        **REFUSED,
    },
    **GUARDED,
}
SECURITY_SCHEMES: Schema = {
    "admin": {"type": "http", "scheme": "bearer", "description": "One of `admin_tokens`."},
    "adminHeader": {"type": "apiKey", "in": "header", "name": "X-Admin-Token", "description": "The same."},
    "drill": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Internal-Token",
        "description": "The `shared_password` in force.",
    },
    "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key, where `api_keys` names some."},
    "apiKeyHeader": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same."},
}
