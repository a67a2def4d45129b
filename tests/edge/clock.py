"""The time of a test's event loop, which jumps when told to."""

from __future__ import annotations

import asyncio


class Clock:
    """A loop's clock, which goes on by itself as well.

    So limits are tried out as they are: no slow machine comes near them, and no test waits for them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        real, self._ahead_s = loop.time, 0.0
        loop.time = lambda: real() + self._ahead_s  # type: ignore[method-assign]

    async def forward(self, seconds: float) -> None:
        """So much later: what was due by then has been done."""
        self._ahead_s += seconds
        for _ in range(2):  # what is due is done behind what is ready, which this is
            await asyncio.sleep(0)
