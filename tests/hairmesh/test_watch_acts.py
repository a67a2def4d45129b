"""`hairmesh watch` as it acts: restart command, lock, signals, exit status."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from hairmesh.watch import lines, restart
from hairmesh.watch.loop import Exit
from hairmesh.watch.options import SECRET_VARIABLE
from hairmesh.watch.target import TargetError
from tests.fakes.vllm import FakeVllm
from tests.hairmesh.watching import last_line, options, until, watch
from worker.health.verdict import Verdict
from worker.health.watchdog.policy import Action, Decision
from worker.health.watchdog.server import Finding, Outcome

PROGRAM = Path(sys.executable).with_name("hairmesh")


@pytest.fixture
async def vllm() -> AsyncIterator[FakeVllm]:
    async with FakeVllm() as server:
        yield server


async def test_the_restart_command_is_run_once_and_its_output_told(
    vllm: FakeVllm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vllm.work(1e6)
    vllm.hang()
    note = tmp_path / "restarted"
    command = restart.parse_command(f"sh -c 'echo loading; echo again >> {note}'")
    assert await watch(options(vllm.http.url), command) is Exit.SICK
    assert note.read_text() == "again\n"
    said = last_line(capsys)
    assert (said["event"], said["output"]) == ("restart command done", "loading")


async def test_a_restart_command_that_fails_is_said_aloud(vllm: FakeVllm, capsys: pytest.CaptureFixture[str]) -> None:
    vllm.work(1e6)
    vllm.hang()
    command = restart.parse_command("sh -c 'echo no such unit >&2; exit 5'")
    assert await watch(options(vllm.http.url), command, as_json=False) is Exit.RESTART_FAILED
    assert "restart command failed: status 5\n    no such unit" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "  ", "no-such-program-anywhere --now", "sh -c 'unclosed"])
def test_a_restart_command_that_cannot_run_is_refused_at_start(text: str) -> None:
    with pytest.raises(TargetError, match="--restart-cmd"):
        restart.parse_command(text)


async def test_a_restart_command_runs_without_a_shell_and_without_our_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, "hush")
    ran = await restart.run(
        restart.parse_command("env $HOME ; true")[:1], timeout_s=20.0, without=frozenset({SECRET_VARIABLE})
    )
    assert ran.good
    assert "hush" not in ran.output
    echoed = await restart.run(restart.parse_command("echo $HOME; true"), timeout_s=20.0, without=frozenset())
    assert echoed.output == "$HOME; true"


async def test_a_restart_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"
    command = restart.parse_command(f"sh -c 'sleep 300 & echo $! > {child}; echo begun; wait'")
    ran = await restart.run(command, timeout_s=4.0, without=frozenset())  # a busy machine begins it within that
    assert not ran.good
    assert (ran.words, ran.output) == ("restart command killed after 4 s", "begun")
    await until(lambda: not is_running(int(child.read_text())))


def is_running(pid: int) -> bool:
    """A child of a killed parent may be a zombie for a while."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


async def test_a_server_that_the_command_leaves_running_does_not_hold_it_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    ran = await restart.run(
        restart.parse_command(f"sh -c 'sleep 60 & echo $! > {pid}'"), timeout_s=20.0, without=frozenset()
    )
    assert ran.good
    os.kill(int(pid.read_text()), signal.SIGKILL)  # it runs: else this raises


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, "watch", *arguments], capture_output=True, text=True, check=False, timeout=200)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_what_servers_and_commands_say_is_text_to_a_terminal_and_nothing_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nasty = "\x1b[2Jall is well\x1b]0;title\x07\u202e"
    finding = Finding(Verdict.UNKNOWN, Outcome.DEGRADED, conclusive=True, why=nasty)
    for as_json in (True, False):
        said = lines.decision_line(Decision(finding, Action.NOTHING, ""), "worker w", as_json=as_json, acts=False)
        said += lines.event_line("restart command done", "worker w", as_json=as_json, output=f"one\n{nasty}")
        assert not set(said) & {"\x1b", "\x07", "\u202e"}
        assert "all is well" in said


def test_exit_status_of_wrong_usage() -> None:
    assert run("vllm").returncode == Exit.USAGE
    assert run("llama", "http://127.0.0.1:1").returncode == Exit.USAGE
    assert run("vllm", "http://127.0.0.1:1", "--act").returncode == Exit.USAGE
    assert run("vllm", "nonsense").returncode == Exit.USAGE
    assert run("--help").returncode == 0


def test_sigterm_ends_it_in_order() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    command = [str(PROGRAM), "watch", "vllm", url, "--interval", "0.1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["verdict"] == "unknown"
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read().splitlines()
    assert process.returncode == 0
    assert json.loads(rest[-1])["event"] == "ends by a signal"


async def test_a_signal_before_it_is_known_how_the_server_is_is_no_good_news(
    vllm: FakeVllm, capsys: pytest.CaptureFixture[str]
) -> None:
    vllm.work(1e6)
    vllm.hang()
    watching = asyncio.create_task(watch(options(vllm.http.url, grace_s=60.0)))
    said = ""
    while "busy" not in said:  # the test's own timeout ends it
        said += capsys.readouterr().out
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await watching is Exit.DEGRADED


async def test_signals_let_a_restart_that_has_begun_end(vllm: FakeVllm, tmp_path: Path) -> None:
    """However many: an impatient supervisor, a Ctrl-C."""
    vllm.work(1e6)
    vllm.hang()
    begun, may_end, ended = (tmp_path / name for name in ("begun", "may_end", "ended"))
    waits = f"touch {begun}; while [ ! -e {may_end} ]; do sleep 0.02; done; touch {ended}"
    watching = asyncio.create_task(watch(options(vllm.http.url, once=False), ["sh", "-c", waits]))
    await until(begun.exists)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.05)  # the loop hears of it
        assert not watching.done()
    may_end.touch()
    assert await watching is Exit.WELL
    assert ended.exists()
