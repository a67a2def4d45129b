"""What a client is told whose bytes never became a request, as they go over its connection."""

from __future__ import annotations

import http
from collections.abc import Sequence

import orjson
from starlette.types import Message

from edge.errors import ApiError
from edge.exchange import PREFIX, Exchange
from edge.room import Room


def whole_answer(error: ApiError, url: bytes, known: Sequence[tuple[bytes, bytes]], room: Room) -> bytes:
    """Head and body: the envelope under `/api/`, the short form elsewhere. `known`: the headers that came, in part."""
    status = error.row.http_status
    headers = {"Content-Type": "application/json", "Connection": "close", "Cache-Control": "no-store"}
    if url.startswith(PREFIX.encode()):
        scope = {"type": "http", "method": "", "client": None, "http_version": "1.1", "headers": list(known)}
        exchange = Exchange(scope, _nothing_more, room=room)
        body = exchange.refusal_envelope(error)
        headers |= exchange.common_headers()
    else:
        body = orjson.dumps({"status": "error", "message": error.message.zh})
    headers["Content-Length"] = str(len(body))
    lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}
