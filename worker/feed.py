"""From the compute thread to a stream: every result in order, and of progress the newest.

The thread never waits for who reads. What waits to be read is bounded: each result, of which a call has a few, and
between two of them one position. How much waits in all calls together is `worker.backlog`'s business.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from worker.progress import Position

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Moved:
    """How far a call is."""

    position: Position
    results: int
    """Results that are finished."""


class Feed(Generic[T]):
    """Filled by one thread, read once on the event loop on which it was made."""

    def __init__(self, gap_s: float, on_result: Callable[[T], None]) -> None:
        """`on_result` is told each result on the loop, whether or not somebody reads."""
        self._gap_s = gap_s
        self._on_result = on_result
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: deque[Moved | T] = deque()
        self._results = 0
        self._closed = False
        self._news = asyncio.Event()

    def move(self, position: Position) -> None:
        """How far the call is; takes the place of a position that nobody has read yet."""
        with self._lock:
            unread = bool(self._waiting) and isinstance(self._waiting[-1], Moved)
            if unread:
                self._waiting.pop()
            self._waiting.append(Moved(position, self._results))
        if not unread:
            self._on_loop(self._news.set)

    def emit(self, result: T) -> None:
        """One result."""
        with self._lock:
            self._waiting.append(result)
            self._results += 1
        self._on_loop(self._on_result, result)
        self._on_loop(self._news.set)

    def close(self) -> None:
        """Nothing comes any more. Called on the event loop."""
        self._closed = True
        self._news.set()

    async def read(self) -> AsyncIterator[Moved | T]:
        """What was put in, until it is closed and empty; two positions in a row are `gap_s` apart at least."""
        next_move_s = self._loop.time()
        while True:
            self._news.clear()
            with self._lock:
                count, head = len(self._waiting), next(iter(self._waiting), None)
            early_s = next_move_s - self._loop.time()
            if head is None:
                if self._closed:
                    return
                await self._news.wait()
            elif isinstance(head, Moved) and count == 1 and early_s > 0 and not self._closed:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), early_s)
            else:
                with self._lock:
                    event = self._waiting.popleft()
                if isinstance(event, Moved):
                    next_move_s = self._loop.time() + self._gap_s
                yield event

    def _on_loop(self, call: Callable[..., None], *arguments: T) -> None:
        with suppress(RuntimeError):  # the loop was closed before a thread that nobody waited for ended
            self._loop.call_soon_threadsafe(call, *arguments)
