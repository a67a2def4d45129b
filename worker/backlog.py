"""Calls whose answers are not all on their way: who they are, how much of theirs waits here, when the last one ends.

The slot is free when the thread has ended, and then the next call computes, read or not. So what callers do not take
would pile up in this process: beyond a limit no call is admitted. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio


class Waiting:
    """One call, until its RPC has ended."""

    def __init__(self) -> None:
        self.unread_bytes = 0
        """Of its answer, made and not yet taken."""


class Backlog:
    """All calls whose RPC has not ended."""

    def __init__(self) -> None:
        self._open: set[Waiting] = set()
        self._refused: set[Waiting] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def unread_bytes(self) -> int:
        """What was made for callers and not yet taken by them."""
        return sum(call.unread_bytes for call in (*self._open, *self._refused))

    def begin(self) -> Waiting:
        """A call has come."""
        call = Waiting()
        self._open.add(call)
        self._empty.clear()
        return call

    def refuse(self, call: Waiting) -> None:
        """It gets no answer. What of one is on its way is here until its RPC ends, but nobody waits for that."""
        self._open.remove(call)
        self._refused.add(call)
        self._note_empty()

    def end(self, call: Waiting) -> None:
        """Its RPC has ended: its caller has all of it, or is gone."""
        self._open.discard(call)
        self._refused.discard(call)
        self._note_empty()

    def _note_empty(self) -> None:
        if not self._open:
            self._empty.set()

    async def wait_empty(self) -> None:
        """Until no answer is on its way."""
        await self._empty.wait()
