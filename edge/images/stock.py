"""What a store holds: counted as pictures come and go, and counted anew by every sweep.

A sweep looks at every picture there is. It runs in a thread of its own that pauses every few dozen entries, so that the
event loop never waits for it: without the pauses it would hold the interpreter for 5 ms at a time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from edge.images.retention import Census, Entry, Retention, Why
from edge.images.store import StoreError, StoreFigures, StoreFullError
from edge.threads import Threads

ROOM_TIMEOUT_S = 5.0
"""How long a picture waits for room to be made; that goes on all the same."""
NO_ROOM_S = 30.0
"""When none could be made, that is not tried again for so long: what is there is too young to go."""
_BATCH = 500
"""How many entries are removed together."""

log = structlog.get_logger()


class Shelf(Protocol):
    """Where the pictures are. Its methods are called in the sweeping thread; they raise `OSError` or `StoreError`."""

    def walk(self) -> Iterator[Entry]:
        """Every entry of ours, in any order, with pauses."""

    def discard(self, names: Sequence[str]) -> None:
        """Remove entries; those that are gone are no error."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found and did."""

    bytes: int
    """Left."""
    count: int
    """Pictures left."""
    removed: Counter[Why]
    """Pictures that went."""


def sweep(shelf: Shelf, retention: Retention, now_s: float, wanted_bytes: int, written: Collection[str]) -> Swept:
    """Remove what has to go, and make room for `wanted_bytes` if there is need. Entries that are being `written`, and
    those made after `now_s`, are not counted.
    """
    removed: Counter[Why] = Counter()
    census = Census(retention, now_s, written)
    _discard(shelf, census.look, removed)
    left_bytes, left_count = census.bytes, census.count
    if clearance := census.clearance(wanted_bytes):
        left_bytes -= _discard(shelf, clearance.look, removed)
        left_count -= removed[Why.ROOM]
    return Swept(left_bytes, left_count, removed)


def _discard(shelf: Shelf, look: Callable[[Entry], Why | None], removed: Counter[Why]) -> int:
    """Remove what `look` says and count the pictures among it; their bytes."""
    names: list[str] = []
    gone_bytes = 0
    for entry in shelf.walk():
        if (why := look(entry)) is None:
            continue
        names.append(entry.name)
        if entry.picture:
            removed[why] += 1
            gone_bytes += entry.bytes
        if len(names) == _BATCH:
            shelf.discard(names)
            names.clear()
    shelf.discard(names)
    return gone_bytes


class Stock:
    """The count of one store. `add` and `drop` may be called from any thread.

    `written` tells what is being written at this moment, by name on the shelf, and its bytes.
    """

    def __init__(self, shelf: Shelf, retention: Retention, written: Callable[[], Mapping[str, int]]) -> None:
        self._shelf = shelf
        self._retention = retention
        self._written = written
        self._lock = threading.Lock()
        self._bytes = 0
        self._count = 0
        self._since_bytes = 0
        self._since_count = 0
        """What the running sweep does not count: what was being written when it began, and what came and went since."""
        self._removed: Counter[Why] = Counter()
        self._removed_by_request = 0
        self._failures = 0
        self._thread = Threads(1, "sweep")
        self._sweeping: asyncio.Task[None] | None = None
        self._wanted_bytes = 0
        """For which the next sweep makes room."""
        self._no_room_until_s = 0.0
        """On the monotonic clock."""
        self._nearly_full = asyncio.Event()

    @property
    def bytes(self) -> int:
        """Of all pictures."""
        return self._bytes

    def add(self, size: int) -> None:
        """A picture came."""
        self._change(1, size)
        if self._retention.nearly_full(self._bytes):
            self._nearly_full.set()

    def drop(self, count: int, size: int) -> None:
        """Pictures went, `size` bytes together."""
        self._change(-count, -size)

    def _change(self, count: int, size: int) -> None:
        with self._lock:
            self._count += count
            self._bytes += size
            self._since_count += count
            self._since_bytes += size

    def failed(self, count: int) -> None:
        """So many pictures could not be stored."""
        with self._lock:
            self._failures += count

    def removed_by_request(self, count: int) -> None:
        """Somebody had so many removed; they have been dropped already."""
        self._removed_by_request += count

    def fits(self, more_bytes: int) -> bool:
        """Whether there is room for so much more."""
        return self._retention.fits(self._bytes, more_bytes)

    async def make_room(self, more_bytes: int) -> None:
        """Have the oldest go where there is no room for so much more; raises `StoreFullError` where they may not."""
        if self.fits(more_bytes):
            return
        if more_bytes <= self._retention.max_bytes and time.monotonic() >= self._no_room_until_s:
            self._wanted_bytes = max(self._wanted_bytes, more_bytes)
            await asyncio.wait({self._start()}, timeout=ROOM_TIMEOUT_S)
        if not self.fits(more_bytes):
            raise StoreFullError("pictures take all of static.max_bytes, and none may go yet")

    async def nearly_full(self) -> None:
        """Wait until room has to be made, and can be."""
        await self._nearly_full.wait()
        await asyncio.sleep(self._no_room_until_s - time.monotonic())

    async def sweep(self) -> None:
        """Remove what has to go and count what is left; one that is under way is joined."""
        await asyncio.shield(self._start())

    def _start(self) -> asyncio.Task[None]:
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.create_task(self._sweep(), name="sweep")
        return self._sweeping

    async def _sweep(self) -> None:
        with self._lock:
            written = self._written()
            self._since_bytes, self._since_count = sum(written.values()), len(written)
        wanted_bytes, self._wanted_bytes = self._wanted_bytes, 0
        self._nearly_full.clear()
        work = partial(sweep, self._shelf, self._retention, time.time(), wanted_bytes, written)
        try:
            swept = await self._thread.run(work, timeout_s=None)
        except (OSError, StoreError) as error:
            log.error("pictures_not_swept", problem=getattr(error, "strerror", None) or str(error))  # noqa: TRY400
            return
        with self._lock:
            self._bytes = swept.bytes + self._since_bytes
            self._count = swept.count + self._since_count
        self._removed += swept.removed
        if self._retention.nearly_full(self._bytes) or not self.fits(wanted_bytes):
            self._no_room_until_s = time.monotonic() + NO_ROOM_S
            self._nearly_full.set()
        if old := swept.removed[Why.OLD]:
            log.info("old_pictures_removed", count=old, bytes_left=swept.bytes)
        if for_room := swept.removed[Why.ROOM]:
            log.info("pictures_removed_for_room", count=for_room, bytes_left=swept.bytes)

    def figures(self) -> StoreFigures:
        """How the store is doing."""
        written = self._written()
        return StoreFigures(
            count=self._count,
            bytes=self._bytes,
            max_bytes=self._retention.max_bytes,
            waiting=len(written),
            waiting_bytes=sum(written.values()),
            failures=self._failures,
            removed_old=self._removed[Why.OLD],
            removed_for_room=self._removed[Why.ROOM],
            removed_by_request=self._removed_by_request,
        )

    def close(self) -> None:
        """Let the thread end; one that hangs, or a sweep under way, is not waited for."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._thread.close()
