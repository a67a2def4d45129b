"""Fairness on the event loop: work on bodies, a few pieces of it in each round of the loop, first come first served.

A piece is copied or parsed in less than a millisecond; what takes longer counts as several. Two hundred of them in one
round, as when everybody uploads at once, would keep probes and everybody else waiting for a tenth of a second and more.
"""

from __future__ import annotations

import asyncio
from collections import deque

PER_ROUND = 8


class Turns:
    """For one event loop."""

    def __init__(self) -> None:
        self._left = PER_ROUND
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._round_is_open = False

    async def take(self, pieces: int = 1) -> None:
        """Return in a round of the loop that has room for one piece more. Costs 1 µs where this one has.

        `pieces` that are one cannot be divided: they come whole, and are the last of their round where they fill it.
        """
        loop = asyncio.get_running_loop()
        if not self._round_is_open:
            self._round_is_open = True
            loop.call_soon(self._next_round)
        if self._left > 0 and not self._waiting:
            self._left -= pieces
            return
        turn = loop.create_future()
        self._waiting.append((turn, pieces))
        await turn

    def _next_round(self) -> None:
        self._left = PER_ROUND
        while self._waiting and self._left > 0:
            turn, pieces = self._waiting.popleft()
            if not turn.done():  # whoever waited for it was cancelled
                turn.set_result(None)
                self._left -= pieces
        self._round_is_open = self._left < PER_ROUND
        if self._round_is_open:
            asyncio.get_running_loop().call_soon(self._next_round)
