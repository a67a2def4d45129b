"""The bad day: on virtual time the old rules against ours, and once with real processes and sockets, scaled down."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.vllm_engine import VllmServer
from tests.sim import bad_day
from tests.sim.bad_day import HOUR_S, STUCK_AT_S, live

ROOT = Path(__file__).resolve().parents[2]
BUSY_LOOKS = 12
PROGRAM = Path(sys.executable).with_name("hairmesh")


@pytest.mark.parametrize("seed", [0, 1])
def test_the_old_rules_restart_a_healthy_server_again_and_again_and_ours_never(seed: int) -> None:
    old = live(ours=False, seed=seed)
    ours = live(ours=True, seed=seed)
    assert len(old.restarts) >= 8
    assert old.lost > 10
    assert (ours.restarts, ours.lost) == ((), 0)
    assert ours.done > old.done
    assert ours.canaries_while_working == 0


def test_a_truly_stuck_server_is_restarted_once_and_soon() -> None:
    ours = live(ours=True, hangs_at_s=STUCK_AT_S)
    (restarted_s,) = ours.restarts
    assert 120.0 <= restarted_s - STUCK_AT_S <= 180.0
    old = live(ours=False, hangs_at_s=STUCK_AT_S)
    after = [at_s for at_s in old.restarts if at_s >= STUCK_AT_S]
    assert after[0] - STUCK_AT_S > restarted_s - STUCK_AT_S
    assert len(after) > 1


def test_the_first_old_rule_alone_is_enough_for_a_bad_day() -> None:
    """Five test requests of 45 s that wait behind long ones: restarting takes no second watchdog."""
    server = VllmServer(slots=bad_day.SLOTS, load_s=bad_day.LOAD_S, at_s=-HOUR_S)
    for _ in range(4):
        server.submit(2 * HOUR_S)
    rule = bad_day.TestRequests(server)
    for n in range(int(HOUR_S / 5)):
        server.advance(5.0 * n)
        rule.tick(5.0 * n)
    assert rule.restarts == [pytest.approx(4 * 300.0 + 45.0)]


@pytest.mark.long
def test_the_table_in_the_documentation_is_what_the_replay_prints() -> None:
    assert bad_day.table() in (ROOT / "docs" / "watch.md").read_text()


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_until(process: subprocess.Popen[str], **wanted: object) -> list[dict[str, Any]]:
    """Lines of JSON up to and with the first that has these values."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(json.loads(line))
        if wanted.items() <= lines[-1].items():
            return lines
    raise AssertionError(f"ended without {wanted}: {lines}")


def test_a_busy_server_is_left_alone_and_the_same_one_stuck_is_restarted_once() -> None:
    """Real processes: the server full of work for three times the two graces, then hung, then back."""
    with started(sys.executable, "-m", "tests.fakes.vllm", "--load-s", "1.5") as server:
        (up,) = lines_until(server, event="up")
        quick = ("--interval", "0.5", "--grace", "1", "--start-grace", "0", "--dead-grace", "600")
        orders = ("--restart-cmd", f"kill -HUP {server.pid}", "--act", "--json")
        with started(str(PROGRAM), "watch", "vllm", up["url"], *quick, *orders) as dog:
            busy = [line for _ in range(BUSY_LOOKS) for line in lines_until(dog, verdict="busy")]
            server.send_signal(signal.SIGUSR1)
            (hung,) = lines_until(server, event="hang")
            assert hung["asked"] == []  # nothing was sent to it while it moved
            stuck = lines_until(dog, event="restart command done")
            (restart,) = lines_until(server, event="restart")
            assert restart["asked"].count("POST /v1/completions") == 1
            back = lines_until(dog, verdict="idle")
            dog.send_signal(signal.SIGTERM)
            rest = lines_until(dog, event="ends by a signal")
        assert {line["action"] for line in busy} == {"nothing"}
        said = [*busy, *stuck, *back, *rest]
        assert [line["verdict"] for line in said if line.get("action") == "restart"] == ["stalled"]
        server.send_signal(signal.SIGTERM)
        assert [line["event"] for line in lines_until(server, event="end")] == ["end"]
