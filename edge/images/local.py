"""Pictures as files in one folder, of one edge alone or shared with others.

Alone, a picture is accepted when there is room for it: from that moment it is served, from memory until its file is
complete. Its write goes on meanwhile in one of a few threads, so that no answer waits for a good disk and a hanging one
hangs nothing but those threads. Once a write fails or too much is waiting, each picture has to wait for its own write
again, and fails with it; what failed after it had been promised is kept and tried again. An orderly stop writes what is
waiting; a crash loses the pictures of its last moments.

Where other edges share the folder an answer always waits for its pictures: they may be asked for next.
"""

from __future__ import annotations

import asyncio
import errno
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import structlog

from edge.images.apart import sweep_folder
from edge.images.condition import Condition
from edge.images.folder import Disk, Folder, file_name
from edge.images.removals import Removals
from edge.images.retention import Retention
from edge.images.stock import NO_ROOM, Stock
from edge.images.store import (
    CLOCKS_S,
    ID,
    TAG_DIGITS,
    RemovedError,
    StoreError,
    StoreFigures,
    StoreFullError,
    TooLargeError,
    all_done,
    is_removed,
    tag_of,
    unix_s,
)
from edge.threads import Threads

THREADS = 8
MAX_WAITING_BYTES = 32 * 1024 * 1024
"""Pictures that may be served from memory while they are being written."""
IO_TIMEOUT_S = 10.0
"""After this a read or a write that somebody waits for counts as failed; its thread may go on hanging."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_DISK_FULL = "the disk is full"

log = structlog.get_logger()
T = TypeVar("T")


class _Waiting(NamedTuple):
    """A picture that was accepted and is not on the disk yet."""

    data: bytes
    began_s: float
    """Of its request, in Unix time."""


class LocalStore:
    """An `ImageStore` in `path`."""

    def __init__(self, path: Path, retention: Retention, *, shared: bool = False) -> None:
        self._folder = Folder(path)
        self._shared = shared
        self._clocks_s = CLOCKS_S if shared else 0.0
        """How far the clock of whoever removes pictures may be from ours."""
        self._disk = Disk(free_bytes=0, bytes=sys.maxsize)
        """At the last look."""
        self._condition = Condition(self._no_room)
        self._waiting: dict[str, _Waiting] = {}
        """Who is taken out of it is not wanted any more."""
        self._under_way: set[str] = set()
        """Those that a thread is writing: one that was removed meanwhile may stand on the disk for a moment, unread."""
        self._failed: set[str] = set()
        """Those of `_waiting` whose write failed after they had been promised."""
        self._removals = Removals()
        self._threads = Threads(THREADS, "pictures")
        self._stock = Stock(partial(sweep_folder, path), retention, self._written)

    @property
    def writable(self) -> bool:
        """See `ImageStore.writable`."""
        return self._condition.writable

    def _no_room(self, needed_bytes: int) -> str:
        """Why there is none for so much; empty where there is."""
        if not self._stock.fits(needed_bytes):
            return NO_ROOM
        return "" if needed_bytes <= self._disk.free_bytes else _DISK_FULL

    @property
    def figures(self) -> StoreFigures:
        """See `ImageStore.figures`."""
        return self._stock.figures()

    async def put(self, pictures: Mapping[str, bytes], began_s: float) -> None:
        """See `ImageStore.put`."""
        size = sum(map(len, pictures.values()))
        with self._condition.storing(size), self._stock.storing(len(pictures)):
            if not self._stock.fits(size):
                await self._stock.make_room(size)
            self._find_room_on_disk(size)
            late = [each for each in pictures.items() if not self._promise(*each, began_s)]
            if late:
                await all_done(self._put(*each, began_s) for each in late)

    def _find_room_on_disk(self, size: int) -> None:
        if size > self._disk.bytes:
            raise TooLargeError(size, self._disk.bytes, "the disk")
        if self._condition.good and self._waiting_bytes() + size > self._disk.free_bytes:
            raise StoreFullError(_DISK_FULL)

    def _promise(self, picture_id: str, data: bytes, began_s: float) -> bool:
        """Accept a picture that will be written; False where it has to be written first."""
        if self._shared or not self._condition.good or self._waiting_bytes() + len(data) > MAX_WAITING_BYTES:
            return False
        self._threads.post(partial(self._write_promised, picture_id, *self._accept(picture_id, data, began_s)))
        return True

    async def _put(self, picture_id: str, data: bytes, began_s: float) -> None:
        accepted = self._accept(picture_id, data, began_s)
        try:
            stands = await self._run(partial(self._write, picture_id, *accepted))
        except BaseException:
            self._forget(picture_id)
            raise
        if not stands:
            raise RemovedError

    def _accept(self, picture_id: str, data: bytes, began_s: float) -> _Waiting:
        """Have a picture be served from now on; raises `RemovedError` where it is not wanted."""
        if self._removals.concern(picture_id[:TAG_DIGITS], began_s):
            raise RemovedError
        self._stock.add(len(data))
        self._waiting[picture_id] = accepted = _Waiting(data, unix_s(began_s))
        return accepted

    async def get(self, picture_id: str) -> bytes | None:
        """See `ImageStore.get`."""
        if (waiting := self._waiting.get(picture_id)) is not None:
            return waiting.data
        if picture_id in self._under_way or ID.fullmatch(picture_id) is None:
            return None
        # Not `_run`: one that cannot be read says nothing of whether others can be stored.
        return await self._in_thread(partial(self._folder.read, picture_id))

    async def remove(self, picture_ids: Iterable[str]) -> None:
        """See `ImageStore.remove`."""
        ids = set(picture_ids)
        await self._remove(ids, partial(self._folder.remove, ids))

    async def remove_request(self, request_id: str) -> int:
        """See `ImageStore.remove_request`.

        What is there goes first, so that a full disk has room for the mark; then what came before there was one. From
        then on none is accepted here: it would be served from memory until its thread has seen the mark.
        """
        tag = tag_of(request_id)
        removed = await self._remove_tagged(tag)
        await self._run(partial(self._folder.mark_removed, tag))
        self._removals.note(tag, time.monotonic())
        removed |= await self._remove_tagged(tag)
        self._stock.removed_by_request(len(removed))
        return len(removed)

    async def _remove_tagged(self, tag: str) -> set[str]:
        ids = {picture_id for picture_id in list(self._waiting) if picture_id.startswith(tag)}
        return await self._remove(ids, partial(self._folder.remove_tagged, tag))

    async def _remove(self, ids: set[str], from_disk: Callable[[], dict[str, int]]) -> set[str]:
        """Forget those that wait, and have the others removed; all that were there."""
        # First those that wait: a write that is under way then removes what it has made, even where the disk hangs now.
        waited = {picture_id for picture_id in ids if self._forget(picture_id)}
        removed = await self._run(from_disk)
        sizes = [size for picture_id, size in removed.items() if picture_id not in waited]
        self._stock.drop(len(sizes), sum(sizes))
        return waited | removed.keys()

    def _forget(self, picture_id: str) -> bool:
        """Take a picture out of those that wait; whether it was there."""
        self._failed.discard(picture_id)
        waiting = self._waiting.pop(picture_id, None)
        if waiting is not None:
            self._stock.drop(1, len(waiting.data))
        return waiting is not None

    async def probe(self) -> None:
        """See `ImageStore.probe`; makes the folder where it is missing."""
        with suppress(StoreError):  # noted, and logged when it is news
            await self._run(self._try_out)
            for picture_id in list(self._failed):
                if (waiting := self._waiting.get(picture_id)) is not None:
                    await self._run(partial(self._write, picture_id, *waiting))
                self._failed.discard(picture_id)
            await self._condition.make_room(self._stock.make_room)
        self._condition.look()

    async def sweep(self) -> None:
        """See `ImageStore.sweep`. Nothing but our own files is touched."""
        await self._stock.sweep()

    async def nearly_full(self) -> None:
        """See `ImageStore.nearly_full`."""
        await self._stock.nearly_full()

    async def close(self) -> None:
        """Write what is waiting, then let the threads end; one that hangs is not waited for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(IO_TIMEOUT_S):
                while set(self._waiting) - self._failed:  # noqa: ASYNC110  (threads work it off and tell nobody)
                    await asyncio.sleep(0.01)
        if self._waiting:
            log.error("pictures_lost", count=len(self._waiting), problem=self._condition.trouble)
        self._threads.close()
        self._stock.close()

    async def _run(self, work: Callable[[], T]) -> T:
        """`_in_thread` of what changes something: where it fails the store does not work."""
        try:
            return await self._in_thread(work)
        except StoreError as error:
            self._condition.failed(str(error))
            raise

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Do file work in a thread; raises `StoreError` for what the system refuses or takes too long for."""
        try:
            return await self._threads.run(work, timeout_s=IO_TIMEOUT_S)
        except TimeoutError:
            raise StoreError(f"the disk did not answer within {IO_TIMEOUT_S:.0f} s") from None
        except OSError as refused:
            kind = StoreFullError if refused.errno in _FULL else StoreError
            raise kind(refused.strerror or type(refused).__name__) from None

    def _written(self) -> dict[str, int]:
        waiting = list(self._waiting.items())  # a copy: threads take entries out
        return {file_name(picture_id): len(each.data) for picture_id, each in waiting}

    def _waiting_bytes(self) -> int:
        return sum(len(waiting.data) for waiting in list(self._waiting.values()))  # a copy: threads take entries out

    # In threads

    def _write_promised(self, picture_id: str, data: bytes, began_s: float) -> None:
        try:
            self._write(picture_id, data, began_s)
        except OSError as error:
            self._failed.add(picture_id)
            self._stock.failed(1)
            self._condition.failed(error.strerror or type(error).__name__)

    def _write(self, picture_id: str, data: bytes, began_s: float) -> bool:
        """Whether it stands there: nobody has removed it meanwhile, nor its request's pictures since that began."""
        self._under_way.add(picture_id)
        try:
            self._disk = self._folder.write(picture_id, data)
            self._condition.worked()
            removed_s = self._folder.removed_s(picture_id[:TAG_DIGITS])
            wanted = not is_removed(removed_s, began_s, self._clocks_s)
            if not wanted or picture_id not in self._waiting:
                self._folder.remove([picture_id])
        finally:
            self._under_way.discard(picture_id)
        # From here on whoever removes it finds its file.
        waited = self._waiting.pop(picture_id, None) is not None
        if waited and not wanted:
            self._stock.drop(1, len(data))
        return waited and wanted

    def _try_out(self) -> None:
        self._disk = self._folder.try_out()
        self._condition.worked()
