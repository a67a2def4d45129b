"""Pictures as files in one folder.

Written under a hidden name and renamed when complete: a reader sees a whole picture or none. All file work happens in
a few threads of its own, so that a hanging disk hangs those and nothing else. Making a file can cost several times what
filling it does, so empty ones are kept ready: each write makes the next one after its picture was reported stored.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog

from edge.images.store import ID, StoreError, StoreFullError, new_id
from edge.images.threads import Threads

THREADS = 8
SPARES = 2
IO_TIMEOUT_S = 10.0
"""After this a read or a write counts as failed; its thread may go on hanging."""
LEFTOVER_AGE_S = 3600.0
"""Half-written files of a process that died are removed when older than this."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OURS = re.compile(rf"{ID.pattern}\.png|\.{ID.pattern}\.tmp")

log = structlog.get_logger()
T = TypeVar("T")


@dataclass(slots=True)
class _Picture:
    """One on its way to the disk."""

    path: Path
    data: bytes
    wanted: bool = True
    """False once its put was given up."""


class LocalStore:
    """An `ImageStore` in `folder`, at most `max_bytes` large; pictures older than `max_age_s` go with a sweep."""

    def __init__(self, folder: Path, *, max_bytes: int, max_age_s: float) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._used_bytes = 0
        self._works = False
        self._spares: deque[tuple[Path, int]] = deque()
        """Empty hidden files, open for writing."""
        self._threads = Threads(THREADS, "pictures")

    @property
    def writable(self) -> bool:
        """See `ImageStore.writable`."""
        return self._works and self._used_bytes < self._max_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes of all pictures."""
        return self._used_bytes

    async def put(self, picture_id: str, data: bytes) -> None:
        """See `ImageStore.put`. A put that is cancelled leaves nothing behind."""
        if self._used_bytes + len(data) > self._max_bytes:
            raise StoreFullError("pictures take all of static.max_bytes")
        self._used_bytes += len(data)
        picture = _Picture(self._path(picture_id), data)
        try:
            await self._run(lambda: self._store(picture), then=self._make_spares)
        except BaseException as error:
            self._used_bytes -= len(data)
            picture.wanted = False
            self._threads.post(lambda: _unlink(picture.path))
            if isinstance(error, StoreError):
                self._note(str(error))
            raise

    async def get(self, picture_id: str) -> bytes | None:
        """See `ImageStore.get`."""
        if ID.fullmatch(picture_id) is None:
            return None
        return await self._run(lambda: self._read(picture_id))

    async def remove(self, picture_ids: Iterable[str]) -> None:
        """See `ImageStore.remove`."""
        paths = [self._path(picture_id) for picture_id in picture_ids]
        self._used_bytes -= await self._run(lambda: sum(map(_unlink, paths)))

    async def probe(self) -> None:
        """See whether the folder can be written; makes it where it is missing."""
        try:
            await self._run(self._write_probe)
        except StoreError as error:
            self._note(str(error))
        else:
            self._note("")

    async def sweep(self) -> None:
        """Remove what is too old and count what is left. Nothing but our own files is touched."""
        try:
            removed, self._used_bytes = await self._run(lambda: self._remove_old(time.time()))
        except StoreError as error:
            self._note(str(error))
            return
        if removed:
            log.info("old pictures removed", pictures=removed, bytes_left=self._used_bytes)

    def close(self) -> None:
        """Let the threads end; one that hangs is not waited for."""
        self._threads.post(self._drop_spares)
        self._threads.close()

    async def _run(self, work: Callable[[], T], *, then: Callable[[], None] | None = None) -> T:
        """Do file work in a thread; raises `StoreError` for what the system refuses or takes too long for."""
        try:
            return await self._threads.run(work, timeout_s=IO_TIMEOUT_S, then=then)
        except TimeoutError:
            raise StoreError(f"the disk did not answer within {IO_TIMEOUT_S:.0f} s") from None
        except OSError as error:
            kind = StoreFullError if error.errno in _FULL else StoreError
            raise kind(error.strerror or type(error).__name__) from error

    def _note(self, trouble: str) -> None:
        """Remember, and log when it changes, whether pictures can be stored."""
        if self._works and trouble:
            log.error("pictures cannot be stored", error=trouble)
        elif not self._works and not trouble:
            log.info("pictures can be stored")
        self._works = not trouble

    def _path(self, picture_id: str) -> Path:
        return self._folder / f"{picture_id}.png"

    def _store(self, picture: _Picture) -> None:
        try:
            hidden, descriptor = self._spares.pop()
        except IndexError:
            hidden, descriptor = self._make_file()
        try:
            try:
                rest = memoryview(picture.data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            finally:
                os.close(descriptor)
            hidden.rename(picture.path)
        except OSError:
            _unlink(hidden)
            self._drop_spares()  # the folder may not be the one they were made in
            raise
        if not picture.wanted:
            _unlink(picture.path)

    def _make_file(self) -> tuple[Path, int]:
        hidden = self._folder / f".{new_id()}.tmp"
        return hidden, os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def _make_spares(self) -> None:
        """Get ready for the next picture. A failure is left to it: it finds no spare, tries again, and says so."""
        with suppress(OSError):
            while len(self._spares) < SPARES:
                self._spares.append(self._make_file())

    def _drop_spares(self) -> None:
        while self._spares:
            with suppress(IndexError):  # another thread was faster
                hidden, descriptor = self._spares.pop()
                os.close(descriptor)
                _unlink(hidden)

    def _read(self, picture_id: str) -> bytes | None:
        try:
            return self._path(picture_id).read_bytes()
        except FileNotFoundError:
            return None

    def _write_probe(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = _Picture(self._path(new_id()), b"probe", wanted=False)
        self._store(probe)
        self._make_spares()
        for _hidden, descriptor in list(self._spares):
            os.utime(descriptor)  # not a leftover of a dead process

    def _remove_old(self, now_s: float) -> tuple[int, int]:
        """Remove old files; returns how many, and the bytes that are left."""
        removed = left_bytes = 0
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if _OURS.fullmatch(entry.name) is None:
                    continue
                limit_s = LEFTOVER_AGE_S if entry.name.startswith(".") else self._max_age_s
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # renamed or removed meanwhile
                    continue
                if now_s - facts.st_mtime > limit_s:
                    removed += 1
                    _unlink(Path(entry.path))
                else:
                    left_bytes += facts.st_size
        return removed, left_bytes


def _unlink(path: Path) -> int:
    """Remove a file if it is there; returns the bytes it had."""
    try:
        size = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    return size
