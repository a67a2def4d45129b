"""The request log as a file: whole lines, rotation, a disk that does not take them."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from edge import log_file, request_log
from edge.request_log import RequestLog
from tests.e2e.small_disk import MountRefusedError, SmallDisk, small_disk


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_line_is_whole_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "request_log.jsonl"
    log = RequestLog(path, max_bytes=10_000_000, keep=1)
    for number in range(500):
        log.write({"number": number, "text": '换行\n"引号"'})
    log.close()
    assert [line["number"] for line in lines(path)] == list(range(500))
    assert path.stat().st_mode & 0o077 == 0


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "request_log.jsonl"
    for number in range(2):
        log = RequestLog(path, max_bytes=10_000_000, keep=1)
        log.write({"number": number})
        log.close()
    assert [line["number"] for line in lines(path)] == [0, 1]


@settings(max_examples=25)
@given(keep=st.integers(1, 4), count=st.integers(0, 60))
def test_rotation_keeps_the_newest(tmp_path_factory: pytest.TempPathFactory, keep: int, count: int) -> None:
    path = tmp_path_factory.mktemp("log") / "request_log.jsonl"
    log = RequestLog(path, max_bytes=300, keep=keep)
    for number in range(count):
        log.write({"number": number})
    log.close()
    files = [path.with_name(f"{path.name}.{number}") for number in range(keep, 0, -1)] + [path]
    found = [line["number"] for file in files if file.exists() for line in lines(file)]
    assert found == list(range(count))[-len(found) :] if found else count == 0
    assert len(list(path.parent.iterdir())) <= keep + 1
    assert all(file.stat().st_size < 500 for file in files if file.exists())


def test_each_line_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        written.append(data)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    log = RequestLog(tmp_path / "log", max_bytes=10_000_000, keep=1)
    for number in range(20):
        log.write({"number": number})
    log.close()
    assert [json.loads(data)["number"] for data in written] == list(range(20))


def test_a_path_that_cannot_be_written_is_said_once_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = RequestLog(tmp_path / "file" / "log", max_bytes=1000, keep=1)
    with structlog.testing.capture_logs() as said:
        for _ in range(10):
            log.write({})
        log.close()
    assert [entry["event"] for entry in said] == ["request_log_not_written", "request_log_lines_dropped"]
    assert said[-1]["count"] == log.lost == 10


def test_a_disk_that_hangs_costs_lines_not_memory_and_all_of_them_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "MAX_WAITING_LINES", 100)
    monkeypatch.setattr(request_log, "CLOSE_TIMEOUT_S", 0.01)
    let_go, entered = threading.Event(), threading.Event()
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        entered.set()
        let_go.wait()
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    log = RequestLog(tmp_path / "log", max_bytes=10_000_000, keep=1)
    with structlog.testing.capture_logs() as said:
        for number in range(250):
            log.write({"number": number})
        assert entered.wait(60)
        assert (said, log.lost) == ([], 150), "there was no room for them; the others wait"
        log.close()  # gives up
        assert said == [{"event": "request_log_lines_dropped", "count": 250, "log_level": "error"}]
        let_go.set()
        log._thread.join()
    assert [line["number"] for line in lines(tmp_path / "log")] == [0], "of what was told lost, one that was begun"
    assert len(said) == 1
    assert log.lost == 249


def test_a_disk_that_is_full_for_a_while_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full, refused = threading.Event(), threading.Event()
    full.set()
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if not full.is_set():
            return real(descriptor, data)
        written = real(descriptor, data[: len(data) // 2])
        refused.set()
        return written

    monkeypatch.setattr(os, "write", write)
    with structlog.testing.capture_logs() as said:
        log = RequestLog(tmp_path / "log", max_bytes=10_000_000, keep=1)
        for number in range(20):
            log.write({"number": number})
        assert refused.wait(60)
        full.clear()
        log.close()
    assert [line["number"] for line in lines(tmp_path / "log")] == list(range(20))
    assert log.lost == 0
    assert [entry["event"] for entry in said] == ["request_log_not_written"], "it cleans up behind itself"


def test_half_a_line_that_a_killed_process_left_is_cut_off_and_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"number": 0}\n{"number": 1, "te')
    with structlog.testing.capture_logs() as said:
        log = RequestLog(path, max_bytes=10_000_000, keep=1)
        log.write({"number": 2})
        log.close()
    assert [line["number"] for line in lines(path)] == [0, 2]
    assert said == [{"event": "request_log_mended", "bytes": 17, "log_level": "warning"}]


def test_it_follows_its_name_when_the_file_was_taken_away(tmp_path: Path) -> None:
    path, away = tmp_path / "log", tmp_path / "log-20261130"
    log = RequestLog(path, max_bytes=10_000_000, keep=1)
    log.write({"number": 0})
    until(path.exists)
    until(lambda: len(lines(path)) == 1)
    path.rename(away)
    log.write({"number": 1})
    until(path.exists)
    path.unlink()
    log.write({"number": 2})
    log.close()
    assert [line["number"] for line in lines(away)] == [0]
    assert [line["number"] for line in lines(path)] in ([2], [1, 2])


def test_who_holds_the_file_and_does_not_move_costs_nothing_once_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "LOCK_S", 0.01)
    path = tmp_path / "log"
    with path.open("ab") as held, structlog.testing.capture_logs() as said:
        fcntl.flock(held, fcntl.LOCK_EX)
        log = RequestLog(path, max_bytes=10_000_000, keep=1)
        log.write({"number": 0})
        until(lambda: bool(said))
    log.close()
    assert [entry["event"] for entry in said] == ["request_log_not_written"]
    assert [line["number"] for line in lines(path)] == [0]


WRITER = """
import json, sys, time
from pathlib import Path
from edge import log_file, request_log
request_log.CLOSE_TIMEOUT_S = log_file.LOCK_S = 60.0  # a busy machine is not what is tested
path, name, count, max_bytes = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
log = request_log.RequestLog(path, max_bytes=max_bytes, keep=900)
for number in range(count):
    log.write({"writer": name, "number": number, "text": "x" * 4000})
    if number % 50 == 0:
        time.sleep(0.02)
    if number == 50 and "to be killed" in sys.argv:
        while len(log._lines) > number:
            time.sleep(0.002)
        print("the first line is on the disk", flush=True)
