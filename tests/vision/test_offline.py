"""What is made offline stays off the network, and nothing else does."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vision.errors import ModelError
from vision.landmarks import LandmarkDetector
from vision.offline import run_offline


def open_socket(family: int = socket.AF_INET) -> str:
    with socket.socket(family):
        return "open"


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX])
def test_sockets_are_refused_inside(family: int) -> None:
    with pytest.raises(PermissionError):
        run_offline(lambda: open_socket(family))


def test_threads_started_inside_are_offline_for_good() -> None:
    with run_offline(started_pool) as pool, pytest.raises(PermissionError):
        pool.submit(open_socket).result()


def started_pool() -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()
    return pool


def test_other_threads_keep_the_network() -> None:
    with ThreadPoolExecutor(1) as before:
        before.submit(int).result()
        assert run_offline(lambda: 7) == 7
        assert open_socket() == "open"
        assert before.submit(open_socket).result() == "open"


def test_what_goes_wrong_inside_is_told_outside() -> None:
    with pytest.raises(ZeroDivisionError):
        run_offline(lambda: 1 // 0)


def test_where_it_cannot_be_done_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    with pytest.raises(ModelError, match="cannot be kept off the network on Linux vax"):
        run_offline(lambda: pytest.fail("made all the same"))


@pytest.mark.models
def test_mediapipe_is_offline(detector: LandmarkDetector) -> None:
    """All of its native calls run on one thread of its own, made together with the detector."""
    with pytest.raises(PermissionError):
        detector._landmarker._lib._executor.submit(open_socket).result()


def test_onnxruntime_does_not_report_to_its_maker(tmp_path: Path) -> None:
    """When it does, it notes an id of the machine as soon as it is loaded."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", "ORT_DISABLE_TELEMETRY"}}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", "import vision.runtime"], env=environment, check=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
