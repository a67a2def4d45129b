"""`/admin/pool`: everything an operator may want to know, for operators alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator

from edge.pool.snapshot import ProbeSnapshot
from edge.reload import content_hash
from tests.edge.rest import EJECTED, PASSWORD, SOME_ONLINE, FakeMesh, Rest, endpoint, serving

TOKENS = ["first-admin-token-of-the-test", "second-admin-token-of-the-test"]
BEARER = {"Authorization": f"Bearer {TOKENS[0]}"}


@pytest.fixture
async def rest(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[Rest]:
    async with serving(tmp_path, mesh, admin_tokens=TOKENS) as running:
        yield running


async def pool(rest: Rest) -> dict[str, Any]:
    response = await rest.client.get("/admin/pool", headers=BEARER)
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {TOKENS[0]}"},
        {"Authorization": f"bearer {TOKENS[1]}"},
        {"X-Admin-Token": TOKENS[0]},
        {"X-Admin-Token": TOKENS[1]},
    ],
)
async def test_whoever_brings_a_token_may_read(rest: Rest, headers: dict[str, str]) -> None:
    response = await rest.client.get("/admin/pool", headers=headers)
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"


async def refusal(rest: Rest, headers: list[tuple[str, str]]) -> str:
    """What somebody is told who may not read it and asks for English; in Chinese it is not the same."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    chinese = await rest.client.get("/admin/pool", headers=raw)
    response = await rest.client.get("/admin/pool", headers=[*raw, (b"Accept-Language", b"en")])
    assert "令牌" in chinese.json()["message"]
    assert "令牌" not in response.json()["message"]
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.headers["cache-control"] == "no-store"
    assert set(response.json()) == {"status", "message"}
    return str(response.json()["message"])


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Admin-Token", TOKENS[0][:-1])],
        [("X-Admin-Token", TOKENS[0] + "x")],
        [("X-Admin-Token", "caf\xe9-with-sixteen-characters")],
        [("X-Admin-Token", "x" * 30_000)],
        [("X-Admin-Token", PASSWORD)],
        [("Authorization", f"Bearer {TOKENS[0]}x")],
    ],
)
async def test_nobody_else_does_and_hears_that_the_token_is_not_accepted(
    rest: Rest, headers: list[tuple[str, str]]
) -> None:
    assert "not accepted" in await refusal(rest, headers)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("X-Admin-Token", "")],
        [("X-Admin-Token", TOKENS[0]), ("X-Admin-Token", TOKENS[0])],
        [("X-Admin-Token", TOKENS[0]), ("Authorization", f"Bearer {TOKENS[0]}")],
        [("X-Internal-Token", PASSWORD)],
        [("Authorization", TOKENS[0])],
        [("Authorization", f"Basic {TOKENS[0]}")],
        [("Authorization", "Bearer")],
    ],
)
async def test_who_sends_no_token_hears_how(rest: Rest, headers: list[tuple[str, str]]) -> None:
    assert "X-Admin-Token" in await refusal(rest, headers)


async def test_a_token_in_the_address_does_not_count(rest: Rest) -> None:
    assert (await rest.client.get(f"/admin/pool?X-Admin-Token={TOKENS[0]}")).status_code == 401


async def test_without_tokens_it_is_switched_off_and_says_how_to_switch_it_on(tmp_path: Path, mesh: FakeMesh) -> None:
    async with serving(tmp_path, mesh) as rest:
        for headers in ({}, {"X-Admin-Token": ""}, BEARER):
            response = await rest.client.get("/admin/pool", headers=headers)
            assert response.status_code == 403
            assert "admin_tokens" in response.json()["message"]


