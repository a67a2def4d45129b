"""A file of lines that several processes may append to, each of which may be killed at any moment.

Whoever writes holds a lock on the file itself, and writes each line in one call. So a line is whole or not there: one
that a full disk cut off is taken back by its writer, one that a killed process left half is cut off by the next. After
taking the lock a writer looks whether the file is still the one that has the name: another process may have renamed it
for its size, or a log rotation from outside.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_S = 1.0
"""So long others may hold it: they write for milliseconds, unless they are stopped in the middle."""
_LOCK_RETRY_S = 0.002
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})
"""File systems without locks: then one process writes there, or lines may meet."""
_LONGEST_BYTES = 1 << 20
"""No line is longer."""
_TRIES = 100
"""So often in a row it may have got another name, before that is called trouble."""


class LogFile:
    """Lines in `path`. The next one that finds `max_bytes` renames it to `path.1`, that to `path.2`, up to `keep`.

    To be used by one thread; every method may block as long as the disk does.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._descriptor: int | None = None
        self.mended_bytes = 0
        """Of halves of lines that were found and cut off."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Inside, nobody else writes. Raises `OSError`, and `TimeoutError` where another process does not let go."""
        self._take()
        try:
            yield
        finally:
            if self._descriptor is not None:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def append(self, line: bytes) -> None:
        """Inside `locked`: the whole line, or `OSError` and nothing of it."""
        descriptor = self._held()
        before_bytes = os.fstat(descriptor).st_size
        if before_bytes >= self._max_bytes:
            self._rotate()
            self.close()
            self._take()
            descriptor = self._held()
            before_bytes = os.fstat(descriptor).st_size
        if os.write(descriptor, line) < len(line):
            os.ftruncate(descriptor, before_bytes)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Let go of the file; the next `locked` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)  # and with it goes the lock
            self._descriptor = None

    def _take(self) -> None:
        """Open the file that has the name, lock it, and see that it ends with a whole line."""
        for _ in range(_TRIES):
            if self._descriptor is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            _lock(self._descriptor)
            if self._has_the_name():
                self._mend()
                return
            self.close()
        raise OSError(errno.EBUSY, "it is renamed again and again")

    def _held(self) -> int:
        if self._descriptor is None:
            raise RuntimeError("append outside locked")
        return self._descriptor

    def _has_the_name(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._held()), self._path.stat())
        except FileNotFoundError:
            return False

    def _mend(self) -> None:
        descriptor = self._held()
        size = os.fstat(descriptor).st_size
        if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
            return
        tail_bytes = min(size, _LONGEST_BYTES)
        whole_bytes = size - tail_bytes + os.pread(descriptor, tail_bytes, size - tail_bytes).rfind(b"\n") + 1
        os.ftruncate(descriptor, whole_bytes)
        self.mended_bytes += size - whole_bytes

    def _rotate(self) -> None:
        """Make room for a new file."""
        for number in range(self._keep, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)


def _lock(descriptor: int) -> None:
    """Never waits for ever: a process that was stopped while it held the lock must not stop the others."""
    until_s = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds it and does not move") from None
            time.sleep(_LOCK_RETRY_S)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return
        else:
            return
