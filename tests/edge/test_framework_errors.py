"""What the framework itself would answer (404, 405, 415, 422, bad JSON, surrogates, binary bodies) is ours.

Short, in one shape, and without a piece of what was sent. Reports B52 and B54, over every route there is.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from edge.errors import TABLE
from edge.openapi_examples import BLANK_PHOTO
from tests.edge.documented import ADMIN_TOKEN, talkative_edge
from tests.edge.rest import CALLS, FEATURES, PASSWORD, SPECIAL_POINTS, Rest

REMOVAL = "/api/v1/requests/abc/pictures"
POSTED = (*CALLS, FEATURES, SPECIAL_POINTS)
LONGEST_ANSWER = 700
"""Bytes: headers and body of any refusal below."""


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Rest]:
    async with talkative_edge(tmp_path) as rest:
        yield rest


def refused(response: httpx.Response, status: int, reason: str = "") -> None:
    """The one shape under `/api/`, the other one elsewhere; nothing else in either."""
    assert response.status_code == status, response.text
    assert len(response.content) < LONGEST_ANSWER
    assert "SENTINEL" not in response.text + str(response.headers)
    body = response.json()
    if not response.request.url.path.startswith("/api/"):
        assert set(body) == {"status", "message"}
        assert body["status"] == "error"
        return
    assert list(body) == ["code", "message", "request_id", "data"]
    assert list(body["data"]) == ["reason", "details", "advice"]
    assert (body["code"], body["data"]["reason"]) == (TABLE[reason].code, reason)
    assert response.headers["x-request-id"] == body["request_id"]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PROPFIND"])
async def test_no_such_route(edge: Rest, method: str) -> None:
    for path in ("/api/SENTINEL", f"{CALLS[0]}/", "/api/", "/SENTINEL", "/monitor/SENTINEL", "/admin/SENTINEL", "/"):
        refused(await edge.client.request(method, path, params={"SENTINEL": "SENTINEL"}), 404, "NOT_FOUND")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
async def test_no_such_method(edge: Rest, method: str) -> None:
    allowed = {**dict.fromkeys((*POSTED, "/monitor/fault"), frozenset({"POST"})), REMOVAL: frozenset({"DELETE"})}
    if method != "GET":
        allowed |= dict.fromkeys(("/monitor", "/admin/stats", "/metrics", "/console"), frozenset({"GET", "HEAD"}))
    for path, methods in allowed.items():
        response = await edge.client.request(method, path)
        refused(response, 405, "METHOD_NOT_ALLOWED")
        assert set(response.headers["allow"].split(", ")) == methods


@pytest.mark.parametrize(
    "content_type", ["image/png", "text/SENTINEL", "application/x-www-form-urlencoded", "", "\xff", None]
)
async def test_no_such_body_type(edge: Rest, content_type: str | None) -> None:
    headers = {} if content_type is None else {b"Content-Type": content_type.encode("latin-1")}
    body = b"\x89PNG SENTINEL" + os.urandom(60_000)
    for path in POSTED:
        refused(await edge.client.post(path, content=body, headers=headers), 415, "UNSUPPORTED_MEDIA_TYPE")


BAD_JSON = {
    "binary": b"\x89PNG\r\n\x1a\nSENTINEL" + bytes(range(256)) * 20,
    "nothing": b"",
    "broken off": b'{"image_base64": "SENTINEL',
    "latin-1": '{"lang": "SENTINEL ä"}'.encode("latin-1"),
    "UTF-16": '{"lang": "SENTINEL"}'.encode("utf-16"),
    "a surrogate": b'{"lang": "SENTINEL \xed\xa0\x80"}',
    "an escaped surrogate": b'{"lang": "SENTINEL \\ud800"}',
    "no number of JSON": b'{"seed": NaN, "x": "SENTINEL"}',
    "too deep": b"[" * 2000 + b'"SENTINEL"' + b"]" * 2000,
    "a list": b'["SENTINEL"]',
    "a comment": b'{"lang": "zh" /* SENTINEL */}',
}


@pytest.mark.parametrize("path", POSTED)
async def test_bad_json(edge: Rest, path: str) -> None:
    for body in BAD_JSON.values():
        response = await edge.client.post(path, content=body, headers={"Content-Type": "application/json"})
        refused(response, 400, "BAD_JSON")


async def test_bad_json_for_the_drill(edge: Rest) -> None:
    for body in (*BAD_JSON.values(), b'{"enabled": "SENTINEL"}', b'{"SENTINEL": 1}'):
        for headers, status in (({"X-Internal-Token": PASSWORD}, 400), ({"X-Internal-Token": "SENTINEL"}, 401)):
            refused(await edge.client.post("/monitor/fault", content=body, headers=headers), status)


ODD: dict[str, dict[str, Any]] = {
    "another type": {"lang": ["SENTINEL" * 1000]},
    "an object": {"lang": {"SENTINEL": "SENTINEL"}},
    "a name that is none": {"SENTINEL: 1": 1},
    "a long name": {"SENTINEL" * 100: 1},
    "a password": {"password": "SENTINEL"},
    "a name with an end": {"lang\0SENTINEL": "zh"},
    "text": {"lang": "SENTINEL\ud7ff\0\r\n"},
    "no text as a picture": {"image_base64": {"SENTINEL": "SENTINEL"}},
    "no base64 as a picture": {"image_base64": "SENTINEL!" * 1000},
    "no picture as a picture": {"image_base64": "U0VOVElORUw="},
}


@pytest.mark.parametrize("path", POSTED)
async def test_what_a_schema_would_refuse(edge: Rest, path: str) -> None:
    for odd in ODD.values():
        response = await edge.client.post(path, json={"image_base64": BLANK_PHOTO, **odd})
        refused(response, 400, response.json()["data"]["reason"])


@pytest.mark.parametrize("headers", [{}, {"X-Admin-Token": "SENTINEL"}, {"Authorization": "Basic SENTINEL"}])
async def test_operators_doors(edge: Rest, headers: dict[str, str]) -> None:
    for path in ("/admin/stats", "/admin/pool", "/metrics", REMOVAL):
        response = await edge.client.request("DELETE" if path == REMOVAL else "GET", path, headers=headers)
        refused(response, 401, "UNAUTHORIZED")
        assert response.headers["www-authenticate"] == "Bearer"


async def test_request_ids_that_are_none(edge: Rest) -> None:
    for request_id in ("%00", "a%20b", "a" * 65, "SENTINEL%0d%0a", "%ff", "%F0%9F%99%82"):
        path = f"/api/v1/requests/{request_id}/pictures"
        refused(await edge.client.delete(path, headers={"X-Admin-Token": ADMIN_TOKEN}), 400, "INVALID_PARAMETER")


async def test_none_of_it_is_in_a_log(edge: Rest, capfd: pytest.CaptureFixture[str]) -> None:
    with structlog.testing.capture_logs() as logs:
        for path in POSTED:
            for body in BAD_JSON.values():
                await edge.client.post(path, content=body, headers={"Content-Type": "application/json"})
            for odd in ODD.values():
                await edge.client.post(path, json={"image_base64": BLANK_PHOTO, **odd})
        await edge.client.post("/SENTINEL", content=b"SENTINEL", headers={"User-Agent": "SENTINEL"})
    await edge.stop()
    said = "".join(capfd.readouterr()) + json.dumps(logs, default=str) + edge.settings.request_log.path.read_text()
    assert "SENTINEL" not in said


async def test_strangers_do_not_fill_the_log(edge: Rest, caplog: pytest.LogCaptureFixture) -> None:
    """What is no HTTP at all is answered, counted, and told to nobody."""
    upgrade = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    caplog.clear()
    for request in (b"SENTINEL\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01SENTINEL", upgrade):
        reader, writer = await edge.raw(request, end=request != upgrade)
        assert b"SENTINEL" not in await reader.read()
        writer.close()
    assert caplog.records == []
