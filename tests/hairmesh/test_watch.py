"""`hairmesh watch` against fakes on real sockets: what it sees, sends, says and does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hairmesh.watch import build
from hairmesh.watch.loop import Exit
from hairmesh.watch.options import SECRET_VARIABLE, Kind
from hairmesh.watch.target import TargetError
from tests.fakes.comfyui import FakeComfyUi
from tests.fakes.http import HttpServer, Request, Response
from tests.fakes.vllm import FakeVllm
from tests.hairmesh.watching import INTERVAL_S, last_line, options, until, watch
from worker.health.watchdog.looks import Answer, CanaryResult


@pytest.fixture
async def vllm() -> AsyncIterator[FakeVllm]:
    async with FakeVllm() as server:
        yield server


async def test_a_busy_server_is_well_and_is_sent_nothing(vllm: FakeVllm, capsys: pytest.CaptureFixture[str]) -> None:
    vllm.work(1e6, count=3)
    assert await watch(options(vllm.http.url)) is Exit.WELL
    said = last_line(capsys)
    assert (said["verdict"], said["running"], said["waiting"]) == ("busy", 2, 1)
    assert said["steps"] > 0
    assert vllm.asked == []


async def test_an_idle_server_is_well_when_it_answers_one_token(vllm: FakeVllm) -> None:
    assert await watch(options(vllm.http.url)) is Exit.WELL
    assert vllm.asked == ["GET /v1/models", "POST /v1/completions"]


async def test_a_stuck_engine_is_sick_and_a_dry_run_only_says_so(
    vllm: FakeVllm, capsys: pytest.CaptureFixture[str]
) -> None:
    vllm.work(1e6)
    await asyncio.sleep(0.1)
    vllm.hang()
    assert await watch(options(vllm.http.url)) is Exit.SICK
    said = last_line(capsys)
    assert (said["verdict"], said["action"]) == ("stalled", "would_restart")
    assert said["still_s"] >= 1.8
    assert re.search("canary (unanswered for|never answered)", said["why"])
    assert vllm.engine.restarts == []


async def test_of_several_engines_the_stuck_one_is_named_and_each_gets_a_canary(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with FakeVllm(engines=2, slots=3) as server:
        server.work(1e6, count=2)
        await asyncio.sleep(0.1)
        server.hang(1)
        assert await watch(options(server.http.url)) is Exit.SICK
        assert server.asked.count("POST /v1/completions") == 2
    assert "engine 1 still for" in last_line(capsys)["why"]


@pytest.mark.parametrize(
    "answer",
    [Response(500, b"Internal Server Error", "text/plain"), Response(200, b"<html>Sign in</html>", "text/html")],
)
async def test_b87_broken_metrics_are_degraded_by_canary(
    vllm: FakeVllm, answer: Response, capsys: pytest.CaptureFixture[str]
) -> None:
    vllm.metrics = answer
    assert await watch(options(vllm.http.url)) is Exit.DEGRADED
    said = last_line(capsys)
    assert said["verdict"] == "unknown"
    assert "metrics" in said["why"]
    assert "canary answered" in said["why"]


async def test_b85_slow_is_saturated(
    vllm: FakeVllm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hairmesh.watch.http_targets.LOOK_TIMEOUT_S", 0.1)
    vllm.slow_s = 30.0
    assert await watch(options(vllm.http.url)) is Exit.DEGRADED
    assert last_line(capsys)["verdict"] == "saturated"


async def test_b85_refused_five_times_is_dead(vllm: FakeVllm, capsys: pytest.CaptureFixture[str]) -> None:
    vllm.http.refuse()
    assert await watch(options(vllm.http.url, interval_s=0.05)) is Exit.SICK
    said = last_line(capsys)
    assert (said["verdict"], said["why"]) == ("dead", "connection refused, 5 in a row")


async def test_a_broken_connection_is_no_refusal() -> None:
    async def slam(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(slam, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        server_target = build.target(options(f"http://127.0.0.1:{port}"))
        assert (await server_target.look(0.0)).answer is Answer.UNREACHABLE
        await server_target.close()


async def test_a_name_without_address_is_unreachable() -> None:
    server = build.target(options("http://nowhere.invalid:8000"))
    look = await server.look(0.0)
    assert look.answer in {Answer.UNREACHABLE, Answer.SLOW}
    await server.close()


async def test_of_a_proxy_only_the_model_list_is_asked(vllm: FakeVllm, capsys: pytest.CaptureFixture[str]) -> None:
    vllm.work(1e6)
    vllm.hang()
    assert await watch(options(vllm.http.url, proxy=True)) is Exit.WELL
    assert vllm.asked == ["GET /v1/models"]
    assert "one by one" in last_line(capsys)["why"]


async def test_the_api_key_comes_from_a_file_and_goes_nowhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_text("sk-very-secret\n")
    async with FakeVllm(api_key="sk-very-secret") as server:
        assert await watch(options(server.http.url, secret_file=key)) is Exit.WELL
        assert await watch(options(server.http.url)) is Exit.DEGRADED  # idle, but nobody knows whether it works
    assert "secret" not in capsys.readouterr().out


async def test_a_canary_waits_its_turn_and_is_given_up_in_time(vllm: FakeVllm) -> None:
    vllm.work(1e6)
    server = build.target(options(vllm.http.url))
    assert server.canary is not None
    assert await server.canary("", 0.3) is CanaryResult.TIMED_OUT
    vllm.engine.abort_all()
    assert await server.canary("", 20.0) is CanaryResult.PASSED
    vllm.work(1e6)
    waiting = asyncio.create_task(server.canary("", 20.0))
    await until(lambda: vllm.asked.count("POST /v1/completions") == 3)
    vllm.restart()
    assert await waiting is CanaryResult.ERROR
    await server.close()


async def test_a_canary_asks_the_engine_it_is_for() -> None:
    async with FakeVllm(engines=2) as server:
        server.hang(1)
        server.work(1e6, count=1)  # the emptier one is stuck
        vllm = build.target(options(server.http.url))
        assert vllm.canary is not None
        assert await vllm.canary("0", 20.0) is CanaryResult.PASSED
        assert await vllm.canary("1", 0.3) is CanaryResult.TIMED_OUT
        assert await vllm.canary("2", 20.0) is CanaryResult.REFUSED
        await vllm.close()


async def test_comfyui_is_read_over_its_own_routes(capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeComfyUi() as server:
        assert await watch(options(server.http.url, Kind.COMFYUI)) is Exit.WELL
        assert last_line(capsys)["verdict"] == "idle"
        server.submit()
        server.submit()
        assert await watch(options(server.http.url, Kind.COMFYUI)) is Exit.SICK
        said = last_line(capsys)
        assert (said["verdict"], said["running"], said["waiting"]) == ("stalled", 1, 1)
        assert said["steps"] is None, "over HTTP they cannot be seen"
        assert await watch(options(server.http.url, Kind.COMFYUI), as_json=False) is Exit.SICK
        assert " | running=1 waiting=1 still=" in capsys.readouterr().out
        server.replaced["/queue"] = Response(200, b"<html>", "text/html")
        assert await watch(options(server.http.url, Kind.COMFYUI)) is Exit.DEGRADED
        assert server.posts == []


@pytest.mark.parametrize(
    ("url", "changes", "word"),
    [
        ("http://user:secret@127.0.0.1:1", {}, "no password in the URL"),
        ("ftp://127.0.0.1:1", {}, "no URL of a server"),
        ("127.0.0.1:8000", {}, "URL"),
        ("http://127.0.0.1:8000/v1", {}, "without a path"),
        ("http://127.0.0.1:8000?key=secret", {}, "without a path"),
        ("http://127.0.0.1:1", {"interval_s": 1.0, "grace_s": 1.5}, "--interval is too long"),
        ("127.0.0.1", {"kind": Kind.WORKER}, "host:port"),
        ("127.0.0.1:0", {"kind": Kind.WORKER}, "the target's port is 1 to 65535"),
        ("127.0.0.1:93723", {"kind": Kind.WORKER}, "the target's port is 1 to 65535"),
        ("http://127.0.0.1:93723", {}, "the target's port is 1 to 65535"),
        ("my..worker:28187", {"kind": Kind.WORKER}, "the target's host is no name"),
        (f"http://{'x' * 64}.example:8000", {}, "the target's host is no name"),
        ("http://127.0.0.1:1", {"kind": Kind.WORKER}, "a worker is host:port, without http://"),
        ("dns:///workers:1", {"kind": Kind.WORKER}, "a worker is host:port, without dns:/"),
        ("http://127.0.0.1:1", {"kind": Kind.COMFYUI, "proxy": True}, "--proxy goes with vllm"),
        ("http://127.0.0.1:1", {"secret_file": Path("/nonexistent/key")}, "/nonexistent/key: No such file"),
        ("http://127.0.0.1:1", {"secret_file": Path("/dev/null")}, "--secret-file /dev/null: is empty"),
    ],
)
async def test_what_cannot_work_is_said_before_anything_is_asked(url: str, changes: dict[str, Any], word: str) -> None:
    asked = options(url, **{"kind": Kind.VLLM, **changes})
    with pytest.raises(TargetError) as raised:
        await watch(asked)
    assert word in str(raised.value)
    assert "secret@" not in str(raised.value)


@pytest.mark.parametrize(("kind", "url"), [(Kind.VLLM, "http://10.0.0.7:8000"), (Kind.WORKER, "10.0.0.7:28187")])
async def test_a_secret_goes_over_a_network_in_plain_text_only_in_words(
    kind: Kind, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, "hush")
    with pytest.raises(TargetError, match="plain text"):
        build.target(options(url, kind))
    await build.target(options(url, kind, insecure=True)).close()


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("secret", ["pässword", "two\nlines"])
async def test_a_secret_that_no_header_carries_is_refused_and_not_shown(
    kind: Kind, secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(secret)
    url = "127.0.0.1:1" if kind is Kind.WORKER else "http://127.0.0.1:1"
    with pytest.raises(TargetError, match="the secret: only printable ASCII") as from_file:
        build.target(options(url, kind, secret_file=file))
    monkeypatch.setenv(SECRET_VARIABLE, secret)
    with pytest.raises(TargetError, match="the secret: only printable ASCII") as from_environment:
        build.target(options(url, kind))
    assert secret not in f"{from_file.value}{from_environment.value}"


async def test_a_model_list_of_two_hundred_thousand_brackets_is_no_list(capsys: pytest.CaptureFixture[str]) -> None:
    async def answer(_request: Request) -> Response:
        return Response(body=b"[" * 200_000)

    server = HttpServer(answer)
    await server.open()
    assert await watch(options(server.url, proxy=True)) is Exit.DEGRADED
    assert "no JSON" in last_line(capsys)["why"]
    await server.close()


class UnevenVllm(FakeVllm):
    """Every other look is answered late, though well within its time."""

    late = False

    async def _handle(self, request: Request) -> Response:
        if request.path == "/metrics":
            self.late = not self.late
            await asyncio.sleep(0.75 * INTERVAL_S if self.late else 0.0)
        return await super()._handle(request)


async def test_a_stuck_server_that_answers_unevenly_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    async with UnevenVllm() as server:
        server.work(1e6)
        server.hang()
        assert await watch(options(server.http.url)) is Exit.SICK
    assert last_line(capsys)["verdict"] == "stalled"


@pytest.mark.parametrize("as_json", [False, True])
async def test_names_from_a_server_are_one_short_line_whatever_they_hold(
    vllm: FakeVllm, capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    forged = "\x1b[2J\x9b31m\u202e" + "x" * 100_000
    stuck = f'{{engine="{forged}"}}'
    text = (
        f"vllm:num_requests_running{stuck} 1\nvllm:num_requests_waiting{stuck} 0\n"
        f"vllm:iteration_tokens_total_count{stuck} 5\n"
    )
    vllm.metrics = Response(body=text.encode(), kind="text/plain")
    assert await watch(options(vllm.http.url), as_json=as_json) is Exit.WELL  # a canary refutes what stands still
    said = capsys.readouterr().out
    assert "still for" in said
    assert all(line.isprintable() and len(line) < 2_000 for line in said.split("\n"))