if "to be killed" in sys.argv:
    sys.stdin.read()
log.close()
print(json.dumps({"lost": log.lost}))
"""


class Writers:
    """Processes that write to one file at the same time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.children: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str, *more: str, count: int, max_bytes: int) -> subprocess.Popen[str]:
        """One more; `more` are further arguments for it."""
        program = [sys.executable, "-c", WRITER, str(self._path), name, str(count), str(max_bytes), *more]
        child = subprocess.Popen(program, stdin=PIPE, stdout=PIPE, text=True)
        self.children[name] = child
        return child

    def losses(self) -> dict[str, int]:
        """What each says it lost, at its end; those that were killed say nothing."""
        told = {}
        for name, child in self.children.items():
            said = child.communicate(timeout=100)[0].splitlines()
            if child.returncode == 0:
                told[name] = int(json.loads(said[-1])["lost"])
        return told

    def found(self) -> dict[str, list[int]]:
        """Numbers of the lines of each, over all files, the oldest file first. Every line parses."""
        files = sorted(self._path.parent.glob(f"{self._path.name}.*"), key=lambda file: -int(file.suffix[1:]))
        found: dict[str, list[int]] = {name: [] for name in self.children}
        for file in (*files, self._path):
            for line in lines(file):
                assert line["text"] == "x" * 4000
                found[str(line["writer"])].append(int(str(line["number"])))
        return found

    def kill(self) -> None:
        """All that still run."""
        for child in self.children.values():
            child.kill()
            child.communicate()


@contextmanager
def writing(path: Path) -> Iterator[Writers]:
    """Writers to `path`, none of which outlives the test."""
    writers = Writers(path)
    try:
        yield writers
    finally:
        writers.kill()


def test_b93_eight_processes_on_one_file_one_of_them_killed(tmp_path: Path) -> None:
    with writing(tmp_path / "request_log.jsonl") as writers:
        killed = writers.start("0", "to be killed", count=2_000, max_bytes=200_000)
        for number in range(1, 8):
            writers.start(str(number), count=500, max_bytes=200_000)
        assert killed.stdout is not None
        assert killed.stdout.readline() == "the first line is on the disk\n"
        killed.kill()
        losses, found = writers.losses(), writers.found()
    assert losses == {str(number): 0 for number in range(1, 8)}
    for name in losses:
        assert found[name] == list(range(500))
    assert found["0"] == list(range(len(found["0"])))
    assert found["0"]
    assert len(list(tmp_path.iterdir())) > 50, "it was rotated again and again"


def test_b93_a_disk_that_fills_up_cuts_no_line_and_every_loss_is_told(disk: SmallDisk) -> None:
    disk.fill(leave_bytes=1_000_000)
    with writing(disk.path / "request_log.jsonl") as writers:
        for number in range(3):
            writers.start(str(number), count=200, max_bytes=300_000)
        losses, found = writers.losses(), writers.found()
    assert sum(losses.values()) > 0
    for name, lost in losses.items():
        assert len(found[name]) == 200 - lost
        assert found[name] == sorted(found[name])


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread or process."""
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.002)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk that can be filled."""
    try:
        with small_disk(tmp_path / "disk", 4_000_000) as mounted:
            yield mounted
    except MountRefusedError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
