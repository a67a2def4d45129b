"""Whether a store works: by its last write, and by the room for what it refused; said in the log when that is news."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import structlog

from edge.images.store import StoreFullError, TooLargeError

_NOT_TRIED = "not tried yet"

log = structlog.get_logger()


class Condition:
    """Told of every write and every refusal, from any thread.

    `no_room` says from memory why there is none for so many bytes, empty where there is.
    """

    def __init__(self, no_room: Callable[[int], str]) -> None:
        self._no_room = no_room
        self._refused_bytes = 0
        """What the last answer needed, if there was no room for it: until there is, the store is full."""
        self._trouble = _NOT_TRIED
        self._told = False
        """Whether the last thing in the log is that pictures cannot be stored."""
        self._lock = threading.Lock()

    @property
    def trouble(self) -> str:
        """Why the last write failed; empty when it did not."""
        return self._trouble

    @property
    def good(self) -> bool:
        """Whether the last write succeeded."""
        return not self._trouble

    @property
    def writable(self) -> bool:
        """Whether it did, and there is room."""
        return not self._problem()

    def worked(self) -> None:
        """A write succeeded."""
        self._trouble = ""

    def failed(self, trouble: str) -> None:
        """A write did not."""
        self._trouble = trouble
        self._tell()

    @contextmanager
    def storing(self, size: int) -> Iterator[None]:
        """An answer's pictures are being stored, `size` bytes together: what comes of it tells whether there is room.

        Of one that the empty store could not take either, it tells nothing.
        """
        try:
            yield
        except TooLargeError as error:
            facts = {"problem": str(error), "bytes": error.bytes, "max_bytes": error.max_bytes}
            log.error("pictures_too_large", **facts)  # noqa: TRY400  (no trace: it is no fault of ours)
            raise
        except StoreFullError:
            self._refused_bytes = size
            self._tell()
            raise
        self._refused_bytes = 0

    async def make_room(self, by: Callable[[int], Awaitable[None]]) -> None:
        """Have it made for what was refused; raises what that raises.

        It is not left to the next answer, which may never come where `/readyz` keeps it away.
        """
        if self._refused_bytes:
            await by(self._refused_bytes)
            if not self._no_room(self._refused_bytes):
                self._refused_bytes = 0

    def look(self) -> None:
        """Log what is news, good or bad.

        The good only here, where somebody looks from time to time: while a small picture still finds room and a large
        one does not, the log would have two lines for every pair of them.
        """
        self._tell()
        with self._lock:
            if self._told and self.writable:
                self._told = False
                log.info("pictures_stored_again")

    def _tell(self) -> None:
        with self._lock:
            if not self._told and (problem := self._problem()):
                self._told = True
                log.error("pictures_not_stored", problem=problem)

    def _problem(self) -> str:
        return self._trouble or self._no_room(max(1, self._refused_bytes))
