"""`hairmesh status` as operators and their scripts meet it, against a served edge."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import pty
import re
import signal
import ssl
import struct
import sys
import termios
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from edge.calls import OnlineCounts
from edge.openapi_admin import POOL_EXAMPLE
from edge.pool.snapshot import HistoryEntry
from hairmesh import status
from hairmesh.status_view import View, duration, exit_code
from tests.edge.process import Process
from tests.edge.rest import EJECTED, FakeMesh, Rest, endpoint, serving
from tests.edge.upstream.tls import Authority

PROGRAM = Path(sys.executable).with_name("hairmesh")
TOKEN = "SENTINEL-admin-token"
ALL = OnlineCounts(total=2, healthy=2, primary_total=1, primary_healthy=1)
SOME = OnlineCounts(total=2, healthy=1, primary_total=1, primary_healthy=1)
NONE = OnlineCounts(total=2, healthy=0, primary_total=1, primary_healthy=0)


@pytest.fixture
def mesh() -> FakeMesh:
    return FakeMesh(counts=SOME, endpoints=(endpoint(in_flight_s=3.21, call_id="x", stage="parsing"), EJECTED))


@pytest.fixture
async def rest(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[Rest]:
    async with serving(tmp_path, mesh, admin_tokens=[TOKEN]) as running:
        yield running


@pytest.fixture
def url(rest: Rest) -> str:
    return f"http://127.0.0.1:{rest.port}"


def environment(**more: str) -> dict[str, str]:
    """That of a terminal without any settings of ours."""
    return {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8", **more}


async def run(*arguments: str, **variables: str) -> tuple[int, str, str]:
    """Status, output and complaints of one command, piped."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        "status",
        *arguments,
        env=environment(**variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(("counts", "code"), [(ALL, 0), (SOME, 1), (NONE, 2)])
async def test_scripts_learn_by_exit_status(mesh: FakeMesh, url: str, counts: OnlineCounts, code: int) -> None:
    mesh.counts = counts
    found, out, err = await run(url, "--once", HAIRMESH_ADMIN_TOKEN=TOKEN)
    assert (found, err) == (code, "")
    assert f"{counts.healthy} of 2 workers online" in out
    assert "10.0.0.11:28187" in out
    assert "\x1b" not in out


async def test_piped_nothing_is_cut_and_every_worker_is_one_line(mesh: FakeMesh, url: str) -> None:
    evidence = "call: UNAVAILABLE: " + "connection refused, " * 20 + "the end"
    mesh.endpoints = (*mesh.endpoints, endpoint(target="w" * 90 + ".example:1", evidence=evidence))
    _code, out, _err = await run(url, "--once", HAIRMESH_ADMIN_TOKEN=TOKEN, COLUMNS="80")
    lines = out.splitlines()
    assert lines[-1].startswith("w" * 90 + ".example:1  primary")
    assert evidence in lines[-1]
    assert "…" not in out


async def test_what_workers_say_is_text_to_a_terminal_and_nothing_more(mesh: FakeMesh, url: str) -> None:
    nasty = "\x1b[2J\x1b]0;title\x07\r\n\x9b31m\u202e[bold red]:warning: all is well[/]"
    mesh.endpoints = (endpoint(evidence=nasty, stage=nasty, name=nasty, history=(HistoryEntry(1.0, nasty),)),)
    for arguments in ((), ("--json",)):
        _code, out, _err = await run(url, "--once", *arguments, HAIRMESH_ADMIN_TOKEN=TOKEN)
        assert all(line.isprintable() for line in out.splitlines())
        assert "[bold red]:warning: all is well[/]" in out
        assert len(out.splitlines()) == (1 if arguments else 7)


async def test_once_as_json(url: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    code, out, _err = await run(url, "--once", "--json", "--token-file", str(file))
    assert code == 1
    (line,) = out.splitlines()
    assert [worker["state"] for worker in json.loads(line)["workers"]] == ["SERVING", "EJECTED"]


async def test_who_is_refused_hears_why(url: str, tmp_path: Path) -> None:
    wrong = "SENTINEL-of-somebody-else"
    for arguments in ([url, "--once"], [url]):
        code, out, err = await run(*arguments, HAIRMESH_ADMIN_TOKEN=wrong)
        assert (code, out) == (3, "")
        assert err.startswith("status: refused: the admin token that was sent is not accepted")
        assert "SENTINEL" not in err
    code, _out, err = await run("http://127.0.0.1:1", "--once", HAIRMESH_ADMIN_TOKEN=TOKEN)
    assert (code, err) == (3, "status: Connection refused\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b"", "holds no admin token: it is empty"),
        (b"SENTINEL\nSENTINEL", "holds no admin token: that is one line of printable ASCII"),
        ("SENTINEL-密码".encode(), "holds no admin token: that is one line of printable ASCII"),
        (b"SENTINEL\xff", "no text"),
    ],
)
def test_a_token_file_that_holds_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, words: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    assert status.run("http://u", file, once=True, as_json=False, interval_s=1.0, out=tmp_path) == 64
    assert capsys.readouterr().err == f"status: {file}: {words}\n"


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        (None, "t", "which edge? "),
        ("http://127.0.0.1:1", "", "an admin token is needed: "),
        ("127.0.0.1:1", "t", "127.0.0.1:1: write http:// or https:// in front"),
        ("ftp://127.0.0.1:1", "t", "ftp://127.0.0.1:1: write http:// or https:// in front"),
        ("http://[::1", "t", "http://[::1: is no URL: "),
        ("http://h:port", "t", "http://h:port: is no URL: "),
    ],
)
def test_wrong_usage_is_told_from_an_edge_that_does_not_answer(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    url: str | None,
    token: str,
    words: str,
) -> None:
    monkeypatch.setenv(status.TOKEN_VARIABLE, token)
    assert status.run(url, None, once=True, as_json=False, interval_s=1.0, out=tmp_path) == 64
    assert capsys.readouterr().err.startswith(f"status: {words}")


