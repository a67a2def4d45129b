"""Standard error that cannot be written hurts nobody who logs; what was lost is counted, and said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hairmesh.logs import LineStream

DEADLINE_S = 60.0

LOGS_EVERYTHING = """
import logging, sys, structlog
from hairmesh import logs
logs.configure("worker")
log = structlog.get_logger()
for number in range(2_000):
    log.info("line", number=number)
    logging.getLogger("uvicorn").error("line %d", number)
    try:
        raise ValueError("x" * 9_000)
    except ValueError:
        log.exception("failed")
print("alive")
"""

FILE_THAT_HAS_ROOM_AGAIN = """
import logging, resource, structlog
from hairmesh import logs
logs.configure("edge")
log = structlog.get_logger()
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
for number in range(100):
    log.info("before", number=number)
    logging.getLogger("uvicorn").error("before")
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
log.info("after")
log.info("after")
"""

ODD_LINES = r"""
import logging, threading, structlog
from hairmesh import logs
logs.configure("edge")
def log(write):
    for number in range(200):
        write(f"\udcff{'ü' * 10_000}")
writers = (structlog.get_logger().info, logging.getLogger("uvicorn").error)
threads = [threading.Thread(target=log, args=(each,)) for each in writers]
for each in threads: each.start()
for each in threads: each.join()
"""


def run(script: str, stderr: int) -> subprocess.CompletedProcess[str]:
    """A process that does what `script` says, with this standard error."""
    return subprocess.run(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@contextmanager
def full_disk() -> Iterator[int]:
    with Path("/dev/full").open("wb", buffering=0) as file:
        yield file.fileno()


@contextmanager
def nobody_reads_any_more() -> Iterator[int]:
    reads, writes = os.pipe()
    os.close(reads)
    yield writes
    os.close(writes)


@contextmanager
def nobody_ever_reads(*, blocking: bool) -> Iterator[int]:
    reads, writes = os.pipe()
    os.set_blocking(writes, blocking)
    yield writes
    os.close(writes)
    os.close(reads)


@pytest.mark.parametrize(
    "broken",
    [
        full_disk,
        nobody_reads_any_more,
        lambda: nobody_ever_reads(blocking=True),
        lambda: nobody_ever_reads(blocking=False),
    ],
    ids=["full disk", "closed pipe", "pipe that stands still", "pipe that says try again"],
)
def test_who_logs_is_neither_hurt_nor_kept_waiting(broken: Callable[[], AbstractContextManager[int]]) -> None:
    with broken() as stderr:
        process = run(LOGS_EVERYTHING, stderr)
        assert (process.returncode, process.stdout) == (0, "alive\n")


def test_a_process_without_standard_error_writes_to_nothing_that_has_its_number() -> None:
    """Python has no `sys.stderr` then; what is opened next may be number 2: a picture, a connection."""
    reads, writes = os.pipe()
    os.close(reads)
    script = "import os; kept = os.open('/dev/null', os.O_WRONLY)\n" + LOGS_EVERYTHING
    command = ["/bin/sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, script]
    process = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    os.close(writes)
    assert (process.returncode, process.stdout, process.stderr) == (0, "alive\n", "")


def test_when_a_disk_has_room_again_the_lost_lines_are_counted_and_no_line_is_glued_to_another(tmp_path: Path) -> None:
    path = tmp_path / "edge.log"
    with path.open("ab", buffering=0) as file:
        assert run(FILE_THAT_HAS_ROOM_AGAIN, file.fileno()).returncode == 0
    *before, cut, lost, first, second = path.read_text().splitlines()
    assert sum(len(line) + 1 for line in before) + len(cut) == 1_000, "written as far as the disk had room"
    assert {json.loads(line)["event"] for line in before} == {"before"}
    told: dict[str, Any] = json.loads(lost)
    assert datetime.fromisoformat(told.pop("timestamp")).tzinfo is UTC
    assert told == {"event": "log_lines_lost", "count": 200 - len(before), "service": "edge", "level": "warning"}
    assert [json.loads(line)["event"] for line in (first, second)] == ["after", "after"]


def test_lines_of_several_threads_stay_whole_however_long_and_odd_they_are(tmp_path: Path) -> None:
    path = tmp_path / "edge.log"
    with path.open("ab", buffering=0) as file:
        assert run(ODD_LINES, file.fileno()).returncode == 0
    lines = path.read_text().splitlines()
    assert len(lines) == 400
    assert {json.loads(line)["event"] for line in lines} == {f"\udcff{'ü' * 10_000}"}


def test_a_reader_that_goes_on_reading_gets_whole_lines_and_the_count_of_those_it_missed() -> None:
    reads, writes = os.pipe()
    try:
        stream = LineStream(writes, "{} lost\n".format)
        for _ in range(2):
            for _ in range(200):
                assert stream.write(f"{'x' * 1_000}\n") == 1_001
            got = os.read(reads, 1 << 20).decode()
            stream.write("again\n")
            told = os.read(reads, 1 << 20).decode()
            lines = got.splitlines()
            assert set(lines) == {"x" * 1_000}, "no half ones"
            assert 10 < len(lines) < 200
            assert told == f"{200 - len(lines)} lost\nagain\n"
    finally:
        os.close(reads)
        os.close(writes)
