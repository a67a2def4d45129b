"""Fairness on the event loop: work on bodies, a few pieces of it in each round of the loop, first come first served.

A piece is copied or parsed in less than a millisecond. Two hundred of them in one round, as when everybody uploads at
once, would keep probes and everybody else waiting for a tenth of a second and more.
"""

from __future__ import annotations

import asyncio
from collections import deque

PER_ROUND = 8


class Turns:
    """For one event loop."""

    def __init__(self) -> None:
        self._left = PER_ROUND
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._round_is_open = False

    async def take(self) -> None:
        """Return in a round of the loop that has room for one more piece. Costs 1 µs where this one has."""
        loop = asyncio.get_running_loop()
        if not self._round_is_open:
            self._round_is_open = True
            loop.call_soon(self._next_round)
        if self._left and not self._waiting:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self) -> None:
        self._left = PER_ROUND
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # whoever waited for it was cancelled
                turn.set_result(None)
                self._left -= 1
        self._round_is_open = self._left < PER_ROUND
        if self._round_is_open:
            asyncio.get_running_loop().call_soon(self._next_round)
