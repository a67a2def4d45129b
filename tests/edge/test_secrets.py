"""Tokens at every door: how they are brought, B98, and what repeated wrong ones come to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from pydantic import SecretStr
from starlette.datastructures import Headers

from edge.reload import InForce
from edge.secrets import LOG_PERIOD_S, WRONG_TOKENS, Door, Finding, Gate, bearer_or
from edge.settings import parse
from hairmesh.flood import MAX_TOLD
from tests.edge.rest import PASSWORD, FakeMesh, Rest, serving
from tests.fakes.timers import Timers

TOKEN = "an-admin-token-of-the-tests"
SETTINGS = parse(b'{"workers": ["127.0.0.1:1"], "shared_password": "x"}')
ACCEPTED = (SecretStr(TOKEN),)


class Now:
    """A clock that the test turns, and a gate by it."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.gate = Gate(InForce(SETTINGS), clock=lambda: self.timers.now_s, later=self.timers.later)

    def go(self, by_s: float) -> None:
        self.timers.go(by_s)

    def show(self, token: str | None, client: str = "10.0.0.7", door: Door = Door.ADMIN) -> Finding:
        shown = None if token is None else token.encode()
        return self.gate.judge_from(door, client, shown, ACCEPTED).finding


@pytest.fixture
def now() -> Now:
    return Now()


def test_an_address_has_some_wrong_ones_and_then_must_wait(now: Now) -> None:
    burst = WRONG_TOKENS.burst
    findings = [now.show(f"guess {number}") for number in range(burst + 2)]
    assert findings == [Finding.WRONG] * burst + [Finding.TOO_MANY] * 2
    assert now.show(TOKEN) is Finding.TOO_MANY, "not looked at: else guessing would go on"
    verdict = now.gate.judge_from(Door.ADMIN, "10.0.0.7", b"wrong", ACCEPTED)
    now.go(verdict.retry_after_s)
    assert now.show(TOKEN) is Finding.GOOD
    assert now.show(TOKEN) is Finding.GOOD, "the right one uses nothing up"
    assert now.show("one more guess") is Finding.WRONG
    assert now.show(TOKEN) is Finding.TOO_MANY


def test_an_old_one_shown_again_and_again_is_slowed_down_and_shuts_nobody_out(now: Now) -> None:
    """For an hour, every two seconds: a page that was not told of the rotation."""
    findings = []
    for _ in range(1800):
        findings.append(now.show("old"))
        now.go(2)
        assert now.show(TOKEN) is Finding.GOOD
    assert findings[: WRONG_TOKENS.burst] == [Finding.WRONG] * WRONG_TOKENS.burst
    assert findings.count(Finding.TOO_MANY) > len(findings) / 2
    assert now.gate.judge_from(Door.ADMIN, "10.0.0.7", b"old", ACCEPTED).retry_after_s <= 60 / WRONG_TOKENS.per_minute


def test_showing_old_ones_between_guesses_gains_nothing(now: Now) -> None:
    looked_at = 0
    for number in range(1000):
        for token in (f"guess {number}", "old", "old"):
            looked_at += now.show(token) is Finding.WRONG
        now.go(0.06)
    assert looked_at <= 3 * WRONG_TOKENS.burst + 20, "ten guesses, ten a minute, and of the old one no more than that"


def test_neither_another_address_nor_another_door_is_concerned(now: Now) -> None:
    for number in range(100):
        now.show(f"guess {number}")
    assert now.show(TOKEN, client="10.0.0.8") is Finding.GOOD
    assert now.show(TOKEN, door=Door.DRILL) is Finding.GOOD


def test_the_addresses_of_one_ipv6_site_are_one(now: Now) -> None:
    for number in range(WRONG_TOKENS.burst):
        now.show(f"guess {number}", client=f"2001:db8::{number:x}")
    assert now.show(TOKEN, client="2001:db8::ffff") is Finding.TOO_MANY
    assert now.show(TOKEN, client="2001:db8:0:1::1") is Finding.GOOD


