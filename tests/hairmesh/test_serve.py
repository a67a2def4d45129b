"""What `hairmesh serve` does about workers that end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hairmesh.child import Child
from hairmesh.serve import RESTART_AFTER_S, Keeper


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[Child]]:
    """Two that do nothing."""
    program = tmp_path / "worker"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    made = [
        Child(name, program, f"127.0.0.1:{port}", tmp_path / f"{name}.json", tmp_path / f"{name}.log")
        for port, name in enumerate(("worker1", "worker2"), start=1)
    ]
    for worker in made:
        worker.start()
    yield made
    for worker in made:
        worker.kill()


def end(worker: Child) -> None:
    """Kill it, and wait until it has ended."""
    os.kill(worker.pid, signal.SIGKILL)
    assert worker.process is not None
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)


def test_a_worker_that_ended_is_a_child_again_after_a_while_however_often(workers: list[Child]) -> None:
    said: list[str] = []
    keeper, now_s = Keeper(workers, said.append), time.monotonic()
    assert not keeper.look(now_s)
    first, second = workers
    untouched = second.pid
    for _ in range(2):
        before, told = first.pid, len(said)
        end(first)
        assert keeper.look(now_s)
        assert first.process is None
        assert not keeper.look(now_s + RESTART_AFTER_S - 0.1)
        now_s += RESTART_AFTER_S
        assert keeper.look(now_s)
        assert first.pid != before
        assert psutil.Process(first.pid).ppid() == os.getpid()
        assert not keeper.look(now_s + 1000)
        assert [text.split(" is ")[1].split()[0].strip(";") for text in said[told:]] == ["gone", "started"]
        assert all(text.startswith("worker1 (127.0.0.1:1) ") for text in said)
    assert second.pid == untouched