async def test_tls_where_none_is_and_none_where_it_is_in_words(rest: Rest, url: str, tmp_path: Path) -> None:
    code, _out, err = await run(url.replace("http", "https"), "--once", HAIRMESH_ADMIN_TOKEN=TOKEN)
    assert (code, err) == (3, "status: what listens there speaks no TLS: write http:// in front\n")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    Authority(tmp_path)
    context.load_cert_chain(tmp_path / "worker.pem", tmp_path / "worker.key")
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        code, _out, err = await run(f"http://{address}", "--once", HAIRMESH_ADMIN_TOKEN=TOKEN)
        assert (code, "write https:// in front" in err) == (3, True)
        code, _out, err = await run(f"https://{address}", "--once", HAIRMESH_ADMIN_TOKEN=TOKEN)
        assert (code, "is not trusted: unable to get local issuer certificate (--ca FILE" in err) == (3, True)
        code, _out, err = await run(
            f"https://{address}", "--once", "--ca", f"{tmp_path}/ca.pem", HAIRMESH_ADMIN_TOKEN=TOKEN
        )
        assert (code, "trusted" in err) == (3, False)  # but there is no edge behind it
        code, _out, err = await run(
            f"https://{address}", "--once", "--ca", f"{tmp_path}/none", HAIRMESH_ADMIN_TOKEN=TOKEN
        )
        assert (code, err) == (64, f"status: {tmp_path}/none: No such file or directory\n")
        assert "_ssl.c" not in err


async def test_something_else_at_that_address(url: str) -> None:
    code, _out, err = await run(f"{url}/health", "--once", HAIRMESH_ADMIN_TOKEN=TOKEN)
    assert (code, err) == (3, "status: there is no /admin/pool here: not an edge, or an older one\n")


async def test_the_local_service_is_found_and_its_token_goes_nowhere_else(
    url: str, mesh: FakeMesh, tmp_path: Path
) -> None:
    (tmp_path / "serve.json").write_text(json.dumps({"url": url, "admin_token": TOKEN}))
    code, out, _err = await run("--once", "--out", str(tmp_path))
    assert (code, f"at {url}" in out) == (1, True)
    code, _out, err = await run(url.replace("127.0.0.1", "localhost"), "--once", "--out", str(tmp_path))
    assert (code, "an admin token is needed" in err) == (64, True)
    code, _out, err = await run("--once", "--out", str(tmp_path / "nowhere"))
    assert (code, "which edge?" in err) == (64, True)


