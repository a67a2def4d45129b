"""One watchdog per server: advisory locks, gone with the process that holds them."""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hairmesh.watch.target import Place

MODE = 0o644
"""Whoever made it, all others can open it to lock it."""


class LockHeldError(Exception):
    """Another watchdog acts on this server."""


class LockError(Exception):
    """There can be no lock; the message says why."""


def lock_dir() -> Path:
    """Where locks lie. Shared by all users first: a service and a person must find the same one."""
    places = (Path("/run/lock"), Path(os.environ.get("XDG_RUNTIME_DIR") or "/nowhere"))
    return next((place for place in places if os.access(place, os.W_OK | os.X_OK)), Path(tempfile.gettempdir()))


def addresses(host: str) -> list[str]:
    """All of `host`, sorted, each written in one way: whatever means this machine is 127.0.0.1.

    The name itself when it has none.
    """
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return [host]
    return sorted({_plain(address) for address in found})


def _plain(text: str) -> str:
    address = ipaddress.ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    here = address.is_unspecified or address == ipaddress.IPv6Address("::1")
    return "127.0.0.1" if here else str(address)


def lock_path(what: str) -> Path:
    """The lock of `what`: kind, address and port in one."""
    return lock_dir() / f"hairmesh-watch-{hashlib.sha256(what.encode()).hexdigest()[:20]}.lock"


@contextmanager
def only_one(place: Place) -> Iterator[None]:
    """Hold the locks of all addresses of `place`.

    Raises `LockHeldError` when another process does, `LockError` when there can be none.
    """
    with ExitStack() as held:
        for address in addresses(place.host):
            held.enter_context(_lock(f"{place.kind} {address}:{place.port}"))
        yield


@contextmanager
def _lock(what: str) -> Iterator[None]:
    """The file stays behind: removing it would let two processes hold two files of one name."""
    path = lock_path(what)
    try:
        descriptor = _open(path)
    except OSError as error:
        raise LockError(f"no lock {path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LockHeldError(f"another watchdog acts on {what} (lock {path})") from None
    except OSError as error:
        os.close(descriptor)
        raise LockError(f"no lock {path}: {error.strerror}") from None
    try:
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    with suppress(FileExistsError):
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_NOFOLLOW, MODE)
        try:
            os.fchmod(made, MODE)  # whatever the umask
        finally:
            os.close(made)
    # Read only: another user's file can be locked, though not written.
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
