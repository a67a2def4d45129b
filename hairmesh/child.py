"""One server as a child process: started tethered, watched, stopped in order or killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOG_LINES_SHOWN = 12
COMPLAINT_CHARACTERS = 300
CLEAN_ENDS = (0, -signal.SIGTERM)
"""A server may finish its work and then end by the very signal that asked it to (uvicorn does)."""


class StackError(Exception):
    """A process did not start, ended unasked, or something awaited did not happen. The message is for people."""


@dataclass
class Child:
    """One process of ours."""

    name: str
    program: Path
    address: str
    """Where it listens, `host:port`."""
    config_path: Path
    log_path: Path
    process: subprocess.Popen[bytes] | None = None
    """None while it is meant to be down."""

    @property
    def pid(self) -> int:
        """Process id; raises `StackError` while it is meant to be down."""
        if self.process is None:
            raise StackError(f"{self.name} is not running")
        return self.process.pid

    def start(self) -> None:
        """Start it; after a restart its log goes on in the same file."""
        tether = [sys.executable, "-m", "hairmesh.tether", str(os.getpid())]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*tether, str(self.program), "--config", str(self.config_path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us: we stop the children in order
            )

    def kill(self) -> None:
        """SIGKILL, as a crash would be, to it and whatever it started."""
        self._signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        self.process = None

    def ask_to_stop(self) -> None:
        """SIGTERM; `wait_stopped` follows."""
        self._signal(signal.SIGTERM)

    def wait_stopped(self, until_s: float) -> str:
        """Wait for its end until `until_s` (monotonic), then kill it; returns what went wrong, else an empty string."""
        if self.process is None:
            return ""
        try:
            status = self.process.wait(timeout=max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            return f"{self.name} did not stop by itself"
        self.process = None
        return "" if status in CLEAN_ENDS else f"{self.name} ended with status {status}"

    def has_ended(self) -> bool:
        """Whether it ended unasked."""
        return self.process is not None and self.process.poll() is not None

    def check_running(self) -> None:
        """Raise `StackError` with the end of the log when it has ended unasked."""
        if self.process is not None and self.has_ended():
            lines = self.log_path.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
            status = self.process.returncode
            raise StackError("\n".join([f"{self.name} ended with status {status}; {self.log_path} ends with:", *lines]))

    def last_complaint(self) -> str:
        """The last error or warning in its log, on one line; empty when there is none."""
        for line in reversed(self.log_path.read_text(errors="replace").splitlines()):
            with suppress(ValueError, AttributeError):  # not every line of a log is one of ours
                record = json.loads(line)
                if record.get("level") in {"error", "warning"}:
                    said = " ".join(str(record.get(key, "")) for key in ("event", "problem", "exception")).split()
                    return f"{self.name}: {' '.join(said)[-COMPLAINT_CHARACTERS:]}"
        return ""

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, number)


def console_script(name: str) -> Path:
    """A program that was installed beside this interpreter."""
    return Path(sys.executable).with_name(name)