async def lines_of(process: asyncio.subprocess.Process) -> AsyncIterator[dict[str, Any]]:
    """What it tells as JSON."""
    assert process.stdout is not None
    while line := await process.stdout.readline():
        yield json.loads(line)


async def test_it_goes_on_while_the_edge_restarts(tmp_path: Path) -> None:
    edge = Process(tmp_path, "127.0.0.1:1", admin_tokens=[TOKEN])
    async with edge, asyncio.timeout(100):
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *("status", f"http://127.0.0.1:{edge.port}", "--json", "--interval", "0.1"),
            env=environment(HAIRMESH_ADMIN_TOKEN=TOKEN),
            stdout=asyncio.subprocess.PIPE,
        )
        told = lines_of(process)
        assert "workers" in await anext(told)
        assert TOKEN not in Path(f"/proc/{process.pid}/cmdline").read_text()
    async with asyncio.timeout(100):
        while (silent := await anext(told)).get("problem") != "Connection refused":
            pass
        while (later := await anext(told))["silent_s"] < 0.3:
            pass
        assert later["silent_s"] > silent["silent_s"]
        async with edge:
            while "workers" not in await anext(told):
                pass
            process.send_signal(signal.SIGINT)
            async for _line in told:
                pass
            assert await process.wait() == 0


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal."""
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def resize(end: int, columns: int) -> None:
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


async def test_live_in_a_terminal_that_changes_its_size(url: str, terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    resize(ours, 80)
    seen = bytearray()
    loop = asyncio.get_running_loop()
    read = asyncio.Event()

    def more() -> None:
        seen.extend(os.read(ours, 65_536))
        read.set()

    async def until(text: str) -> None:
        async with asyncio.timeout(30):
            while text.encode() not in seen:
                read.clear()
                await read.wait()

    loop.add_reader(ours, more)
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *("status", url, "--interval", "0.1"),
        env=environment(HAIRMESH_ADMIN_TOKEN=TOKEN, TERM="xterm-256color"),
        stdin=theirs,
        stdout=theirs,
    )
    await until("\x1b[?1049h")  # another screen: what stood there before comes back
    await until("EJECTED")
    await until("  backup")  # below the worker: 80 columns have no room beside it
    assert b"EVIDENCE" not in seen
    resize(ours, 140)
    await until("EVIDENCE")
    process.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(process.wait(), 30) == 0
    await until("\x1b[?1049l")
    loop.remove_reader(ours)


# What is drawn


def drawn(view: View, columns: int, *, rows: int = 40) -> list[str]:
    console = Console(file=io.StringIO(), width=columns, height=rows, highlight=False)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def pool(*workers: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**POOL_EXAMPLE, "workers": [*POOL_EXAMPLE["workers"], *workers], **changes}


def test_wide() -> None:
    lines = drawn(View("https://face.example", pool()), 200)
    assert lines[:5] == [
        "edge 7c1e44f0 at https://face.example · up 24 h",
        "configuration 3 (0b5c6f1e) in force since 2026-11-03 08:12:44 UTC",
        "1 of 2 workers online · primaries 1 of 2 · able to grow hair 0",
        "inside 1 of 64 · waiting 0 fast, 0 slow · outside 0 · brake off",
        "",
    ]
    names, first, second = lines[5:]
    assert names.split() == ["WORKER", "PRIORITY", "STATE", "CAUSE", "COOLDOWN", "IN", "FLIGHT", "EVIDENCE"]
    assert first.split()[:6] == ["192.0.2.11:50051", "primary", "SERVING", "0.3", "s", "parsing"]
    assert second.split()[:6] == ["192.0.2.12:50051", "primary", "EJECTED", "passive", "42", "s"]
    assert first.endswith("  online 24 h · probed 2.9 s ago · cannot grow hair: dep_down:comfyui")
    told = "call: DEADLINE_EXCEEDED · 18 s ago · last probe 0.6 s ago: UNAVAILABLE: connection refused"
    assert second.endswith(f"  {told}")
    assert names.index("STATE") == first.index("SERVING") == second.index("EJECTED")


@pytest.mark.parametrize("columns", [80, 60, 40])
def test_narrow_and_nothing_is_wider_than_the_terminal(columns: int) -> None:
    long = {**POOL_EXAMPLE["workers"][0], "address": "worker-with-a-long-name-3.gpu.internal.example:28187"}
    lines = drawn(View("https://face.example", pool(long)), columns)
    assert max(map(len, lines)) <= columns
    at = next(number for number, line in enumerate(lines) if line.startswith("192.0.2.12"))
    assert lines[at + 1].startswith("  primary · call: DEADLINE_EX")


def test_what_operators_must_not_overlook() -> None:
    configuration = {
        **POOL_EXAMPLE["configuration"],
        "problems": ["limits.max_pixel: there is no such key"],
        "awaiting_restart": ["listen", "docs"],
    }
    trouble = pool(configuration=configuration, braked=True, shared_cause="dependency", drill=True)
    lines = drawn(View("u", trouble), 80)
    assert "brake ON, shared cause dependency: workers come back by single trial calls" in lines
    assert "alert drill ON: /monitor answers 503, however the workers are" in lines
    assert "the file is not in force: limits.max_pixel: there is no such key" in lines
    assert "waits for a restart: listen, docs" in lines
    assert not any("brake off" in line for line in lines)
    calm = "\n".join(drawn(View("u", pool()), 80))
    assert ("brake off" in calm, "brake ON" in calm, "drill" in calm) == (True, False, False)


def probed(said: str, **changes: Any) -> dict[str, Any]:
    """A worker in a cooldown of which a probe heard last."""
    probe = {"result": "UNREACHABLE", "evidence": said, "age_s": 0.8}
    return {**POOL_EXAMPLE["workers"][1], "evidence": "call: ping timeout", "last_probe": probe, **changes}


def test_a_probe_that_says_something_else_is_shown_beside_what_the_state_rests_on() -> None:
    history = [{"age_s": 18.0, "what": "SERVING → EJECTED passive: call: ping timeout"}]
    gone = probed("probe: connection refused", history=history)
    same = probed("call: ping timeout", history=history)
    serving_one = {**probed("probe: SERVING"), "state": "SERVING", "evidence": "call: OK", "lacks": {}}
    serving_one["history"] = [{"age_s": 720.0, "what": "EJECTED → SERVING: call: OK"}]
    serving_one["last_probe"] = {**serving_one["last_probe"], "result": "GOOD"}
    first, second, third = drawn(View("u", pool(workers=[gone, same, serving_one])), 160)[-3:]
    assert first.endswith("  call: ping timeout · 18 s ago · last probe 0.8 s ago: connection refused")
    assert second.endswith("  call: ping timeout · 18 s ago · probed 0.8 s ago")
    told = "  call: OK · online 12 min · probed 0.8 s ago"
    assert third.endswith(told), "that it is SERVING by its probes too is no news; that it is still probed is"


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_evidence_that_is_long_goes_on_below_for_three_lines_at_most(columns: int) -> None:
    words = [f"reason{number:03}" for number in range(60)]
    lines = drawn(View("u", pool(workers=[probed("", evidence=" ".join(words)), probed("")])), columns)
    at = next(number for number, line in enumerate(lines) if "EJECTED" in line)
    block = lines[at : next(number for number, line in enumerate(lines) if number > at and "EJECTED" in line)]
    assert len(block) == (3 if columns == 140 else 4)
    assert max(map(len, lines)) <= columns
    told = " ".join(block).split()
    assert [word for word in told if word in words] == words[: sum(word in words for word in told)]
    assert block[-1].endswith("…")


def test_workers_behind_in_a_rotation_are_named() -> None:
    behind = [{**worker, "former_password": number > 0} for number, worker in enumerate(POOL_EXAMPLE["workers"] * 2)]
    first, *_, last = drawn(View("u", pool(workers=behind)), 200)[:5]
    assert first.startswith("edge ")
    assert last.startswith("former password still in use at 192.0.2.12:50051, ")
    assert last.count(":50051") == 3


def test_an_edge_that_is_silent_is_shown_as_it_was_and_dim() -> None:
    console = Console(file=io.StringIO(), width=140, highlight=False, force_terminal=True, color_system="standard")
    console.print(View("u", pool(), "Connection refused", 12.0))
    assert isinstance(console.file, io.StringIO)
    first, problem, *others = [line for line in console.file.getvalue().splitlines() if line]
    assert problem == "\x1b[1;31medge has not answered for 12 s: Connection refused\x1b[0m"
    assert any("1 of 2 workers online" in line for line in others)
    assert any("EJECTED" in line for line in others), "what was seen last stays"
    assert set(re.findall(r"\x1b\[([0-9;]*)m", "".join([first, *others]))) == {"2", "0"}, "all of it dim"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("SERVING → EJECTED passive: call: INTERNAL", "call: INTERNAL · 3.0 s ago"),
        ("NOT_SERVING → NOT_SERVING disk: call: INTERNAL", "call: INTERNAL · 3.0 s ago"),
        ("trial call 7c1e-9", "call: INTERNAL · 3.0 s ago: trial call 7c1e-9"),
        ("NOT_SERVING → NOT_SERVING disk: other", "call: INTERNAL · 3.0 s ago: disk: other"),
    ],
)
def test_what_the_state_rests_on_comes_first(what: str, said: str) -> None:
    worker = {**POOL_EXAMPLE["workers"][1], "evidence": "call: INTERNAL", "last_probe": None}
    worker["history"] = [{"age_s": 3.0, "what": what}]
    assert drawn(View("u", pool(workers=[worker])), 140)[-1].endswith(f"  {said}")


def test_before_the_first_answer() -> None:
    assert drawn(View("http://u", None, "Connection refused", 0.2), 80) == [
        "edge at http://u",
        "edge has not answered for 0.2 s: Connection refused",
    ]


def test_slots_of_others_and_calls_left_behind() -> None:
    worker = POOL_EXAMPLE["workers"][0]
    others = {**worker, "in_flight": None, "taken_by_others": True, "stage": "decode", "leaving": True}
    left = {**worker, "in_flight": {"call_id": "x", "age_s": 70.0, "left_behind": True}, "history": [], "lacks": {}}
    text = drawn(View("u", pool(others, left)), 160)
    assert "other edge decode" in text[-2]
    assert "primary, leaving" in text[-2]
    assert "70 s parsing left behind" in text[-1]
    assert text[-1].endswith("  probe: SERVING · probed 2.9 s ago"), "how long is not known"
    unknown = {**worker, "state": "UNKNOWN", "evidence": "", "history": [], "last_probe": None}
    assert drawn(View("u", pool(unknown)), 160)[-1].endswith("not heard of yet")


def test_with_more_workers_than_lines_those_in_trouble_come_first() -> None:
    serving_one, ejected = POOL_EXAMPLE["workers"]
    many = [{**serving_one, "address": f"10.0.0.{number}:1"} for number in range(50)]
    view = View("u", pool(workers=[*many, {**ejected, "last_probe": None}]), fits=True)
    lines = drawn(view, 140, rows=24)
    assert len(lines) <= 24
    assert lines[6].startswith("192.0.2.12")
    assert lines[-1] == f"… and {51 - (len(lines) - 7)} more"
    assert len(drawn(View("u", pool(workers=many)), 140, rows=24)) == 6 + len(many)
    talkative = View("u", pool(workers=[*many, *[probed("", evidence="reason " * 60)] * 30]), fits=True)
    lines = drawn(talkative, 140, rows=24)
    assert len(lines) <= 24
    assert lines[-1] == f"… and {80 - sum('EJECTED' in line for line in lines)} more"
    assert sum("EJECTED" in line for line in lines) == 5


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (10.2, "10 s"), (119, "119 s"), (125, "2 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_pool_without_workers_is_none_online() -> None:
    assert exit_code({"online": {"workers_total": 0, "workers_healthy": 0}}) == 2


def test_the_token_shows_nowhere() -> None:
    assert TOKEN not in repr(status.Contact("u", TOKEN))
