"""Child processes: private configurations, ends that are noticed, nothing left behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from hairmesh.stack import Child, Stack, StackError, ends_on_signals, free_ports, write_private

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


def test_free_ports_differ_and_can_be_bound() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    for port in ports:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))


def test_private_files_are_private_even_over_a_public_one(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


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
        "import sys, time; from pathlib import Path; from hairmesh.stack import Child;"
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


def test_terminated_like_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt), ends_on_signals():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_passwords_are_new_each_time(tmp_path: Path) -> None:
    first, second = Stack(tmp_path, workers=1), Stack(tmp_path, workers=1)
    assert len({first.token, first.admin_token, second.token, second.admin_token}) == 4


def test_waiting_in_vain_says_for_what(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="until pigs fly"):
        Stack(tmp_path, workers=1).wait_until(lambda: False, "pigs fly", timeout_s=0.0)