async def test_what_it_tells(rest: Rest, mesh: FakeMesh) -> None:
    mesh.endpoints = (endpoint(in_flight_s=0.31, call_id="7c1e44f0-812", stage="parsing"), EJECTED)
    told = await pool(rest)
    serving_one, ejected = told["workers"]
    assert serving_one == {
        "address": "10.0.0.11:28187",
        "name": None,
        "primary": True,
        "state": "SERVING",
        "cause": None,
        "evidence": "probe: SERVING",
        "cooldown_left_s": 0.0,
        "last_probe": None,
        "next_probe_in_s": 3.2,
        "ejections": 0,
        "leaving": False,
        "boot_id": "5f0d6a5c",
        "capabilities": ["growth", "measure"],
        "lacks": {},
        "in_flight": {"call_id": "7c1e44f0-812", "age_s": 0.3, "left_behind": False},
        "stage": "parsing",
        "taken_by_others": False,
        "former_password": False,
        "history": [{"age_s": 12.3, "what": "UNKNOWN → SERVING: probe: SERVING"}],
    }
    assert ejected["cause"] == "passive"
    assert ejected["cooldown_left_s"] == 47.4
    assert ejected["in_flight"] == {"call_id": "7c1e44f0-9", "age_s": 93.2, "left_behind": True}
    assert ejected["name"] == "dns:///workers.example:28187"
    assert [entry["age_s"] for entry in ejected["history"]] == [12.6, 90.0]
    assert told["queue"] == {
        "inside": 7,
        "max_in_flight": 64,
        "waiting_fast": 3,
        "waiting_slow": 1,
        "waiting_outside": 2,
    }
    assert told["online"] == {
        "workers_total": SOME_ONLINE.total,
        "workers_healthy": SOME_ONLINE.healthy,
        "workers_primary_total": SOME_ONLINE.primary_total,
        "workers_primary_healthy": SOME_ONLINE.primary_healthy,
        "growth_capable": 1,
    }
    assert (told["braked"], told["shared_cause"], told["drill"]) == (False, None, False)
    assert told["edge"]["id"] == mesh.edge_id
    assert told["edge"]["uptime_s"] >= 0


async def test_a_drill_shows_where_operators_look(rest: Rest) -> None:
    for enabled in (True, False):
        token = {"X-Internal-Token": PASSWORD}
        await rest.client.post("/monitor/fault", json={"enabled": enabled}, headers=token)
        assert (await pool(rest))["drill"] is enabled


async def test_a_worker_behind_in_a_rotation_is_shown(rest: Rest, mesh: FakeMesh) -> None:
    mesh.endpoints, mesh.former = (endpoint(), EJECTED), frozenset({EJECTED.target})
    assert [worker["former_password"] for worker in (await pool(rest))["workers"]] == [False, True]


async def test_what_the_last_probe_found_is_shown(rest: Rest, mesh: FakeMesh) -> None:
    probe = ProbeSnapshot("UNREACHABLE", "probe: UNAVAILABLE: connection refused", 1.26)
    mesh.endpoints = (replace(EJECTED, last_probe=probe),)
    (worker,) = (await pool(rest))["workers"]
    assert worker["last_probe"] == {"result": "UNREACHABLE", "evidence": probe.evidence, "age_s": 1.3}


async def test_it_is_as_documented(rest: Rest, mesh: FakeMesh) -> None:
    probed = endpoint(last_probe=ProbeSnapshot("GOOD", "probe: SERVING", 1.0), taken_by_others=True, stage="decode")
    mesh.endpoints, mesh.braked = (endpoint(), probed, EJECTED), True
    shown = replace(mesh.snapshot(), shared_cause="dependency")
    mesh.snapshot = lambda: shown  # type: ignore[method-assign]
    assert (await pool(rest))["shared_cause"] == "dependency"
    document = (await rest.client.get("/openapi.json")).json()
    schema = {**document["components"]["schemas"]["Pool"], "components": document["components"]}
    OAS31Validator(schema).validate(await pool(rest))


async def test_the_configuration_in_force(rest: Rest, mesh: FakeMesh) -> None:
    before = (await pool(rest))["configuration"]
    assert before["version"] == 1
    assert before["content_hash"] == content_hash(json.dumps(rest.content).encode())
    assert (before["awaiting_restart"], before["problems"]) == ([], [])
    await rest.configure(docs={"enabled": False}, dispatch={"max_in_flight": 5})
    assert len(mesh.configured) == 1
    told = await pool(rest)
    assert told["configuration"]["version"] == 2
    assert told["configuration"]["content_hash"] != before["content_hash"]
    assert told["configuration"]["awaiting_restart"] == ["docs"]
    assert told["queue"]["max_in_flight"] == 5


async def test_a_token_is_taken_away_while_it_runs(rest: Rest) -> None:
    await rest.configure(admin_tokens=TOKENS[1:])
    assert (await rest.client.get("/admin/pool", headers=BEARER)).status_code == 401
    assert (await rest.client.get("/admin/pool", headers={"X-Admin-Token": TOKENS[1]})).status_code == 200


async def test_no_secret_is_in_it_nor_in_the_log(rest: Rest, mesh: FakeMesh, capfd: pytest.CaptureFixture[str]) -> None:
    mesh.endpoints = (EJECTED,)
    told = json.dumps(await pool(rest))
    await rest.client.get("/admin/pool", headers={"X-Admin-Token": TOKENS[0] + "x"})
    said = told + "".join(capfd.readouterr())
    assert PASSWORD not in said
    assert not any(token in said for token in TOKENS)
