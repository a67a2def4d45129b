"""`/metrics` and `/admin/stats` of a served edge, read as Prometheus and as people do."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator

from edge.metrics import TABLE
from edge.pool import events as ev
from hairmesh import certs, pem
from hairmesh.stack import free_ports
from tests.edge.rest import (
    EJECTED,
    MEASURE,
    PASSWORD,
    PHOTO,
    STYLES,
    FakeMesh,
    Rest,
    endpoint,
    eventually,
    failed,
    serving,
)
from tests.fakes.scrape import Scrape

TOKEN = "an-admin-token-of-the-test"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
WHERE_CONFIGURED = {"hairmesh_api_key_requests_total", "hairmesh_certificate_expires_timestamp_seconds"}


@pytest.fixture
async def rest(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[Rest]:
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as running:
        yield running


async def scrape(rest: Rest) -> Scrape:
    response = await rest.client.get("/metrics", headers=ADMIN)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    assert response.headers["cache-control"] == "no-store"
    return Scrape(response.text)


async def stats(rest: Rest) -> dict[str, Any]:
    response = await rest.client.get("/admin/stats", headers=ADMIN)
    assert response.status_code == 200
    told: dict[str, Any] = response.json()
    return told


async def some_requests(rest: Rest, mesh: FakeMesh) -> None:
    """Two good ones, one refused, one that goes nowhere, one that came by a reason of tomorrow; and probes."""
    await rest.measure()
    await rest.measure()
    mesh.failure = failed("YAW")
    await rest.measure()
    mesh.failure = failed("SENTINEL_OF_A_NEWER_WORKER")
    await rest.measure()
    mesh.failure = None
    await rest.client.request("PROPFIND", "/api/SENTINEL?token=SENTINEL")
    await rest.client.get("/monitor")


@pytest.mark.parametrize("path", ["/metrics", "/admin/stats"])
async def test_both_are_for_operators_alone(rest: Rest, tmp_path: Path, path: str) -> None:
    assert (await rest.client.get(path)).status_code == 401
    assert (await rest.client.get(path, headers={"X-Admin-Token": PASSWORD})).status_code == 401
    assert (await rest.client.head(path, headers=ADMIN)).status_code == 200
    (tmp_path / "closed").mkdir()
    async with serving(tmp_path / "closed", FakeMesh()) as closed:
        assert (await closed.client.get(path, headers=ADMIN)).status_code == 403


async def test_requests_are_counted_by_what_became_of_them(rest: Rest, mesh: FakeMesh) -> None:
    await some_requests(rest, mesh)
    found = await scrape(rest)

    def count(route: str = MEASURE, method: str = "POST", **labels: str) -> float | None:
        return found.value("http_requests_total", route=route, method=method, **labels)

    assert count(status="200", code="0", reason="") == 2
    assert count(status="400", code="1003", reason="YAW") == 1
    assert count(status="400", code="1005", reason="other") == 1
    assert count("none", "other", status="404", code="1008", reason="NOT_FOUND") == 1
    durations = {"route": MEASURE, "method": "POST", "status": "200"}
    assert found.value("http_request_duration_seconds_count", **durations) == 2
    assert found.value("http_request_duration_seconds_bucket", **durations, le="+Inf") == 2
    assert found.value("http_requests_in_flight", route=MEASURE) == 0
    assert "SENTINEL" not in found.text
    assert 'route="/monitor"' not in found.text


async def test_a_client_that_leaves_is_counted_as_such(rest: Rest, mesh: FakeMesh) -> None:
    mesh.gate = asyncio.Event()
    _reader, writer = await asyncio.open_connection("127.0.0.1", rest.port)
    head = f"POST {MEASURE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    body = b'{"image_base64": "%b"}' % base64.b64encode(PHOTO)
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await mesh.called.wait()
    assert (await scrape(rest)).value("http_requests_in_flight", route=MEASURE) == 1
    writer.close()
    await mesh.cancelled.wait()
    async with asyncio.timeout(60):
        while (told := (await stats(rest))["routes"])[0]["in_flight"]:
            pass
    assert told[0]["since_start"]["codes"] == {"none": 1}
    labels = {"route": MEASURE, "method": "POST", "code": "none", "reason": "CLIENT_CLOSED"}
    assert (await scrape(rest)).value("http_requests_total", status="499", **labels) == 1


async def test_statistics_for_people(rest: Rest, mesh: FakeMesh) -> None:
    await some_requests(rest, mesh)
    told = await stats(rest)
    assert told["edge"]["id"] == mesh.edge_id
    nowhere, measure = sorted(told["routes"], key=lambda each: str(each["route"] == MEASURE))
    assert nowhere["route"] == "none"
    for span in ("since_start", "last_5_min", "last_hour"):
        assert measure[span]["calls"] == 4
        assert measure[span]["codes"] == {"0": 2, "1003": 1, "1005": 1}
        assert measure[span]["reasons"] == {"YAW": 1, "other": 1}
        assert 0 < measure[span]["latency_ms"]["p50"] <= measure[span]["latency_ms"]["max"]
    document = (await rest.client.get("/openapi.json")).json()
    schema = {**document["components"]["schemas"]["Stats"], "components": document["components"]}
    OAS31Validator(schema).validate(told)


async def test_the_pool_shows_as_it_stands(rest: Rest, mesh: FakeMesh) -> None:
    empty = await scrape(rest)
    for primary in ("true", "false"):  # alerts on 0 need a 0
        assert empty.value("hairmesh_pool_workers", state="SERVING", cause="none", primary=primary) == 0
    assert empty.value("hairmesh_pool_ejections_total", cause="passive") == 0
    mesh.endpoints, mesh.braked = (endpoint(), EJECTED), True
    mesh.tally.heard(ev.Log("warning", "worker_state", {"from": "SERVING", "to": "EJECTED", "cause": "passive"}))
    mesh.tally.heard(ev.Log("info", "worker_state", {"from": "EJECTED", "to": "EJECTED", "cause": "auth"}))
    mesh.tally.attempt_ended("Measure", ev.Code.UNAVAILABLE, 0.2)
    mesh.tally.call_ended(0.3, slow=True)
    found = await scrape(rest)
    assert found.value("hairmesh_pool_workers", state="SERVING", cause="none", primary="true") == 1
    assert found.value("hairmesh_pool_workers", state="EJECTED", cause="passive", primary="false") == 1
    assert found.value("hairmesh_pool_worker_online", worker=EJECTED.target) == 0
    assert found.value("hairmesh_pool_worker_online", worker=endpoint().target) == 1
    assert found.value("hairmesh_pool_ejections_total", cause="passive") == 1
    assert found.value("hairmesh_pool_ejections_total", cause="auth") == 0
    assert found.value("hairmesh_pool_brake") == found.value("hairmesh_pool_growth_capable") == 1
    assert found.value("hairmesh_queue_waiting", class_="fast") == 3
    assert found.value("hairmesh_queue_inside") == 7
    assert found.value("hairmesh_queue_wait_seconds_count", class_="slow") == 1
    service = "hair.analysis.v1.AnalyzeService"
    unavailable = {"grpc_service": service, "grpc_method": "Measure", "grpc_code": "UNAVAILABLE"}
    assert found.value("grpc_client_handled_total", **unavailable) == 1


async def test_a_drill_and_a_wrong_file_show(rest: Rest) -> None:
    before = await scrape(rest)
    assert before.value("hairmesh_alert_drill") == before.value("hairmesh_configuration_refused") == 0
    await rest.client.post("/monitor/fault", json={"enabled": True}, headers={"X-Internal-Token": PASSWORD})
    rest.config_path.write_text("{")
    assert (await scrape(rest)).value("hairmesh_alert_drill") == 1
    async with asyncio.timeout(60):
        while (await scrape(rest)).value("hairmesh_configuration_refused") != 1:
            pass


async def test_every_row_of_the_table_is_shown(rest: Rest, mesh: FakeMesh) -> None:
    mesh.endpoints = (endpoint(),)
    mesh.tally.attempt_ended("Measure", ev.Code.OK, 0.2)
    await rest.measure()
    shown = (await scrape(rest)).names
    for name in TABLE.keys() - WHERE_CONFIGURED:
        assert {name, f"{name}_count"} & shown, name


async def test_refused_tokens_keys_and_certificates_are_shown(tmp_path: Path, mesh: FakeMesh) -> None:
    made = certs.Authority(certs.LOCAL_HOSTS)
    client = made.sign("client")
    for name, content in (("ca", made.certificate), ("cert", client.certificate), ("key", client.key)):
        (tmp_path / name).write_bytes(content)
    key = "7c2e50f1b6c84d0f9a1d"
    entry = {"name": "clinic-a", "sha256": sha256(key.encode()).hexdigest(), "requests_per_minute": 1, "burst": 1}
    worker_tls = {name: str(tmp_path / name) for name in ("ca", "cert", "key")}
    more: dict[str, Any] = {"admin_tokens": [TOKEN], "api_keys": [entry], "worker_tls": worker_tls}
    async with serving(tmp_path, mesh, **more) as rest:
        for headers in ({"X-API-Key": key}, {"X-API-Key": key}, {"X-API-Key": "none"}, {}):
            await rest.measure(headers=headers)
        async with asyncio.timeout(60):
            while (await scrape(rest)).value(
                "hairmesh_certificate_expires_timestamp_seconds", key="worker_tls"
            ) is None:
                pass
        found = await scrape(rest)
    assert found.value("hairmesh_api_key_requests_total", key="clinic-a", result="taken") == 1
    assert found.value("hairmesh_api_key_requests_total", key="clinic-a", result="limited") == 1
    for why, count in (("missing", 1), ("wrong", 1), ("too_many", 0)):
        assert found.value("hairmesh_tokens_refused_total", door="api", why=why) == count
    until = pem.validity(client.certificate).expires_at
    assert found.value("hairmesh_certificate_expires_timestamp_seconds", key="worker_tls") == until.timestamp()


async def test_pictures_are_counted_where_they_are_kept(rest: Rest) -> None:
    await rest.measure()
    await eventually(lambda: any((rest.config_path.parent / "pictures").rglob("*.png")))
    found = await scrape(rest)
    assert found.value("hairmesh_store_pictures") == 1
    assert (found.value("hairmesh_store_bytes") or 0) > 0
    assert found.value("hairmesh_store_writable") == 1
    assert found.value("hairmesh_store_failures_total") == found.value("hairmesh_store_removed_total", why="age") == 0


async def test_a_port_of_its_own_asks_for_no_token(tmp_path: Path, mesh: FakeMesh) -> None:
    (port,) = free_ports(1)
    async with serving(tmp_path, mesh, metrics={"listen": f"127.0.0.1:{port}"}) as rest:
        await rest.client.post(STYLES)
        found = await Scrape.of_port(port)
        labels = {"route": STYLES, "method": "POST", "status": "415", "code": "1008"}
        assert found.value("http_requests_total", **labels, reason="UNSUPPORTED_MEDIA_TYPE") == 1
    with pytest.raises(OSError, match="refused"):
        await Scrape.of_port(port)
