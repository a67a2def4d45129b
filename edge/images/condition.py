"""Whether a store works: by its last write, and by the room there is; said in the log when that is news."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

_NOT_TRIED = "not tried yet"

log = structlog.get_logger()


class Condition:
    """Told of every write and every refusal, from any thread.

    `no_room` says from memory why there is no room for another picture, empty where there is.
    """

    def __init__(self, no_room: Callable[[], str]) -> None:
        self._no_room = no_room
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
        self.refused()

    def refused(self) -> None:
        """A picture was not taken: log why, unless it was told before."""
        with self._lock:
            if not self._told and (problem := self._problem()):
                self._told = True
                log.error("pictures_not_stored", problem=problem)

    def look(self) -> None:
        """Log what is news, good or bad.

        The good only here, where somebody looks from time to time: while a small picture still finds room and a large
        one does not, the log would have two lines for every pair of them.
        """
        self.refused()
        with self._lock:
            if self._told and self.writable:
                self._told = False
                log.info("pictures_stored_again")

    def _problem(self) -> str:
        return self._trouble or self._no_room()
