"""The request log as a file: whole lines, rotation, a disk that does not take them."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from edge import request_log
from edge.request_log import RequestLog


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
    assert [entry["event"] for entry in said] == ["request_log_not_written"]


def test_a_disk_that_hangs_costs_lines_not_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log, "MAX_WAITING_LINES", 100)
    monkeypatch.setattr(request_log, "CLOSE_TIMEOUT_S", 0.01)
    let_go, entered = threading.Event(), threading.Event()
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        entered.set()
        let_go.wait(20)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    log = RequestLog(tmp_path / "log", max_bytes=10_000_000, keep=1)
    log.write({"number": -1})
    assert entered.wait(10)
    for number in range(250):
        log.write({"number": number})
    log.close()  # gives up
    let_go.set()
    log._thread.join()
    assert [line["number"] for line in lines(tmp_path / "log")] == [-1, *range(100)]
    with structlog.testing.capture_logs() as said:
        log.write({})
    assert said == [{"event": "request_log_lines_dropped", "count": 150, "log_level": "error"}]
