"""`hairmesh status` as operators and their scripts meet it, against a served edge."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import pty
import signal
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
from hairmesh import status
from hairmesh.status_view import View, duration, exit_code
from tests.edge.process import Process
from tests.edge.rest import EJECTED, FakeMesh, Rest, endpoint, serving

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
        assert err.startswith("status: refused: ")
        assert "SENTINEL" not in err
    code, _out, err = await run(url, "--once", "--token-file", str(tmp_path / "none"))
    assert (code, err) == (3, f"status: {tmp_path / 'none'}: No such file or directory\n")
    code, _out, err = await run(url, "--once")
    assert (code, "HAIRMESH_ADMIN_TOKEN" in err) == (3, True)
    code, _out, err = await run("127.0.0.1:1", "--once", HAIRMESH_ADMIN_TOKEN=TOKEN)
    assert (code, err) == (3, "status: 127.0.0.1:1: write http:// or https:// in front\n")
    code, _out, err = await run("http://127.0.0.1:1", "--once", HAIRMESH_ADMIN_TOKEN=TOKEN)
    assert (code, err) == (3, "status: Connection refused\n")


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
    assert (code, "an admin token is needed" in err) == (3, True)
    code, _out, err = await run("--once", "--out", str(tmp_path / "nowhere"))
    assert (code, "which edge?" in err) == (3, True)


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
    lines = drawn(View("https://face.example", pool()), 140)
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
    assert second.endswith("18 s ago: EJECTED passive: call: DEADLINE_EXCEEDED")
    assert names.index("STATE") == first.index("SERVING") == second.index("EJECTED")


@pytest.mark.parametrize("columns", [80, 60, 40])
def test_narrow_and_nothing_is_wider_than_the_terminal(columns: int) -> None:
    long = {**POOL_EXAMPLE["workers"][0], "address": "worker-with-a-long-name-3.gpu.internal.example:28187"}
    lines = drawn(View("https://face.example", pool(long)), columns)
    assert max(map(len, lines)) <= columns
    at = next(number for number, line in enumerate(lines) if line.startswith("192.0.2.12"))
    assert lines[at + 1].startswith("  primary · 18 s ago: EJECTED")


def test_what_operators_must_not_overlook() -> None:
    configuration = {
        **POOL_EXAMPLE["configuration"],
        "problems": ["limits.max_pixel: there is no such key"],
        "awaiting_restart": ["listen", "docs"],
    }
    text = "\n".join(drawn(View("u", pool(configuration=configuration, braked=True), "Connection refused", 12.0), 140))
    assert "brake ON" in text
    assert "the file is not in force: limits.max_pixel: there is no such key" in text
    assert "waits for a restart: listen, docs" in text
    assert "edge does not answer since 12 s: Connection refused" in text
    assert "EJECTED" in text, "what was seen last stays"


def test_before_the_first_answer() -> None:
    assert drawn(View("http://u", None, "Connection refused", 0.2), 80) == [
        "edge at http://u",
        "edge does not answer since 0.2 s: Connection refused",
    ]


def test_slots_of_others_and_calls_left_behind() -> None:
    worker = POOL_EXAMPLE["workers"][0]
    others = {**worker, "in_flight": None, "taken_by_others": True, "stage": "decode", "leaving": True}
    left = {**worker, "in_flight": {"call_id": "x", "age_s": 70.0, "left_behind": True}, "history": []}
    text = drawn(View("u", pool(others, left)), 160)
    assert "other edge decode" in text[-2]
    assert "primary, leaving" in text[-2]
    assert "70 s parsing left behind" in text[-1]
    assert "not heard of yet" in text[-1]


def test_with_more_workers_than_lines_those_in_trouble_come_first() -> None:
    serving_one, ejected = POOL_EXAMPLE["workers"]
    many = [{**serving_one, "address": f"10.0.0.{number}:1"} for number in range(50)]
    view = View("u", pool(workers=[*many, ejected]), fits=True)
    lines = drawn(view, 140, rows=24)
    assert len(lines) <= 24
    assert lines[6].startswith("192.0.2.12")
    assert lines[-1] == f"… and {51 - (len(lines) - 7)} more"
    assert len(drawn(View("u", pool(workers=many)), 140, rows=24)) == 6 + len(many)


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
