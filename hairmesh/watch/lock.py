"""One watchdog per server: an advisory lock named by the target's hash, gone with the process that holds it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class LockHeldError(Exception):
    """Another watchdog acts on this server."""


def lock_dir() -> Path:
    """Where locks lie. Shared by all users first: a service and a person must find the same one."""
    places = (Path("/run/lock"), Path(os.environ.get("XDG_RUNTIME_DIR") or "/nowhere"))
    return next((place for place in places if os.access(place, os.W_OK | os.X_OK)), Path(tempfile.gettempdir()))


def lock_path(target: str) -> Path:
    """The lock of `target`, kind and address in one."""
    return lock_dir() / f"hairmesh-watch-{hashlib.sha256(target.encode()).hexdigest()[:20]}.lock"


@contextmanager
def only_one(target: str) -> Iterator[None]:
    """Hold the lock of `target`; raises `LockHeldError` when another process does, `OSError` when there can be none.

    The file stays behind: removing it would let two processes hold two files of one name.
    """
    path = lock_path(target)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_NOFOLLOW, 0o644))
    # Read only: another user's file can be locked, though not written.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LockHeldError(f"another watchdog acts on {target} (lock {path})") from None
    try:
        yield
    finally:
        os.close(descriptor)
