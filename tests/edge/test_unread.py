"""Headers and queries that nobody here reads keep nobody from being answered."""

from __future__ import annotations

import http.cookies
from pathlib import Path
from typing import Any

import pytest
import starlette.datastructures
import starlette.requests

from edge.messages import MAX_HEADER_CHARACTERS, Lang, preferred_language
from edge.stream import is_wanted
from tests.edge.documented import ADMIN_TOKEN, talkative_edge
from tests.edge.rest import CALLS, FEATURES, SPECIAL_POINTS

QUOTES = 'hairmesh_console="' + '\\"' * 5_000 + '"'
"""Of the square of their number is the time that Python takes for them: a second for 15,000."""
NAMES = "&".join(f"a{number}=" for number in range(1_500))
PATHS = (
    *(f"{route}{end}" for route in (*CALLS, FEATURES, SPECIAL_POINTS) for end in ("", "%0A", "/")),
    "/api/v1/requests/abc/pictures",
    "/health",
    "/gateway-health",
    "/livez",
    "/readyz",
    "/monitor",
    "/monitor/fault",
    "/metrics",
    "/admin/pool",
    "/admin/stats",
    f"/static/annotations/{'a' * 48}.png",
    "/docs",
    "/openapi.json",
    "/console",
    "/console/session",
    "/console/state",
    "/console/app.js",
    "/nothing",
)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_no_cookie_and_no_query_is_taken_apart_for_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    taken: list[str] = []

    def taking(what: str) -> Any:
        def take(text: str, **_options: Any) -> Any:
            if text:
                taken.append(what)
            return {}

        return take

    monkeypatch.setattr(starlette.requests, "cookie_parser", taking("cookies"))
    monkeypatch.setattr(http.cookies, "_unquote", taking("cookies"))
    monkeypatch.setattr(starlette.datastructures, "parse_qsl", taking("query"))
    headers = {"Cookie": QUOTES, "X-HairMesh-Console": "1", "Authorization": f"Bearer {ADMIN_TOKEN}x"}
    async with talkative_edge(tmp_path) as rest:
        for path in PATHS:
            response = await rest.client.request(method, f"{path}?{NAMES}", headers=headers)
            assert response.status_code not in {431, 500}, path
            assert taken == [], path


def test_of_a_list_of_wishes_the_beginning_is_read() -> None:
    assert preferred_language("," * (MAX_HEADER_CHARACTERS - 2) + "en") is Lang.EN
    assert preferred_language("," * MAX_HEADER_CHARACTERS + "en") is Lang.ZH
    assert is_wanted(["text/event-stream", "," * 30_000])
    assert not is_wanted(["," * MAX_HEADER_CHARACTERS, "text/event-stream"])
