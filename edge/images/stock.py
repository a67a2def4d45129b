"""What a store holds: counted as pictures come and go, and counted anew by every sweep."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial

import structlog

from edge.images.retention import Retention, Why
from edge.images.store import RemovedError, StoreError, StoreFigures, StoreFullError, TooLargeError
from edge.images.sweep import Order, Swept
from edge.threads import Threads

ROOM_TIMEOUT_S = 5.0
"""How long a picture waits for room to be made; that goes on all the same."""
NO_ROOM_S = 30.0
"""When none could be made, that is not tried again for so long: what is there is too young to go, or cannot be seen."""
BETWEEN_S = 1.0
"""From a sweep to the next that nobody waits for."""
NO_ROOM = "pictures take all of static.max_bytes, and none may go yet"
log = structlog.get_logger()


class Stock:
    """The count of one store. `add` and `drop` may be called from any thread.

    `sweep` does an order, in a thread of its own; it raises `OSError` or `StoreError`. `written` tells what is being
    written at this moment, by name on the shelf, and its bytes.
    """

    def __init__(
        self, sweep: Callable[[Order], Swept], retention: Retention, written: Callable[[], Mapping[str, int]]
    ) -> None:
        self._do = sweep
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
        """On the monotonic clock; so is the next."""
        self._swept_s = -math.inf
        """When the last one ended."""
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

    @contextmanager
    def storing(self, count: int) -> Iterator[None]:
        """So many pictures are being stored; where that fails they have failed, unless nobody wants them any more."""
        try:
            yield
        except RemovedError:
            raise
        except StoreError:
            self.failed(count)
            raise

    def removed_by_request(self, count: int) -> None:
        """Somebody had so many removed; they have been dropped already."""
        self._removed_by_request += count

    def fits(self, more_bytes: int) -> bool:
        """Whether there is room for so much more."""
        return self._retention.fits(self._bytes, more_bytes)

    async def make_room(self, more_bytes: int) -> None:
        """Have the oldest go where there is no room for so much more; raises `StoreFullError` where they may not,
        `TooLargeError` where all of them were not enough.
        """
        if more_bytes > self._retention.max_bytes:
            raise TooLargeError(more_bytes, self._retention.max_bytes, "static.max_bytes")
        with suppress(TimeoutError):
            async with asyncio.timeout(ROOM_TIMEOUT_S):
                for _ in range(2):  # one that is under way knows nothing of this wish, nor of what came since it began
                    if not self._may_make_room(more_bytes):
                        break
                    self._wanted_bytes = max(self._wanted_bytes, more_bytes)
                    await asyncio.wait({self._start()})
        if not self.fits(more_bytes):
            raise StoreFullError(NO_ROOM)

    def _may_make_room(self, more_bytes: int) -> bool:
        """Whether there is need, and any prospect."""
        return time.monotonic() >= self._no_room_until_s and not self.fits(more_bytes)

    async def nearly_full(self) -> None:
        """Wait until room has to be made, and can be."""
        await self._nearly_full.wait()
        await asyncio.sleep(max(self._no_room_until_s, self._swept_s + BETWEEN_S) - time.monotonic())

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
        work = partial(self._do, Order(self._retention, time.time(), wanted_bytes, written))
        began_s = time.monotonic()
        try:
            swept = await self._thread.run(work, timeout_s=None)
        except (OSError, StoreError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            log.error("pictures_not_swept", problem=problem, count=None)  # noqa: TRY400  (no fault of ours)
            self._ended(no_room=True)
            return
        with self._lock:
            self._bytes = swept.bytes + self._since_bytes
            self._count = swept.count + self._since_count
        self._removed += swept.removed
        retention = self._retention
        # Of what this sweep has seen: what has come since is for the next.
        self._ended(no_room=retention.nearly_full(swept.bytes) or not retention.fits(swept.bytes, wanted_bytes))
        if swept.stayed:
            log.error("pictures_not_swept", problem=swept.problem, count=swept.stayed)
        facts = {"bytes_left": swept.bytes, "duration_s": round(time.monotonic() - began_s, 3)}
        if old := swept.removed[Why.OLD]:
            log.info("old_pictures_removed", count=old, **facts)
        if for_room := swept.removed[Why.ROOM]:
            log.info("pictures_removed_for_room", count=for_room, **facts)

    def _ended(self, *, no_room: bool) -> None:
        """A sweep is over; `no_room`: another one at once would find no more to remove."""
        self._swept_s = time.monotonic()
        if no_room:
            self._no_room_until_s = self._swept_s + NO_ROOM_S
        if self._retention.nearly_full(self._bytes):
            self._nearly_full.set()

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
