"""Wakes those who watch this worker when something changed. Belongs to the event loop."""

from __future__ import annotations

import asyncio


class News:
    """A counter of changes, and a way to wait for the next one."""

    def __init__(self) -> None:
        self._version = 0
        self._event = asyncio.Event()
        self._closed = False

    @property
    def version(self) -> int:
        """Changes so far."""
        return self._version

    @property
    def closed(self) -> bool:
        """Whether the worker ends: watchers tell the last state and leave."""
        return self._closed

    def touch(self) -> None:
        """Something changed."""
        self._version += 1
        self._event.set()
        self._event = asyncio.Event()

    def close(self) -> None:
        """The last change."""
        self._closed = True
        self.touch()

    async def newer_than(self, version: int) -> None:
        """Until there was a change after `version`."""
        while self._version <= version and not self._closed:
            await self._event.wait()