def test_to_show_nothing_is_no_guess(now: Now) -> None:
    assert {now.show(None) for _ in range(100)} == {Finding.MISSING}
    assert now.show(TOKEN) is Finding.GOOD


def lines(now: Now, show: Callable[[], object], then_s: float = 0.0) -> list[tuple[str, int, list[str]]]:
    """What the log is told: door, count, clients."""
    with structlog.testing.capture_logs() as logs:
        show()
        now.go(then_s)
    assert {each["event"] for each in logs} <= {"wrong_tokens"}
    assert "SENTINEL" not in str(logs)
    return [(each["door"], each["count"], each["clients"]) for each in logs]


def test_the_log_tells_of_the_first_at_once_and_then_of_all_together_though_nobody_comes_any_more(now: Now) -> None:
    def guess() -> None:
        for number in range(50):
            now.show("SENTINEL", client=f"10.0.0.{number}")
        now.show(TOKEN)
        now.show(None)

    first, rest = lines(now, guess, then_s=LOG_PERIOD_S)
    assert first == ("admin", 1, ["10.0.0.0"])
    assert rest[:2] == ("admin", 49)
    assert len(rest[2]) == MAX_TOLD
    assert lines(now, lambda: None, then_s=100 * LOG_PERIOD_S) == []


def test_each_line_is_of_one_door(now: Now) -> None:
    def guess() -> None:
        for _ in range(9):
            now.show("SENTINEL", client="10.0.0.7")
        now.gate.wrong_key("10.0.0.8", missing=False)
        now.gate.wrong_key("10.0.0.8", missing=False)

    told = lines(now, guess, then_s=LOG_PERIOD_S)
    assert told[:2] == [("admin", 1, ["10.0.0.7"]), ("api", 1, ["10.0.0.8"])]
    assert sorted(told[2:]) == [("admin", 8, ["10.0.0.7"]), ("api", 1, ["10.0.0.8"])]


def test_they_are_counted_by_door(now: Now) -> None:
    now.show("wrong")
    now.show(None, door=Door.DRILL)
    now.gate.wrong_key("10.0.0.7", missing=False)
    assert now.gate.refused == {
        (Door.ADMIN, Finding.WRONG): 1,
        (Door.DRILL, Finding.MISSING): 1,
        (Door.API, Finding.WRONG): 1,
    }


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({}, None),
        ({"X-Admin-Token": "a"}, b"a"),
        ({"Authorization": "Bearer a"}, b"a"),
        ({"authorization": "bearer  a "}, b"a"),
        ({"Authorization": "Basic a"}, None),
        ({"Authorization": "Bearer "}, None),
        ({"X-Admin-Token": ""}, None),
        ({"X-Admin-Token": "a", "Authorization": "Bearer a"}, None),
    ],
)
def test_how_a_token_is_brought(headers: dict[str, str], shown: bytes | None) -> None:
    assert bearer_or(Headers(headers), "x-admin-token") == shown


@pytest.fixture
async def guarded(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[Rest]:
    """An edge with an admin token, and this machine as a proxy, so that tests come from any address."""
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN], trusted_proxies=["127.0.0.1"]) as rest:
        yield rest


async def show(rest: Rest, door: str, token: bytes | None, client: str = "10.9.9.9", times: int = 1) -> httpx.Response:
    """Bring a token to a door, as often in one request as is said."""
    name = "X-Admin-Token" if door == "/admin/pool" else "X-Internal-Token"
    headers: list[tuple[Any, Any]] = [
        ("X-Forwarded-For", client),
        *([(name, token)] * times if token is not None else []),
    ]
    if door == "/admin/pool":
        return await rest.client.get(door, headers=headers)
    return await rest.client.post(door, headers=headers, json={"enabled": False})


