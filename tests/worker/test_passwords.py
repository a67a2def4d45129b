"""Who gets in, who does not, and what is said to those outside."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock, Mock

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub
from hair.worker.v1 import worker_service_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from structlog.testing import capture_logs

from hairmesh.wire import ANALYZE_SERVICE, TOKEN_KEY
from tests.fakes.timers import Timers
from tests.worker.fakes import OK, FakePipeline
from tests.worker.harness import PASSWORD, PATIENCE_S, QUICK, SERVING, TOKEN, Client, refused, request, running
from worker.bare_checks import BareChecks
from worker.connections import address_of
from worker.passwords import Credential, PasswordInterceptor, Passwords
from worker.server import METHODS, REFLECTED
from worker.tally import Tally

MEASURE = f"/{ANALYZE_SERVICE}/Measure"
WRONG = ((TOKEN_KEY, "wrong"),)
TWICE = (*TOKEN, *TOKEN)


def passwords(*accepted: str) -> Passwords:
    return Passwords([SecretStr(password) for password in accepted])


@given(st.binary() | st.text())
def test_only_the_exact_bytes_fit(shown: str | bytes) -> None:
    expected = Credential.GOOD if shown in {"old", b"old", "new", b"new"} else Credential.WRONG
    assert passwords("old", "new").judge([(TOKEN_KEY, shown)]) is expected


def test_non_ascii_bytes_are_wrong_not_an_error() -> None:
    """B98."""
    for shown in (b"caf\xe9", "café", "\udce9", "", "x" * 1_000_000):
        assert passwords("café"[:3]).judge([(TOKEN_KEY, shown)]) is Credential.WRONG


def test_none_twice_and_rotation() -> None:
    book = passwords("old")
    assert book.judge([("x-other", "old")]) is Credential.NONE
    assert book.judge([(TOKEN_KEY, "old"), (TOKEN_KEY, "old")]) is Credential.WRONG
    book.replace([SecretStr("new")])
    assert book.judge([(TOKEN_KEY, "old")]) is Credential.WRONG
    assert book.judge([(TOKEN_KEY, "new")]) is Credential.GOOD
    with pytest.raises(ValueError, match="nobody"):
        book.replace([])
    assert book.judge([(TOKEN_KEY, "new")]) is Credential.GOOD
    assert "new" not in repr(book)


def test_what_could_be_guessed_is_told_whenever_it_is_taken_over() -> None:
    with capture_logs() as logs:
        book = passwords("short-1", "a-long-one-of-random-characters", "short-2")
        book.replace([SecretStr("a-long-one-of-random-characters")])
        book.replace([SecretStr("fifteen-letters")])
    assert [(each["event"], each["log_level"], each["count"]) for each in logs] == [
        ("passwords_short", "warning", 2),
        ("passwords_short", "warning", 1),
    ]
    assert "short-1" not in str(logs)
    assert "fifteen" not in str(logs)


async def test_a_hundred_wrong_ones_shut_nobody_out_who_comes_from_the_same_address(client: Client) -> None:
    """All edges may come from one address: a guesser beside them must not become an outage."""
    for _ in range(100):
        code, *_ = await refused(client.worker.GetStatus(pb.GetStatusRequest(), metadata=WRONG, timeout=PATIENCE_S))
        assert code is grpc.StatusCode.UNAUTHENTICATED
    assert (await client.worker.GetStatus(pb.GetStatusRequest(), metadata=TOKEN, timeout=PATIENCE_S)).status.boot_id


@pytest.mark.parametrize("metadata", [(), WRONG, TWICE], ids=["missing", "wrong", "twice"])
async def test_everything_but_two_bare_checks_is_closed(client: Client, metadata: Any, pipeline: FakePipeline) -> None:
    def stream(call: Any) -> Any:
        return call.read()

    listing = health_pb2.HealthListRequest()  # type: ignore[attr-defined]  # the published stubs are older
    attempts = [
        client.analyze.Measure(request(OK), metadata=metadata, timeout=PATIENCE_S),
        client.worker.GetStatus(pb.GetStatusRequest(), metadata=metadata, timeout=PATIENCE_S),
        stream(client.worker.WatchStatus(pb.WatchStatusRequest(), metadata=metadata, timeout=PATIENCE_S)),
        client.worker.Drain(pb.DrainRequest(), metadata=metadata, timeout=PATIENCE_S),
        client.health.Check(
            health_pb2.HealthCheckRequest(service=ANALYZE_SERVICE), metadata=metadata, timeout=PATIENCE_S
        ),
        client.health.Check(health_pb2.HealthCheckRequest(service="wrong name"), metadata=metadata, timeout=PATIENCE_S),
        client.health.List(listing, metadata=metadata, timeout=PATIENCE_S),
        stream(client.health.Watch(health_pb2.HealthCheckRequest(service=""), metadata=metadata, timeout=PATIENCE_S)),
        stream(_reflection(client, metadata)),
    ]
    for attempt in attempts:
        code, info, _details = await refused(attempt)
        assert (code, info.reason) == (grpc.StatusCode.UNAUTHENTICATED, "WRONG_PASSWORD")
    assert pipeline.measured == []
    await client.measure(OK)  # nothing was drained, nothing is broken


async def test_bare_checks_tell_the_status_alone(pipeline: FakePipeline) -> None:
    unwell = {"min_free_gb": 1e6, "resume_free_gb": 1e6}
    async with running(pipeline.load, warm=False, health=unwell) as (_worker, client):
        await client.until(lambda status: status.cause == "disk")
        assert await client.check("liveness", metadata=()) == SERVING
        call = client.health.Check(health_pb2.HealthCheckRequest(service=""), timeout=PATIENCE_S)
        assert (await call).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert "x-health-reason" not in dict(await call.trailing_metadata())
        assert "disk_free_below" in await client.reason("")
        _code, info, _details = await refused(
            client.health.Check(health_pb2.HealthCheckRequest(service=""), metadata=WRONG, timeout=PATIENCE_S)
        )
        assert info.reason == "WRONG_PASSWORD"


async def test_a_flood_of_wrong_passwords_is_a_few_lines_that_count_them(pipeline: FakePipeline) -> None:
    with capture_logs() as lines:
        async with running(pipeline.load, thresholds=replace(QUICK, turned_away_log_s=3600.0)) as (_worker, client):
            for _call in range(20):
                await refused(client.measure(OK, metadata=WRONG))
            await refused(client.measure(OK, metadata=(("x-other", "x"),)))
    told = [line for line in lines if line["event"] == "turned_away"]
    assert [(line["password"], line["calls"]) for line in told] == [("wrong", 1), ("none", 1), ("wrong", 19)]
    assert {(*line["peers"], *line["methods"]) for line in told} == {("127.0.0.1", MEASURE)}
    assert lines.index(told[-1]) < [line["event"] for line in lines].index("stopped"), "what waits is told at the end"


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:10.0.0.5:41234", "10.0.0.5"),
        ("ipv6:%5B2001:db8::7%5D:41234", "2001:db8::7"),
        ("ipv6:[::1]:41234", "::1"),
        ("unix:", "unix:"),
    ],
)
def test_a_caller_is_named_by_its_address(peer: str, address: str) -> None:
    assert address_of(peer) == address


async def test_a_line_names_every_caller_since_the_last_one_but_no_more_than_ten_and_waits_for_nobody() -> None:
    timers = Timers()
    doorman = PasswordInterceptor(
        passwords("good"),
        tally=Tally(),
        known=METHODS,
        bare_checks=BareChecks(prompt_s=PATIENCE_S, late_s=PATIENCE_S),
        log_period_s=10.0,
        clock=lambda: timers.now_s,
        later=timers.later,
    )

    async def knock(address: str, metadata: Any = WRONG, method: str = MEASURE) -> None:
        handler: Any = await doorman.intercept_service(AsyncMock(), Mock(method=method, invocation_metadata=metadata))
        await handler.stream_stream(None, Mock(peer=lambda: f"ipv4:{address}:1", abort_with_status=AsyncMock()))

    with capture_logs() as lines:
        await knock("10.0.0.1")
        for number in range(15):
            await knock(f"10.0.1.{number}")
            await knock(f"10.0.1.{number}", method="/a.method/ThatThereIsNot")
        await knock("10.0.0.3", metadata=())
        timers.go(10.0)
        assert len(lines) == 3, "though nobody came any more"
        timers.go(10.0)
        await knock("10.0.0.2")
    told = [(line["password"], line["calls"], line["methods"], len(line["peers"])) for line in lines]
    assert told == [
        ("wrong", 1, [MEASURE], 1),
        ("none", 1, [MEASURE], 1),
        ("wrong", 30, ["", MEASURE], 10),
        ("wrong", 1, [MEASURE], 1),
    ]
    assert [lines[at]["peers"] for at in (0, 1, 3)] == [["10.0.0.1"], ["10.0.0.3"], ["10.0.0.2"]]


async def test_big_message_without_a_password_is_turned_away(client: Client) -> None:
    _code, info, _details = await refused(client.measure(OK + bytes(20_000_000), metadata=WRONG))
    assert info.reason == "WRONG_PASSWORD"


async def test_reflection_describes_every_service(client: Client) -> None:
    call = _reflection(client, TOKEN)
    answer = await call.read()
    assert {service.name for service in answer.list_services_response.service} == set(REFLECTED)
    call.cancel()


async def test_second_client_reads_the_protos_by_reflection(client: Client) -> None:
    """`buf curl` knows no file of ours."""
    buf = f"{sys.prefix}/bin/buf"
    child = await asyncio.create_subprocess_exec(
        buf,
        "curl",
        "--protocol=grpc",
        "--http2-prior-knowledge",
        "--reflect-header",
        f"{TOKEN_KEY}: {PASSWORD}",
        "-H",
        f"{TOKEN_KEY}: {PASSWORD}",
        f"http://{client.target}/hair.worker.v1.WorkerService/GetStatus",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, problem = await child.communicate()
    assert child.returncode == 0, problem.decode()
    assert json.loads(out)["status"]["state"] == "SERVING_STATE_SERVING"


def _reflection(client: Client, metadata: Any) -> Any:
    async def list_services() -> Any:
        yield reflection_pb2.ServerReflectionRequest(list_services="*")

    stub: Any = ServerReflectionStub(client.channel)  # type: ignore[arg-type]  # the stubs know synchronous ones only
    return stub.ServerReflectionInfo(list_services(), metadata=metadata, timeout=PATIENCE_S)
