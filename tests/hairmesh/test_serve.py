"""What `hairmesh serve` does about workers that end, about another one, and about what a killed one left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hairmesh.child import Child, StackError
from hairmesh.serve import RESTART_AFTER_S, Keeper, run
from hairmesh.stack import Stack

CONTACT = json.dumps({"url": "http://127.0.0.1:21000", "edge_pid": os.getpid()})
"""As a service writes it, by a number that is somebody's."""


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


@pytest.fixture
def _no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing starts: it is said once the folder is one's own."""
    monkeypatch.setenv("HAIRMESH_MODELS_DIR", str(tmp_path / "empty"))


LEFT_BEHIND = pytest.mark.parametrize(
    "left_behind",
    [CONTACT, "", "{", "[]", "null", '{"edge_pid": "1"}'],
    ids=["whole", "empty", "half", "list", "null", "other"],
)


@LEFT_BEHIND
@pytest.mark.usefixtures("_no_models")
def test_what_a_killed_one_left_behind_keeps_nobody_from_starting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], left_behind: str
) -> None:
    (contact := tmp_path / "serve.json").write_text(left_behind)
    assert run(tmp_path, workers=1) == 1
    assert "hairmesh models fetch" in capsys.readouterr().err
    assert not contact.exists()


def test_what_a_killed_one_left_behind_is_gone_while_the_next_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contact, found = tmp_path / "serve.json", []

    def wait_online(*_: object) -> float:
        found.append(contact.exists())
        raise KeyboardInterrupt

    monkeypatch.setattr(Stack, "start", Stack._claim_folder)
    monkeypatch.setattr(Stack, "wait_online", wait_online)
    contact.write_text(CONTACT)
    assert run(tmp_path, workers=1) == 0
    assert found == [False]


@LEFT_BEHIND
@pytest.mark.usefixtures("_no_models")
def test_a_second_one_says_who_runs_and_leaves_its_files_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], left_behind: str
) -> None:
    with Stack(tmp_path / "serve", workers=1) as first:
        with pytest.raises(StackError, match="hairmesh models fetch"):
            first.start()
        files = {tmp_path / "serve.json": left_behind, first.folder / "grpc_header.local.txt": "of the first"}
        for path, text in files.items():
            path.write_text(text)
        assert run(tmp_path, workers=1) == 1
        assert {path: path.read_text() for path in files} == files
    said = capsys.readouterr().err
    assert said.startswith(f"serve: another demo or service runs in {first.folder}: stop it, or name another --out")
    assert (f"({tmp_path}/serve.json names http://127.0.0.1:21000, edge pid {os.getpid()})" in said) == (
        left_behind == CONTACT
    )
