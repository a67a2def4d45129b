"""Child processes: ends that are noticed, ends that are asked for, nothing left behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from hairmesh.child import Child, StackError

SLEEPER = "import sys, time; print('up', flush=True); time.sleep(600)"


def child(folder: Path, script: str) -> Child:
    """A `Child` whose program is a Python script that is handed a `--config` as the real ones are."""
    program = folder / "program"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(0o755)
    return Child("test", program, "127.0.0.1:1", folder / "config.json", folder / "test.log")


def eventually(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_child_that_ends_unasked_is_told_with_its_log(tmp_path: Path) -> None:
    process = child(tmp_path, "import sys; print('the reason'); sys.exit(3)")
    process.start()
    eventually(process.has_ended)
    with pytest.raises(StackError, match=r"status 3(.|\n)*the reason"):
        process.check_running()


def test_child_is_asked_first_and_killed_at_the_time_limit(tmp_path: Path) -> None:
    gentle = child(tmp_path, f"import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); {SLEEPER}")
    gentle.start()
    eventually(lambda: "up" in gentle.log_path.read_text())
    gentle.ask_to_stop()
    assert gentle.wait_stopped(time.monotonic() + 30) == ""

    stubborn = child(tmp_path, f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}")
    stubborn.log_path.unlink()
    stubborn.start()
    eventually(lambda: "up" in stubborn.log_path.read_text())
    pid = stubborn.pid
    stubborn.ask_to_stop()
    assert "did not stop" in stubborn.wait_stopped(time.monotonic())
    assert not psutil.pid_exists(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the tether is a Linux system call")
def test_children_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    process = child(tmp_path, SLEEPER)
    code = (
        "import sys, time; from pathlib import Path; from hairmesh.child import Child;"
        f"folder = Path({str(tmp_path)!r});"
        f"child = Child('test', Path({str(process.program)!r}), '', folder / 'config.json', folder / 'test.log');"
        "child.start(); print(child.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        eventually(lambda: "up" in process.log_path.read_text())
        assert psutil.pid_exists(pid)
        parent.kill()
    eventually(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
