"""API keys of public clients, and how many requests each may make."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from edge import reload
from edge.secrets import WRONG_TOKENS
from edge.settings import ConfigError, parse
from hairmesh.client.plain import Client
from tests.edge.rest import (
    CALLS,
    FEATURES,
    MEASURE,
    PASSWORD,
    PHOTO,
    SPECIAL_POINTS,
    FakeMesh,
    Rest,
    serving,
)

KEY, OTHER = "7c2e50f1b6c84d0f9a1d", "b94d27b9934d3e08a52e"
TOKEN = "an-admin-token-of-the-tests"


def entry(key: str = KEY, name: str = "clinic-a", **limits: Any) -> dict[str, Any]:
    return {"name": name, "sha256": hashlib.sha256(key.encode()).hexdigest(), **limits}


@asynccontextmanager
async def with_keys(folder: Path, mesh: FakeMesh, *entries: dict[str, Any], **changes: Any) -> AsyncIterator[Rest]:
    async with serving(folder, mesh, api_keys=list(entries), **changes) as rest:
        yield rest


@pytest.mark.parametrize("headers", [{"X-API-Key": KEY}, {"Authorization": f"Bearer {KEY}"}])
async def test_a_key_opens_every_call_and_is_named_in_the_request_log(
    tmp_path: Path, mesh: FakeMesh, headers: dict[str, str]
) -> None:
    async with with_keys(tmp_path, mesh, entry(), entry(OTHER, "clinic-b")) as rest:
        response = await rest.measure(headers=headers)
        assert response.status_code == 200
        assert not [name for name in response.headers if name.startswith("ratelimit")]
        assert (await rest.client.get(response.json()["data"]["annotated_image_url"])).status_code == 200
        await rest.stop()
        (line,) = rest.log_lines()
        assert line["api_key"] == "clinic-a"
        assert KEY not in str(line)


@pytest.mark.parametrize(
    "headers", [{}, {"X-API-Key": OTHER}, {"X-API-Key": ""}, {"X-API-Key": KEY, "Authorization": f"Bearer {KEY}"}]
)
async def test_without_a_key_no_call_is_made(tmp_path: Path, mesh: FakeMesh, headers: dict[str, str]) -> None:
    async with with_keys(tmp_path, mesh, entry()) as rest:
        for route in (*CALLS, FEATURES, SPECIAL_POINTS):
            response = await rest.post(route, headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            body = response.json()
            assert (body["code"], body["data"]["reason"]) == (1008, "UNAUTHORIZED")
            assert "Authorization" in body["data"]["advice"]
            assert OTHER not in response.text
        assert mesh.calls == []


async def test_neither_the_hash_nor_another_secret_of_the_edge_is_a_key(tmp_path: Path, mesh: FakeMesh) -> None:
    async with with_keys(tmp_path, mesh, entry(), admin_tokens=[TOKEN]) as rest:
        for wrong in (entry()["sha256"], PASSWORD, TOKEN, "clinic-a"):
            assert (await rest.measure(headers={"X-API-Key": wrong})).status_code == 401


async def test_what_is_no_call_needs_none(tmp_path: Path, mesh: FakeMesh) -> None:
    async with with_keys(tmp_path, mesh, entry()) as rest:
        for path, status in (("/monitor", 200), ("/health", 200), ("/docs", 200), ("/api/v1/none", 404)):
            assert (await rest.client.get(path)).status_code == status, path


async def test_our_own_client_sends_it_with_calls_alone(tmp_path: Path, mesh: FakeMesh) -> None:
    seen: list[tuple[str, str | None]] = []

    def call(url: str) -> None:
        with Client(url, api_key=KEY) as client:
            client._http.event_hooks["request"].append(
                lambda sent: seen.append((sent.url.path, sent.headers.get("x-api-key")))
            )
            answer = client.measure(PHOTO)
            assert answer.ok
            client.picture(answer.data["annotated_image_url"])

    async with with_keys(tmp_path, mesh, entry()) as rest:
        await asyncio.to_thread(call, f"http://127.0.0.1:{rest.port}")
    (measured, picture) = seen
    assert measured == (MEASURE, KEY)
    assert picture[1] is None


async def test_a_key_in_the_query_or_in_the_body_is_none(tmp_path: Path, mesh: FakeMesh) -> None:
    async with with_keys(tmp_path, mesh, entry()) as rest:
        assert (await rest.post(f"{MEASURE}?api_key={KEY}")).status_code == 401
        assert (await rest.measure(api_key=KEY)).status_code == 401
        refused = await rest.post(f"{MEASURE}?api_key={KEY}", headers={"X-API-Key": KEY})
        assert (refused.status_code, refused.json()["data"]["details"]["field"]) == (400, "api_key")


async def test_many_wrong_keys_are_told_to_wait_and_the_right_one_from_there_is_not(
    tmp_path: Path, mesh: FakeMesh
) -> None:
    """A client with an old key must not shut out its neighbours behind one address."""
    async with with_keys(tmp_path, mesh, entry()) as rest:
        with structlog.testing.capture_logs() as logs:
            answers = [await rest.measure(headers={"X-API-Key": "old"}) for _ in range(WRONG_TOKENS.burst + 3)]
        assert [each.status_code for each in answers] == [401] * WRONG_TOKENS.burst + [429] * 3
        refused = answers[-1].json()
        assert (refused["code"], refused["data"]["reason"]) == (1008, "TOO_MANY_WRONG_TOKENS")
        assert int(answers[-1].headers["retry-after"]) == refused["data"]["details"]["retry_after_s"] > 0
        assert (await rest.measure(headers={"X-API-Key": KEY})).status_code == 200
        assert [each["door"] for each in logs if each["event"] == "wrong_tokens"] == ["api"]


async def test_each_key_has_its_own_limit_and_the_answers_say_what_is_left(tmp_path: Path, mesh: FakeMesh) -> None:
    limited = entry(requests_per_minute=2, burst=3)
    async with with_keys(tmp_path, mesh, limited, entry(OTHER, "clinic-b")) as rest:
        answers = [await rest.measure(headers={"X-API-Key": KEY}) for _ in range(5)]
        assert [each.status_code for each in answers] == [200] * 3 + [429] * 2
        assert {each.headers["ratelimit-policy"] for each in answers} == {'"key";q=3;w=90'}
        left = [re.fullmatch(r'"key";r=(\d+);t=(\d+)', each.headers["ratelimit"]) for each in answers]
        assert [int(each[1]) for each in left if each] == [2, 1, 0, 0, 0]
        refused = answers[-1].json()
        assert (refused["code"], refused["data"]["reason"]) == (1008, "TOO_MANY_REQUESTS")
        assert refused["data"]["details"] == {
            "max_requests": 3,
            "window_s": 90,
            "retry_after_s": int(answers[-1].headers["retry-after"]),
        }
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 30
        assert len(mesh.calls) == 3
        assert (await rest.measure(headers={"X-API-Key": OTHER})).status_code == 200
        await rest.stop()
        assert [line["api_key"] for line in rest.log_lines()] == ["clinic-a"] * 5 + ["clinic-b"]


async def test_a_refused_photo_and_a_stream_say_what_is_left_too(tmp_path: Path, mesh: FakeMesh) -> None:
    async with with_keys(tmp_path, mesh, entry(requests_per_minute=60)) as rest:
        refused = await rest.measure(b"no picture", headers={"X-API-Key": KEY})
        assert (refused.status_code, refused.headers["ratelimit"]) == (400, '"key";r=59;t=1')


async def test_without_keys_addresses_may_be_limited(tmp_path: Path, mesh: FakeMesh) -> None:
    limit = {"requests_per_minute": 1, "burst": 2}
    async with serving(tmp_path, mesh, rate_limit=limit, trusted_proxies=["127.0.0.1"]) as rest:
        for client in ("10.0.0.1", "10.0.0.2"):
            answers = [await rest.measure(headers={"X-Forwarded-For": client}) for _ in range(3)]
            assert [each.status_code for each in answers] == [200, 200, 429]
            assert answers[0].headers["ratelimit-policy"] == '"address";q=2;w=120'
        forged = await rest.measure(headers={"X-Forwarded-For": "10.0.0.9, 10.0.0.1"})
        assert forged.status_code == 429, "what the proxy itself did not see is not believed"


async def test_off_by_default(rest: Rest) -> None:
    for _ in range(30):
        response = await rest.client.get(MEASURE)  # no photo: the limit would count before that
        assert response.status_code == 405
    response = await rest.measure(headers={"X-API-Key": "any"})
    assert response.status_code == 200
    assert "ratelimit" not in response.headers
    await rest.stop()
    assert rest.log_lines()[-1]["api_key"] == ""


async def test_keys_come_and_go_while_it_runs(tmp_path: Path, mesh: FakeMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "POLL_S", 0.01)
    async with with_keys(tmp_path, mesh, entry()) as rest:
        await rest.configure(api_keys=[entry(), entry(OTHER, "clinic-a-new")])
        for key in (KEY, OTHER):
            assert (await rest.measure(headers={"X-API-Key": key})).status_code == 200
        await rest.configure(api_keys=[entry(OTHER, "clinic-a-new")])
        assert (await rest.measure(headers={"X-API-Key": KEY})).status_code == 401
        assert (await rest.measure(headers={"X-API-Key": OTHER})).status_code == 200


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"api_keys": [entry(), entry(OTHER)]}, "api_keys: two of them have the same name"),
        ({"api_keys": [entry(), entry(name="b")]}, "api_keys: two of them have the same sha256"),
        ({"api_keys": [entry(PASSWORD)]}, "api_keys: must differ from shared_password and from admin_tokens"),
        ({"api_keys": [entry(TOKEN)]}, "api_keys: must differ from shared_password and from admin_tokens"),
        ({"api_keys": [{"name": "a", "sha256": "SENTINEL"}]}, "api_keys.0.sha256: "),
        ({"api_keys": [{"name": "a b", "sha256": "0" * 64}]}, "api_keys.0.name: "),
        ({"api_keys": [entry(requests_per_minute=0)]}, "api_keys.0.requests_per_minute: "),
        ({"api_keys": [entry(burst=5)]}, "api_keys.0: burst means nothing without requests_per_minute"),
        ({"rate_limit": {"burst": 5}}, "rate_limit: burst means nothing without requests_per_minute"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, Any], problem: str) -> None:
    content = {"workers": ["127.0.0.1:1"], "shared_password": PASSWORD, "admin_tokens": [TOKEN], **changes}
    with pytest.raises(ConfigError) as caught:
        parse(json.dumps(content).encode())
    assert str(caught.value).startswith(problem)
    assert "SENTINEL" not in str(caught.value)


@pytest.mark.parametrize("end", ["%0A", "%0a", "%0D", "%0D%0A", "%00", "%20", "/", "%2F", ";", "%23", "/."])
async def test_no_other_spelling_of_a_path_reaches_a_call(tmp_path: Path, mesh: FakeMesh, end: str) -> None:
    """The framework's own patterns take a line feed at the end."""
    async with with_keys(tmp_path, mesh, entry()) as rest:
        for route in (*CALLS, FEATURES, SPECIAL_POINTS):
            for path in (f"{route}{end}", f"{route}{end}?token=abc"):
                response = await rest.post(path)
                assert response.json()["data"]["reason"] in {"NOT_FOUND", "UNAUTHORIZED"}, path
        assert mesh.calls == []
        await rest.stop()
        assert {line["route"] for line in rest.log_lines() if line["reason"] == "NOT_FOUND"} <= {None}
