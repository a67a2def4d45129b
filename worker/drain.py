"""Leaving without anybody noticing: announce it, go on serving for a while, then refuse, then be empty."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum

import structlog

log = structlog.stdlib.get_logger("worker.drain")


class DrainPhase(Enum):
    """How far the worker has left; only ever forward."""

    SERVING = 0
    ANNOUNCED = 1
    """Health says NOT_SERVING, calls are still taken: edges have not all heard of it yet."""
    REFUSING = 2
    """New calls are refused with reason DRAINING; the running one is finished."""


class Drain:
    """The phase, and the one way through it. SIGTERM and the `Drain` RPC share it."""

    def __init__(self, delay_s: float, on_change: Callable[[], None]) -> None:
        self._delay_s = delay_s
        self._on_change = on_change
        self._refusing = asyncio.Event()
        self._walk: asyncio.Task[None] | None = None
        self.phase = DrainPhase.SERVING

    def begin(self) -> None:
        """Announce it at once, refuse after the delay. Beginning twice changes nothing."""
        if self._walk is None:
            self._enter(DrainPhase.ANNOUNCED)
            self._walk = asyncio.create_task(self._refuse_later())

    async def wait_refusing(self) -> None:
        """Until new calls are refused."""
        await self._refusing.wait()

    async def _refuse_later(self) -> None:
        await asyncio.sleep(self._delay_s)
        self._enter(DrainPhase.REFUSING)
        self._refusing.set()

    def _enter(self, phase: DrainPhase) -> None:
        self.phase = phase
        log.info("drain", phase=phase.name.lower())
        self._on_change()
