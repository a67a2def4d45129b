"""What the OpenAPI document says of removing pictures."""

from __future__ import annotations

from typing import Any

from edge.openapi_examples import REQUEST_ID
from edge.openapi_messages import Schema
from edge.openapi_refusals import HEADERS, envelope, example_ref, refused

_REMOVED: Schema = {
    "type": "object",
    "properties": {
        "removed": {"type": "integer", "minimum": 0, "description": "Pictures that were there and are gone now."}
    },
    "required": ["removed"],
    "additionalProperties": False,
}
EXAMPLE: Schema = {"code": 0, "message": "ok", "request_id": REQUEST_ID, "data": {"removed": 2}}

REMOVAL: dict[str, Any] = {
    "summary": "Remove all pictures of a request at once. With an admin token; asking again is no error",
    "description": (
        "Those included that are being stored, here or by another edge of the same store, and those that a request "
        "which is still running would bring: it is refused as `PICTURES_REMOVED`. Where several requests had the same "
        "id, the pictures of all of them."
    ),
    "tags": ["pictures"],
    "response_model": None,
    "responses": {
        200: {
            "description": "They are gone.",
            "headers": HEADERS,
            "content": {
                "application/json": {
                    "schema": envelope(_REMOVED, {"type": "integer", "const": 0}),
                    "examples": {"removed": example_ref("removed")},
                }
            },
        },
        **refused("INVALID_PARAMETER", "UNAUTHORIZED", "TOO_MANY_WRONG_TOKENS", "STORE_FAILED"),
    },
    "openapi_extra": {
        "security": [{"admin": []}, {"adminHeader": []}],
        "parameters": [
            {
                "name": "request_id",
                "in": "path",
                "required": True,
                "description": "The `request_id` of the answer, which was its `X-Request-ID`.",
                "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
                "example": REQUEST_ID,
            }
        ],
    },
}
