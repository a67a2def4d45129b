"""A server that is stopped before it has started."""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

STOPS = "import os, signal; os.kill(os.getpid(), signal.{signal})"
"""Stands in the place of a module that the command imports: so the signal comes while it is loading."""


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize(("command", "loads"), [("edge", "uvicorn"), ("worker", "typer"), ("worker", "grpc")])
def test_a_signal_while_it_loads_ends_it_in_order(tmp_path: Path, command: str, loads: str, signal: str) -> None:
    (tmp_path / f"{loads}.py").write_text(STOPS.format(signal=signal))
    (tmp_path / "c.json").write_text('{"accept_passwords": ["p"], "listen": "127.0.0.1:0", "drain_delay_seconds": 0}')
    arguments = [sys.executable, "-m", command, "--config", "c.json"]
    ended = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(("command", "loads"), [("edge", "uvicorn"), ("worker", "grpc")])
def test_no_photo_gets_to_a_disk_in_a_core_dump(tmp_path: Path, command: str, loads: str) -> None:
    """Whatever the machine allows, and before anything is loaded that could crash; children inherit it."""
    _, allowed = resource.getrlimit(resource.RLIMIT_CORE)
    if allowed == 0:
        pytest.skip("nothing leaves a core dump here")
    (tmp_path / f"{loads}.py").write_text(
        "import resource, sys; sys.exit(str(resource.getrlimit(resource.RLIMIT_CORE)))"
    )
    ended = subprocess.run(
        [sys.executable, "-m", command, "--config", "c.json"],
        cwd=tmp_path,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CORE, (allowed, allowed)),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ended.stderr.strip() == "(0, 0)"


def test_a_check_that_is_stopped_has_not_found_the_file_good(tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text(STOPS.format(signal="SIGTERM"))
    arguments = [sys.executable, "-m", "edge", "--config", "c.json", "--check"]
    assert subprocess.run(arguments, cwd=tmp_path, check=False, timeout=100).returncode != 0
