"""Tells that this process stood still: suspended, starved, or its event loop blocked."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from edge.pool.config import SLEPT_S

BEAT_S = 0.5
"""How often it beats, in s: a standstill is known that much too short at most."""


class Heart:
    """Beats on the running event loop. `woke` takes the moment, and for how long the process stood still, in s."""

    def __init__(self, woke: Callable[[float, float], None]) -> None:
        self._woke = woke
        self._beat_s = math.inf
        """When it last beat."""
        self._timer: asyncio.TimerHandle | None = None

    def beat(self) -> None:
        """From now on."""
        now_s = time.monotonic()
        self.look(now_s)
        self._beat_s = now_s
        self._timer = asyncio.get_running_loop().call_later(BEAT_S, self.beat)

    def look(self, now_s: float) -> None:
        """Before anything that is heard is believed: sockets may be read before timers ring."""
        slept_s = now_s - self._beat_s - BEAT_S
        if slept_s > SLEPT_S:
            self._beat_s = now_s
            self._woke(now_s, slept_s)

    def stop(self) -> None:
        """For good."""
        if self._timer is not None:
            self._timer.cancel()
