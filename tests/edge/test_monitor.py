"""Probes and the alert drill: bodies exactly as alerting expects them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import structlog

from edge.calls import OnlineCounts
from tests.edge.rest import PASSWORD, FakeMesh, Rest

TOKEN = {"X-Internal-Token": PASSWORD}
SOME = OnlineCounts(total=5, healthy=3, primary_total=3, primary_healthy=3)
BACKUP_ONLY = OnlineCounts(total=5, healthy=1, primary_total=3, primary_healthy=0)
NONE = OnlineCounts(total=5, healthy=0, primary_total=3, primary_healthy=0)


@pytest.mark.parametrize(
    ("counts", "http_status", "body"),
    [
        (
            SOME,
            200,
            '{"status":"ok","service":"gateway","workers_total":5,"workers_healthy":3,'
            '"workers_primary_total":3,"workers_primary_healthy":3}',
        ),
        (
            BACKUP_ONLY,
            200,
            '{"status":"ok","service":"gateway","workers_total":5,"workers_healthy":1,'
            '"workers_primary_total":3,"workers_primary_healthy":0}',
        ),
        (
            NONE,
            503,
            '{"status":"unhealthy","service":"gateway","workers_total":5,"workers_healthy":0,'
            '"workers_primary_total":3,"workers_primary_healthy":0,"message":"没有可用的 worker"}',
        ),
    ],
)
async def test_monitor(rest: Rest, mesh: FakeMesh, counts: OnlineCounts, http_status: int, body: str) -> None:
    mesh.counts = counts
    response = await rest.client.get("/monitor")
    assert (response.status_code, response.text) == (http_status, body)
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/health", "/gateway-health"])
@pytest.mark.parametrize(("counts", "healthy"), [(SOME, 3), (NONE, 0)])
async def test_health_is_always_200(rest: Rest, mesh: FakeMesh, path: str, counts: OnlineCounts, healthy: int) -> None:
    mesh.counts = counts
    response = await rest.client.get(path)
    assert response.status_code == 200
    assert response.text == f'{{"status":"ok","service":"gateway","workers_total":5,"workers_healthy":{healthy}}}'


@pytest.mark.parametrize("path", ["/health", "/gateway-health", "/livez", "/readyz", "/monitor"])
async def test_probes_answer_head(rest: Rest, path: str) -> None:
    head, get = await rest.client.head(path), await rest.client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"] == str(len(get.content))


async def test_ready_needs_a_store_that_can_be_written(rest: Rest) -> None:
    assert (await rest.client.get("/readyz")).status_code == 200
    rest.settings.static.dir.rmdir()
    promised = (await rest.measure()).json()["data"]["annotated_image_url"]
    async with asyncio.timeout(60):
        while (response := await rest.client.get("/readyz")).status_code == 200:
            pass
    assert response.status_code == 503
    assert response.json()["picture_store_writable"] is False
    assert (await rest.measure()).json()["data"]["reason"] == "STORE_FAILED"
    assert (await rest.client.get(promised)).status_code == 200
    assert (await rest.client.get("/livez")).status_code == 200
    assert (await rest.client.get("/monitor")).status_code == 200


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (SOME, "模拟故障：监控测试中，真实 worker 未摘除"),
        (NONE, "模拟故障：监控测试中，当前没有可用的 worker"),
    ],
)
async def test_drill(rest: Rest, mesh: FakeMesh, counts: OnlineCounts, message: str) -> None:
    mesh.counts = counts
    on = await rest.client.post("/monitor/fault", json={"enabled": True}, headers=TOKEN)
    assert on.text == '{"status":"ok","simulated":true,"message":"已开启模拟故障，GET /monitor 将返回 503"}'
    response = await rest.client.get("/monitor")
    assert response.status_code == 503
    assert response.json() == {
        "status": "unhealthy",
        "service": "gateway",
        "workers_total": counts.total,
        "workers_healthy": counts.healthy,
        "workers_primary_total": 3,
        "workers_primary_healthy": counts.primary_healthy,
        "simulated": True,
        "message": message,
    }
    assert (await rest.measure()).status_code == 200
    assert (await rest.client.get("/health")).status_code == 200
    off = await rest.client.post("/monitor/fault", json={"enabled": False}, headers=TOKEN)
    assert off.text == '{"status":"ok","simulated":false,"message":"已关闭模拟故障，GET /monitor 恢复真实状态"}'
    assert "simulated" not in (await rest.client.get("/monitor")).json()


async def test_each_change_of_the_drill_is_one_warning(rest: Rest) -> None:
    with structlog.testing.capture_logs() as logs:
        for enabled in (True, True, False, False):
            await rest.client.post("/monitor/fault", json={"enabled": enabled}, headers=TOKEN)
    drills = [entry for entry in logs if entry["event"] == "alert_drill"]
    assert [(entry["log_level"], entry["enabled"]) for entry in drills] == [("warning", True), ("warning", False)]


@pytest.mark.parametrize(
    "body",
    [b'{"enabled":"true"}', b'{"enabled":1}', b'{"enabled":null}', b"{}", b"true", b"[]", b"", b"{", b'{"enabled":tru'],
)
async def test_the_drill_takes_a_json_boolean_only(rest: Rest, body: bytes) -> None:
    response = await rest.client.post("/monitor/fault", content=body, headers=TOKEN)
    refused(response, 400)
    assert (await rest.client.get("/monitor")).status_code == 200


async def test_a_huge_drill_is_refused(rest: Rest) -> None:
    refused(await rest.client.post("/monitor/fault", content=b" " * 5000, headers=TOKEN), 400)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("X-Internal-Token", "")],
        [("X-Internal-Token", "wrong")],
        [("X-Internal-Token", PASSWORD + "x")],
        [("X-Internal-Token", "caf\xe9")],
        [("X-Internal-Token", "x" * 30_000)],
        [("X-Internal-Token", PASSWORD), ("X-Internal-Token", PASSWORD)],
        [("Authorization", PASSWORD)],
    ],
)
@pytest.mark.parametrize("body", [b'{"enabled":true}', b"not even JSON"])
async def test_without_the_token_nothing_changes(rest: Rest, headers: list[tuple[str, str]], body: bytes) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    refused(await rest.client.post("/monitor/fault", content=body, headers=raw), 401)
    assert (await rest.client.get("/monitor")).status_code == 200


async def test_a_token_in_the_address_does_not_count(rest: Rest) -> None:
    response = await rest.client.post(f"/monitor/fault?X-Internal-Token={PASSWORD}", json={"enabled": True})
    refused(response, 401)


@pytest.mark.parametrize(
    ("headers", "body", "chinese", "english"),
    [
        ({}, b"{}", "X-Internal-Token 缺失或错误", "X-Internal-Token is missing or wrong."),
        (TOKEN, b"{}", "请求体必须是", "The body must be"),
        (TOKEN, b" " * 5000, "请求体过大或未完整到达", "The body is too large, or did not arrive whole."),
    ],
)
async def test_refusals_of_the_drill_are_in_the_language_asked_for(
    rest: Rest, headers: dict[str, str], body: bytes, chinese: str, english: str
) -> None:
    """What it says when it does as it is told is fixed, for alerting that looks for it."""
    for language, words in (({}, chinese), ({"Accept-Language": "en"}, english)):
        response = await rest.client.post("/monitor/fault", content=body, headers=headers | language)
        refused(response, 401 if not headers else 400)
        assert response.json()["message"].startswith(words)
    good = await rest.client.post("/monitor/fault", json={"enabled": False}, headers=TOKEN | {"Accept-Language": "en"})
    assert good.json()["message"] == "已关闭模拟故障，GET /monitor 恢复真实状态"


@pytest.mark.parametrize(
    ("method", "path", "http_status"), [("GET", "/monitor/fault", 405), ("POST", "/monitor", 405), ("GET", "/x", 404)]
)
async def test_no_business_envelope_outside_the_api(rest: Rest, method: str, path: str, http_status: int) -> None:
    refused(await rest.client.request(method, path), http_status)


def refused(response: Any, http_status: int) -> None:
    """A refusal outside `/api/`."""
    assert response.status_code == http_status
    assert set(response.json()) == {"status", "message"}
    assert response.json()["status"] == "error"
