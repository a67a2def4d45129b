"""Looks at the disks, in threads that may hang without hanging anything else."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from worker.health.checks import DiskReading
from worker.thresholds import Thresholds

_GIB = 1 << 30
_WRITE_BYTES = 64 * 1024


class DiskProbe:
    """Two daemon threads, one for free bytes and one for a real write, and the last answer of each."""

    def __init__(self, paths: Sequence[Path], thresholds: Thresholds, clock: Callable[[], float]) -> None:
        self._paths = tuple(paths)
        self._clock = clock
        self._stop = threading.Event()
        self._free: tuple[dict[str, float], str, float | None] = ({}, "", None)
        self._write: tuple[float | None, str, float | None] = (None, "", None)
        self._threads = [
            threading.Thread(target=self._repeat, args=(work, period_s), name=name, daemon=True)
            for name, work, period_s in (
                ("disk-free", self._read_free, thresholds.disk_free_period_s),
                ("disk-write", self._try_write, thresholds.disk_write_period_s),
            )
        ]

    @property
    def reading(self) -> DiskReading:
        """The last answers."""
        free_gib, free_error, free_at_s = self._free
        write_ms, write_error, write_at_s = self._write
        least_gib = None if free_error else min(free_gib.values(), default=None)
        return DiskReading(least_gib, free_error, free_at_s, write_error, write_ms, write_at_s, free_gib)

    def start(self) -> None:
        """Begin to look."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Look no more. Does not wait: a thread that hangs in the disk may never end."""
        self._stop.set()

    def _repeat(self, work: Callable[[], None], period_s: float) -> None:
        while True:
            work()
            if self._stop.wait(period_s):
                return

    def _read_free(self) -> None:
        free_gib, error_name = {}, ""
        for path in self._paths:
            try:
                free_gib[_name(path)] = _free_bytes(path) / _GIB
            except OSError as error:
                error_name = errno_name(error)
        self._free = (free_gib, error_name, self._clock())

    def _try_write(self) -> None:
        began = time.monotonic()
        error_name = ""
        for path in self._paths:
            try:
                # No name in the folder where the file system allows it, so that nothing is left behind.
                with tempfile.TemporaryFile(dir=path, prefix=".hairmesh-write-check-") as file:
                    file.write(os.urandom(_WRITE_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                error_name = errno_name(error)
        self._write = ((time.monotonic() - began) * 1000.0, error_name, self._clock())


def _free_bytes(path: Path) -> int:
    """Bytes that a process without special rights may still write."""
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize


def _name(path: Path) -> str:
    """The path in full, as text that every message can carry."""
    return os.fsencode(path.absolute()).decode(errors="backslashreplace")


def errno_name(error: OSError) -> str:
    """`ENOSPC` and the like; the kind of error where it has no number that has a name."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)
