"""A folder swept in a process of its own."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edge.images.apart import sweep_apart, sweep_folder
from edge.images.folder import file_name
from edge.images.retention import Retention, Why
from edge.images.store import new_id
from edge.images.sweep import Order

HOUR_S = 3600.0


def order(max_bytes: int, *, wanted_bytes: int = 0, written: tuple[str, ...] = ()) -> Order:
    return Order(Retention(max_bytes, 72 * HOUR_S, 600.0), time.time(), wanted_bytes, written)


def made(folder: Path, age_s: float, size: int = 100) -> Path:
    path = folder / file_name(new_id("r"))
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_it_does_what_it_is_told_and_says_what_came_of_it(tmp_path: Path) -> None:
    too_old, for_room, kept = made(tmp_path, 73 * HOUR_S), made(tmp_path, 71 * HOUR_S), made(tmp_path, 1 * HOUR_S)
    young, being_written = made(tmp_path, 10), made(tmp_path, 5)
    swept = sweep_apart(tmp_path, order(300, wanted_bytes=100, written=(being_written.name,)))
    assert (swept.count, swept.bytes) == (2, 200)
    assert swept.removed == {Why.OLD: 1, Why.ROOM: 1}
    assert (swept.stayed, swept.problem) == (0, "")
    assert set(tmp_path.iterdir()) == {kept, young, being_written}
    assert not too_old.exists()
    assert not for_room.exists()


def test_what_the_system_refuses_is_said_as_it_would_be_here(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        sweep_apart(tmp_path / "gone", order(300))
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        sweep_apart(tmp_path / "file", order(300))


_AN_EDGE = """
import subprocess, sys
from pathlib import Path
from edge.images import apart
from edge.images.retention import Retention
from edge.images.sweep import Order

def run(command, **_options):  # the order comes from the test, and never ends
    sweeping = subprocess.Popen(command, stdin=sys.stdin)
    print(sweeping.pid, flush=True)
    sweeping.wait()

subprocess.run = run
apart.sweep_apart(Path(sys.argv[1]), Order(Retention(1, 1.0, 1.0), 0.0, 0, frozenset()))
"""


def test_an_edge_that_is_killed_leaves_no_sweep_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _AN_EDGE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as edge:
        assert edge.stdout is not None
        sweeping = os.pidfd_open(int(edge.stdout.readline()))
        edge.kill()
        ended, _, _ = select.select([sweeping], [], [], 30)  # else it waits for its order, whose other end is held here
        os.close(sweeping)
        assert ended


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("raise SystemExit('no more memory')", "ended with status 1: no more memory"),
        ("import os; os.kill(os.getpid(), 9)", "ended with status -9: "),
        ("print('{}')", "is of another release"),
        ("print('?')", "is of another release"),
        ('print(\'{"bytes": 1, "removed": {"OLD": 0, "ROOM": 0}, "new": 1}\')', "is of another release"),
    ],
)
def test_a_process_that_fails_is_an_error_and_no_empty_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, problem: str
) -> None:
    """As one does that has been killed, or that was upgraded while the edge runs on."""
    monkeypatch.setattr("edge.images.apart._MODULE", (sys.executable, "-c", program))
    with pytest.raises(OSError, match=problem):
        sweep_apart(tmp_path, order(300))


def test_a_few_pictures_are_not_worth_a_process_many_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge.images.apart.MANY", 3)
    monkeypatch.setattr("edge.images.apart._MODULE", (sys.executable, "-c", "raise SystemExit('it was started')"))
    for _ in range(3):
        made(tmp_path, 73 * HOUR_S)
    assert sweep_folder(tmp_path, order(300)).removed == {Why.OLD: 3}
    for _ in range(4):
        made(tmp_path, 73 * HOUR_S)
    with pytest.raises(ChildProcessError, match="it was started"):
        sweep_folder(tmp_path, order(300))