@pytest.mark.parametrize(("door", "right"), [("/admin/pool", TOKEN), ("/monitor/fault", PASSWORD)])
@pytest.mark.parametrize("token", [b"caf\xe9", b"", "密码".encode(), b"\xff\xfe", b"w" * 30_000])
async def test_b98_any_bytes_are_a_wrong_token_and_no_more(guarded: Rest, door: str, right: str, token: bytes) -> None:
    with structlog.testing.capture_logs() as logs:
        response = await show(guarded, door, token)
    assert response.status_code == 401
    assert len(response.content) < 300
    assert "exception" not in str(logs)
    assert (await show(guarded, door, right.encode())).status_code == 200


@pytest.mark.parametrize("door", ["/admin/pool", "/monitor/fault"])
async def test_b98_one_that_no_head_may_hold_is_not_even_looked_at(guarded: Rest, door: str) -> None:
    assert (await show(guarded, door, b"w" * 1_000_000)).status_code == 431
    assert (await show(guarded, door, b"wrong")).status_code == 401


@pytest.mark.parametrize(("door", "right"), [("/admin/pool", TOKEN), ("/monitor/fault", PASSWORD)])
async def test_b98_the_right_one_sent_twice_is_refused(guarded: Rest, door: str, right: str) -> None:
    assert (await show(guarded, door, right.encode(), times=2)).status_code == 401
    assert (await show(guarded, door, None)).status_code == 401


@pytest.mark.parametrize(("door", "right"), [("/admin/pool", TOKEN), ("/monitor/fault", PASSWORD)])
async def test_guessing_is_slowed_down_and_nobody_else_notices(guarded: Rest, door: str, right: str) -> None:
    answers = [await show(guarded, door, f"guess {number}".encode()) for number in range(WRONG_TOKENS.burst + 5)]
    assert [each.status_code for each in answers[: WRONG_TOKENS.burst]] == [401] * WRONG_TOKENS.burst
    assert answers[-1].status_code == 429
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60 / WRONG_TOKENS.per_minute
    assert answers[-1].json()["status"] == "error"
    assert (await show(guarded, door, right.encode())).status_code == 429
    assert (await show(guarded, door, right.encode(), client="10.9.9.10")).status_code == 200
    began_s = time.monotonic()
    monitored, *_ = await asyncio.gather(
        guarded.client.get("/monitor"), *(show(guarded, door, b"guess") for _ in range(50))
    )
    assert monitored.status_code == 200
    assert time.monotonic() - began_s < 10, "refused at once: nobody is kept waiting on a connection"


@pytest.mark.parametrize(("door", "right"), [("/admin/pool", TOKEN), ("/monitor/fault", PASSWORD)])
async def test_an_old_one_is_slowed_down_and_the_new_one_from_there_goes_in(
    guarded: Rest, door: str, right: str
) -> None:
    statuses = [(await show(guarded, door, b"the one before the rotation")).status_code for _ in range(15)]
    assert statuses == [401] * WRONG_TOKENS.burst + [429] * 5
    assert (await show(guarded, door, right.encode())).status_code == 200


async def test_what_the_log_was_not_told_of_yet_is_told_at_the_end(tmp_path: Path, mesh: FakeMesh) -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as rest:
            for _ in range(9):
                await show(rest, "/admin/pool", b"SENTINEL")
            await show(rest, "/monitor/fault", b"SENTINEL")
    told = [(each["door"], each["count"]) for each in logs if each["event"] == "wrong_tokens"]
    assert told == [("admin", 1), ("drill", 1), ("admin", 8)]


@pytest.mark.parametrize("query", ["token=SENTINEL", f"X-Internal-Token={PASSWORD}", f"x-admin-token={TOKEN}"])
async def test_b100_a_token_in_the_query_opens_nothing(guarded: Rest, query: str) -> None:
    assert (await guarded.client.post(f"/monitor/fault?{query}", json={"enabled": True})).status_code == 401
    assert (await guarded.client.get(f"/admin/pool?{query}")).status_code == 401
    assert (await guarded.client.get(f"/monitor?{query}")).status_code == 200, "which takes no token at all"
