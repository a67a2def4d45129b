"""What the benches share: child processes, rounds, medians, a table for people, one JSON line for machines."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hairmesh.stack import LOOPBACK

ROOT = Path(__file__).resolve().parents[1]
READY_TIMEOUT_S = 60.0
console = Console(highlight=False)


class BenchError(Exception):
    """The bench could not measure what it promises; the message says what happened."""


@contextmanager
def process(
    name: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child that dies with this process; its output goes to `folder/name.log`, whose end is shown if it fails."""
    log_path = folder / f"{name}.log"
    with log_path.open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "hairmesh.tether", str(os.getpid()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
        )
    try:
        yield child
    except BaseException:
        console.print(f"{name} said:\n{log_path.read_text(errors='replace')[-2000:]}")
        raise
    finally:
        child.terminate()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_for_port(port: int, *, timeout_s: float = READY_TIMEOUT_S) -> None:
    """Until something listens on the loopback port; raises `BenchError` when time is up."""
    until_s = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection((LOOPBACK, port), timeout=1).close()
        except OSError as error:
            if time.monotonic() > until_s:
                raise BenchError(f"nothing listens on port {port} after {timeout_s:.0f} s") from error
            time.sleep(0.05)
        else:
            return


def seconds(work: Callable[[], object]) -> float:
    """How long one run of `work` takes."""
    begun_s = time.perf_counter()
    work()
    return time.perf_counter() - begun_s


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios of rounds that stood beside each other."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others numbers."""
    shown = Table(title=title, title_justify="left")
    for index, heading in enumerate(headings):
        shown.add_column(heading, justify="left" if index == 0 else "right")
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


def emit(figures: Mapping[str, float | int | None]) -> None:
    """The last line: one JSON object."""
    rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}
    sys.stdout.flush()
    print(json.dumps(rounded), flush=True)
