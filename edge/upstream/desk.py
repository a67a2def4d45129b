"""Where the pool's word to one call arrives."""

from __future__ import annotations

import asyncio

from edge.pool import events as ev

Word = ev.Start | ev.Finish | ev.Fail


class Desk:
    """One call's. The pool's word may be there before anybody waits for it, and then costs no waiting."""

    __slots__ = ("_future", "_word", "open")

    def __init__(self) -> None:
        self.open = True
        """Whether the pool still knows the call."""
        self._word: Word | None = None
        self._future: asyncio.Future[None] | None = None

    def put(self, word: Word) -> None:
        """The pool has decided."""
        self._word = word
        self.open = type(word) is ev.Start
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def take(self) -> Word:
        """Its next word, as soon as there is one."""
        if self._word is None:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
            self._future = None
        word, self._word = self._word, None
        assert word is not None  # noqa: S101  (the future says so)
        return word
