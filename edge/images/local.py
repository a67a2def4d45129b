"""Pictures as files in one folder, for one edge.

A picture is accepted when there is room for it: from that moment it is served, from memory until its file is complete.
Its write goes on meanwhile in one of a few threads, so that no answer waits for a good disk and a hanging one hangs
nothing but those threads. Once a write fails or too much is waiting, each picture has to wait for its own write again,
and fails with it; what failed after it had been promised is kept and tried again. An orderly stop writes what is
waiting; a crash loses the pictures of its last moments.

Files are written under a hidden name and renamed when complete: a reader sees a whole picture or none.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from edge.images.store import ID, StoreError, StoreFullError, new_id
from edge.threads import Threads

THREADS = 8
MAX_WAITING_BYTES = 32 * 1024 * 1024
"""Pictures that may be served from memory while they are being written."""
IO_TIMEOUT_S = 10.0
"""After this a read or a write that somebody waits for counts as failed; its thread may go on hanging."""
LEFTOVER_AGE_S = 3600.0
"""Half-written files of a process that died are removed when older than this."""
_NOT_TRIED = "not tried yet"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OURS = re.compile(rf"{ID.pattern}\.png|\.{ID.pattern}\.tmp")

log = structlog.get_logger()
T = TypeVar("T")


class LocalStore:
    """An `ImageStore` in `folder`, at most `max_bytes` large; pictures older than `max_age_s` go with a sweep."""

    def __init__(self, folder: Path, *, max_bytes: int, max_age_s: float) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._used_bytes = 0
        self._free_bytes = 0
        """On the disk, at the last look."""
        self._refused_bytes = 0
        """What the last picture would have needed, if there was no room for it: until there is, the store is full."""
        self._trouble = _NOT_TRIED
        """Why the last write failed; empty when it did not."""
        self._waiting: dict[str, bytes] = {}
        """Accepted and not on the disk yet. Who is taken out of it is not wanted any more."""
        self._failed: set[str] = set()
        """Those of `_waiting` whose write failed after they had been promised."""
        self._threads = Threads(THREADS, "pictures")

    @property
    def writable(self) -> bool:
        """See `ImageStore.writable`."""
        needed_bytes = max(1, self._refused_bytes)
        has_room = self._used_bytes + needed_bytes <= self._max_bytes and needed_bytes <= self._free_bytes
        return has_room and not self._trouble

    @property
    def used_bytes(self) -> int:
        """Bytes of all pictures."""
        return self._used_bytes

    async def put(self, picture_id: str, data: bytes) -> None:
        """See `ImageStore.put`."""
        try:
            await self._put(picture_id, data)
        except StoreFullError:
            self._refused_bytes = len(data)
            raise
        self._refused_bytes = 0

    async def _put(self, picture_id: str, data: bytes) -> None:
        waiting_bytes = self._waiting_bytes() + len(data)
        if self._used_bytes + len(data) > self._max_bytes:
            raise StoreFullError("pictures take all of static.max_bytes")
        if not self._trouble and waiting_bytes > self._free_bytes:
            raise StoreFullError("the disk is full")
        self._used_bytes += len(data)
        self._waiting[picture_id] = data
        if not self._trouble and waiting_bytes <= MAX_WAITING_BYTES:
            self._threads.post(partial(self._write_promised, picture_id, data))
            return
        try:
            await self._run(partial(self._write, picture_id, data))
        except BaseException:
            self._used_bytes -= len(data)
            self._waiting.pop(picture_id, None)
            raise

    async def get(self, picture_id: str) -> bytes | None:
        """See `ImageStore.get`."""
        waiting = self._waiting.get(picture_id)
        if waiting is not None or ID.fullmatch(picture_id) is None:
            return waiting
        return await self._run(partial(self._read, picture_id))

    async def remove(self, picture_ids: Iterable[str]) -> None:
        """See `ImageStore.remove`."""
        # All of them first: a write that is under way then removes what it has made, even where the disk hangs now.
        waiting = {picture_id: self._waiting.pop(picture_id, None) for picture_id in picture_ids}
        for picture_id, data in waiting.items():
            self._failed.discard(picture_id)
            removed_bytes = await self._run(partial(_unlink, self._path(picture_id)))
            self._used_bytes -= removed_bytes if data is None else len(data)

    async def probe(self) -> None:
        """See whether the folder can be written, make it where it is missing, and try again what failed."""
        with suppress(StoreError):  # noted, and logged when it is news
            await self._run(self._write_probe)
            for picture_id in list(self._failed):
                if (data := self._waiting.get(picture_id)) is not None:
                    await self._run(partial(self._write, picture_id, data))
                self._failed.discard(picture_id)

    async def sweep(self) -> None:
        """Remove what is too old and count what is left. Nothing but our own files is touched."""
        with suppress(StoreError):
            removed, left_bytes = await self._run(partial(self._remove_old, time.time()))
            self._used_bytes = left_bytes + self._waiting_bytes()
            if removed:
                log.info("old_pictures_removed", count=removed, bytes_left=left_bytes)

    async def close(self) -> None:
        """Write what is waiting, then let the threads end; one that hangs is not waited for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(IO_TIMEOUT_S):
                while set(self._waiting) - self._failed:  # noqa: ASYNC110  (threads work it off and tell nobody)
                    await asyncio.sleep(0.01)
        if self._waiting:
            log.error("pictures_lost", count=len(self._waiting), problem=self._trouble)
        self._threads.close()

    async def _run(self, work: Callable[[], T]) -> T:
        """Do file work in a thread; raises `StoreError` for what the system refuses or takes too long for."""
        try:
            result = await self._threads.run(work, timeout_s=IO_TIMEOUT_S)
        except TimeoutError:
            error = StoreError(f"the disk did not answer within {IO_TIMEOUT_S:.0f} s")
        except OSError as refused:
            kind = StoreFullError if refused.errno in _FULL else StoreError
            error = kind(refused.strerror or type(refused).__name__)
        else:
            return result
        self._note(str(error))
        raise error

    def _note(self, trouble: str) -> None:
        """Remember, and log when it is news, whether pictures can be stored."""
        before = "" if self._trouble == _NOT_TRIED else self._trouble
        if trouble and not before:
            log.error("pictures_not_stored", problem=trouble)
        elif before and not trouble:
            log.info("pictures_stored_again")
        self._trouble = trouble

    def _waiting_bytes(self) -> int:
        return sum(map(len, list(self._waiting.values())))  # a copy: threads take entries out

    def _path(self, picture_id: str) -> Path:
        return self._folder / f"{picture_id}.png"

    # In threads

    def _write_promised(self, picture_id: str, data: bytes) -> None:
        try:
            self._write(picture_id, data)
        except OSError as error:
            self._failed.add(picture_id)
            self._note(error.strerror or type(error).__name__)

    def _write(self, picture_id: str, data: bytes) -> None:
        hidden, path = self._folder / f".{picture_id}.tmp", self._path(picture_id)
        try:
            descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                facts = os.fstatvfs(descriptor)
            finally:
                os.close(descriptor)
            hidden.rename(path)
        except OSError:
            _unlink(hidden)
            raise
        self._free_bytes = facts.f_bavail * facts.f_frsize
        self._note("")
        if self._waiting.pop(picture_id, None) is None:
            _unlink(path)  # not wanted any more

    def _read(self, picture_id: str) -> bytes | None:
        try:
            return self._path(picture_id).read_bytes()
        except FileNotFoundError:
            return None

    def _write_probe(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(new_id(), b"probe")

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
