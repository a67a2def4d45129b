"""The console's handlers, as browsers and strangers meet them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from starlette.datastructures import Headers

from edge.console.protection import session_of
from tests.edge.rest import EJECTED, PASSWORD, FakeMesh, Rest, endpoint, failed, serving

TOKENS = ["first-admin-token-of-the-test", "second-admin-token-of-the-test"]
ASKS = {"X-HairMesh-Console": "1"}


@pytest.fixture
async def rest(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[Rest]:
    async with serving(tmp_path, mesh, admin_tokens=TOKENS) as running:
        yield running


async def enter(rest: Rest, token: str = TOKENS[0], **headers: str) -> httpx.Response:
    return await rest.client.post("/console/session", json={"token": token}, headers=ASKS | headers)


async def drill(rest: Rest, enabled: object, **headers: str) -> httpx.Response:
    return await rest.client.post("/console/drill", json={"enabled": enabled}, headers=ASKS | headers)


async def state(rest: Rest) -> dict[str, Any]:
    response = await rest.client.get("/console/state")
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


async def test_a_token_opens_a_session_that_scripts_cannot_read(rest: Rest) -> None:
    assert (await rest.client.get("/console/session")).json() == {"open": False}
    response = await enter(rest)
    assert response.status_code == 200
    cookie = response.headers["set-cookie"]
    flags = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict"} <= flags
    assert not any(flag.startswith(("path=", "domain=")) for flag in flags), "so that it goes back to /console alone"
    assert "secure" not in flags, "over plain HTTP on loopback a browser would not keep it"
    assert TOKENS[0] not in cookie
    assert (await rest.client.get("/console/session")).json() == {"open": True}


async def test_the_cookie_stays_on_https_where_the_public_address_is(tmp_path: Path, mesh: FakeMesh) -> None:
    async with serving(tmp_path, mesh, admin_tokens=TOKENS, public_base_url="https://face.example/hair") as running:
        cookie = (await enter(running)).headers["set-cookie"]
        policy = (await running.client.get("/console")).headers["content-security-policy"]
    assert "Secure" in cookie
    assert "img-src 'self' blob: data: https://face.example;" in policy


@pytest.mark.parametrize("body", [b"", b"[]", b'{"token": 1}', b'{"token": null}', b"{", b"x" * 5000])
async def test_what_is_no_token_is_refused(rest: Rest, body: bytes) -> None:
    response = await rest.client.post("/console/session", content=body, headers=ASKS)
    assert response.status_code == 400
    assert "set-cookie" not in response.headers


async def test_a_wrong_token_is_refused_and_told_in_the_log_without_it(rest: Rest) -> None:
    with structlog.testing.capture_logs() as logs:
        response = await enter(rest, "SENTINEL-of-a-wrong-token")
    assert response.status_code == 401
    assert "set-cookie" not in response.headers
    assert [line["event"] for line in logs] == ["wrong_tokens"]
    assert "SENTINEL" not in f"{logs}{response.text}"
    assert (await enter(rest, PASSWORD)).status_code == 401, "the workers' password opens nothing"


async def test_guessing_is_slowed_down(rest: Rest) -> None:
    answers = [await enter(rest, f"guess-number-{number}-of-many") for number in range(12)]
    assert {response.status_code for response in answers} == {401, 429}
    right = await enter(rest)
    assert right.status_code == 429, "until then not even the right one is looked at"
    assert int(right.headers["retry-after"]) > 0
    assert "set-cookie" not in right.headers


@pytest.mark.parametrize("path", ["state", "stats", "calls"])
async def test_whoever_has_not_entered_sees_nothing(rest: Rest, path: str) -> None:
    response = await rest.client.get(f"/console/{path}", headers={"Authorization": f"Bearer {TOKENS[0]}"})
    assert response.status_code == 401
    assert set(response.json()) == {"status", "message"}
    rest.client.cookies.set("hairmesh_console", "made-up")
    assert (await rest.client.get(f"/console/{path}")).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"X-HairMesh-Console": ""},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
async def test_no_other_page_acts_in_its_name(rest: Rest, headers: dict[str, str]) -> None:
    assert (await enter(rest, **headers)).status_code == 403
    assert (await enter(rest)).status_code == 200
    assert (await drill(rest, True, **headers)).status_code == 403
    assert (await rest.client.delete("/console/session", headers=ASKS | headers)).status_code == 403
    assert (await rest.client.get("/monitor")).status_code == 200
    assert (await rest.client.get("/console/session")).json() == {"open": True}


async def test_a_page_without_an_address_is_no_page_of_ours_though_no_host_is_named(rest: Rest) -> None:
    body = json.dumps({"token": TOKENS[0]})
    head = "POST /console/session HTTP/1.0\r\nX-HairMesh-Console: 1\r\nOrigin: null\r\n"
    reader, writer = await rest.raw(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    assert b" 403 " in await reader.readline()
    writer.close()


@pytest.mark.parametrize(
    ("cookie", "session"),
    [
        ("hairmesh_console=aB-_9", "aB-_9"),
        ("a=1; hairmesh_console=x; b=2", "x"),
        ('a="1;2"; hairmesh_console=x', "x"),
        ("hairmesh_console=", ""),
        ('hairmesh_console="x"', ""),
        ("xhairmesh_console=x", ""),
        ("hairmesh_console=" + "x" * 101, ""),
        ("", ""),
    ],
)
def test_the_session_is_found_among_other_cookies(cookie: str, session: str) -> None:
    assert session_of(Headers({"Cookie": cookie})) == session


async def test_its_own_page_does_at_both_of_its_addresses(tmp_path: Path, mesh: FakeMesh) -> None:
    async with serving(tmp_path, mesh, admin_tokens=TOKENS, public_base_url="https://face.example") as running:
        for origin in (f"http://127.0.0.1:{running.port}", "https://face.example"):
            response = await enter(running, Origin=origin, **{"Sec-Fetch-Site": "same-origin"})
            assert response.status_code == 200


async def test_the_state_is_what_monitor_and_admin_tell(rest: Rest, mesh: FakeMesh) -> None:
    mesh.endpoints = (endpoint(), EJECTED)
    await enter(rest)
    told = await state(rest)
    monitor = await rest.client.get("/monitor")
    assert told["monitor"] == {"http_status": monitor.status_code, "body": monitor.json()}
    pool = (await rest.client.get("/admin/pool", headers={"X-Admin-Token": TOKENS[0]})).json()
    for each in (told["pool"], pool):
        each["edge"].pop("uptime_s")
    assert told["pool"] == pool
    assert PASSWORD not in str(told)
    assert not any(token in str(told) for token in TOKENS)


async def test_the_last_errors_are_the_systems_alone(rest: Rest, mesh: FakeMesh) -> None:
    await enter(rest)
    await rest.measure(b"GIF89a, a photo's fault")
    mesh.failure = failed("NO_FACE")
    await rest.measure()
    mesh.failure = failed("WORKER_FAILED")
    await rest.measure(headers={"X-Request-ID": "first"})
    mesh.failure = failed("BUSY")
    await rest.post("/api/v1/hair/styles", headers={"X-Request-ID": "second", "Accept": "text/event-stream"})
    newest, older = (await state(rest))["recent_errors"]
    assert (newest["request_id"], newest["reason"], newest["http_status"]) == ("second", "BUSY", 200)
    assert (older["request_id"], older["reason"], older["http_status"]) == ("first", "WORKER_FAILED", 503)
    assert older["route"] == "/api/v1/face/measure"
    assert older["worker"] == "10.0.0.11:28187"
    assert set(older) == {
        "age_s", "request_id", "route", "http_status", "code", "reason", "worker", "attempts", "duration_ms",
    }  # fmt: skip


async def test_of_many_errors_the_newest_are_kept(rest: Rest, mesh: FakeMesh) -> None:
    mesh.failure = failed("BUSY")
    for number in range(55):
        await rest.measure(headers={"X-Request-ID": f"r{number}"})
    await enter(rest)
    kept = [error["request_id"] for error in (await state(rest))["recent_errors"]]
    assert kept == [f"r{number}" for number in range(54, 4, -1)]


async def test_figures_count_what_was_asked(rest: Rest) -> None:
    await enter(rest)
    await rest.measure()
    told = (await rest.client.get("/console/stats?window=last_5_min")).json()
    (route,) = told["routes"]
    assert (route["route"], route["calls"]) == ("/api/v1/face/measure", 1)
    assert len(told["slots"]) == 45
    ages_s = [slot["age_s"] for slot in told["slots"]]
    assert ages_s == sorted(ages_s, reverse=True)
    assert 0 <= ages_s[-1] <= 20
    assert told["reasons"]["BUSY"]["en"]
    assert (await rest.client.get("/console/stats?window=since_start")).json()["routes"] == told["routes"]
    assert (await rest.client.get("/console/stats?window=forever")).status_code == 400


async def test_the_drill_is_the_one_of_monitor(rest: Rest) -> None:
    assert (await drill(rest, True)).status_code == 401
    await enter(rest)
    with structlog.testing.capture_logs() as logs:
        assert (await drill(rest, True)).json()["simulated"] is True
    assert {"event": "alert_drill", "enabled": True, "log_level": "warning"} in logs
    assert (await rest.client.get("/monitor")).json()["simulated"] is True
    assert (await state(rest))["pool"]["drill"] is True
    assert (await drill(rest, "false")).status_code == 400
    off = {"X-Internal-Token": PASSWORD}
    assert (await rest.client.post("/monitor/fault", json={"enabled": False}, headers=off)).status_code == 200
    assert (await state(rest))["pool"]["drill"] is False


async def test_leaving_ends_the_session(rest: Rest) -> None:
    await enter(rest)
    kept = rest.client.cookies["hairmesh_console"]
    assert (await rest.client.delete("/console/session", headers=ASKS)).status_code == 200
    assert "hairmesh_console" not in rest.client.cookies
    rest.client.cookies.set("hairmesh_console", kept)
    assert (await rest.client.get("/console/state")).status_code == 401


async def test_a_session_ends_when_its_token_is_taken_away(rest: Rest) -> None:
    await enter(rest)
    await rest.configure(admin_tokens=TOKENS[1:])
    assert (await rest.client.get("/console/state")).status_code == 401


async def test_the_page_and_its_files_need_no_session_and_are_kept_nowhere(rest: Rest) -> None:
    page = await rest.client.get("/console")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().partition(" ")[::2] for part in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in page.headers["content-security-policy"]
    for name, kind in (("app.js", "text/javascript"), ("console.css", "text/css"), ("words.json", "application/json")):
        file = await rest.client.get(f"/console/{name}")
        assert file.status_code == 200
        assert file.headers["content-type"].startswith(kind)
        for response in (page, file):
            assert response.headers["cache-control"] == "no-store"
            assert response.headers["x-content-type-options"] == "nosniff"


async def test_a_slash_too_many_leads_to_the_page(rest: Rest) -> None:
    response = await rest.client.get("/console/", headers={"Host": "elsewhere.example"})
    assert (response.status_code, response.headers["location"]) == (308, "../console")
    assert (await rest.client.get("/console/", follow_redirects=True)).url.path == "/console"


@pytest.mark.parametrize("name", ["index.html", "nothing.js", "..%2fhandlers.py", "%2e%2e", "handlers.py", "app.js/"])
async def test_no_other_file_is_given(rest: Rest, name: str) -> None:
    assert (await rest.client.get(f"/console/{name}")).status_code == 404


@pytest.mark.parametrize("changes", [{}, {"admin_tokens": TOKENS, "console": {"enabled": False}}])
async def test_where_nobody_could_enter_there_is_no_console(tmp_path: Path, mesh: FakeMesh, changes: Any) -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(tmp_path, mesh, **changes) as running:
            for path in ("", "/app.js", "/session", "/state"):
                assert (await running.client.get(f"/console{path}")).status_code == 404
            assert (await enter(running)).status_code == 404
            assert (await drill(running, True)).status_code == 404
    hints = [line["hint"] for line in logs if line["event"] == "console_closed"]
    assert len(hints) == (1 if not changes else 0)
    assert all("admin_tokens" in hint for hint in hints)


async def test_it_can_be_shut_and_opened_while_the_edge_runs(rest: Rest) -> None:
    for enabled, status in ((False, 404), (True, 200)):
        await rest.configure(console={"enabled": enabled})
        assert (await rest.client.get("/console")).status_code == status
