"""Pictures as files in one folder.

Written under a hidden name and renamed when complete: a reader sees a whole picture or none. All file work happens in
a few threads of its own, so that a hanging disk hangs those and nothing else.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import structlog

from edge.images.store import ID, StoreError, StoreFullError, new_id

THREADS = 8
IO_TIMEOUT_S = 10.0
"""After this a read or a write counts as failed; its thread may go on hanging."""
LEFTOVER_AGE_S = 3600.0
"""Half-written files of a process that died are removed when older than this."""
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
        self._works = False
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="pictures")

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
        job = self._threads.submit(self._write, picture_id, data)
        try:
            await _result(job)
        except BaseException as error:
            self._used_bytes -= len(data)
            if not job.done():  # it still writes what nobody will ask for
                job.add_done_callback(lambda _job: _unlink(self._path(picture_id)))
            if isinstance(error, StoreError):
                self._note(str(error))
            raise

    async def get(self, picture_id: str) -> bytes | None:
        """See `ImageStore.get`."""
        if ID.fullmatch(picture_id) is None:
            return None
        return await _result(self._threads.submit(self._read, picture_id))

    async def remove(self, picture_ids: Iterable[str]) -> None:
        """See `ImageStore.remove`."""
        paths = [self._path(picture_id) for picture_id in picture_ids]
        self._used_bytes -= await _result(self._threads.submit(lambda: sum(map(_unlink, paths))))

    async def probe(self) -> None:
        """See whether the folder can be written; makes it where it is missing."""
        try:
            await _result(self._threads.submit(self._write_probe))
        except StoreError as error:
            self._note(str(error))
        else:
            self._note("")

    async def sweep(self) -> None:
        """Remove what is too old and count what is left. Nothing but our own files is touched."""
        try:
            removed, self._used_bytes = await _result(self._threads.submit(self._remove_old, time.time()))
        except StoreError as error:
            self._note(str(error))
            return
        if removed:
            log.info("old pictures removed", pictures=removed, bytes_left=self._used_bytes)

    def close(self) -> None:
        """Let the threads end; one that hangs is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _note(self, trouble: str) -> None:
        """Remember, and log when it changes, whether pictures can be stored."""
        if self._works and trouble:
            log.error("pictures cannot be stored", error=trouble)
        elif not self._works and not trouble:
            log.info("pictures can be stored")
        self._works = not trouble

    def _path(self, picture_id: str) -> Path:
        return self._folder / f"{picture_id}.png"

    def _write(self, picture_id: str, data: bytes) -> None:
        hidden = f"{self._folder}/.{picture_id}.tmp"
        try:
            descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            finally:
                os.close(descriptor)
            Path(hidden).rename(self._path(picture_id))
        except OSError:
            _unlink(Path(hidden))
            raise

    def _read(self, picture_id: str) -> bytes | None:
        try:
            return self._path(picture_id).read_bytes()
        except FileNotFoundError:
            return None

    def _write_probe(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        picture_id = new_id()
        self._write(picture_id, b"probe")
        _unlink(self._path(picture_id))

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


async def _result(job: Future[T]) -> T:
    """What file work in a thread returned; raises `StoreError` for what the system refuses or takes too long for."""
    try:
        async with asyncio.timeout(IO_TIMEOUT_S):
            return await asyncio.wrap_future(job)
    except TimeoutError:
        raise StoreError(f"the disk did not answer within {IO_TIMEOUT_S:.0f} s") from None
    except OSError as error:
        kind = StoreFullError if error.errno in _FULL else StoreError
        raise kind(error.strerror or type(error).__name__) from error


def _unlink(path: Path) -> int:
    """Remove a file if it is there; returns the bytes it had."""
    try:
        size = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    return size
