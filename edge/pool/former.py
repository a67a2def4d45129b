"""Addresses that have left the pool, as long as what they did there still matters.

A name that lacks an address in one answer, or a worker taken out of the configuration and put back, must not cut a
cooldown short, nor make a slot free that a thread may still hold.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from edge.pool import config as fixed
from edge.pool.endpoint import Endpoint
from edge.pool.leases import Lease


class Former:
    """The last `FORMER_MAX` endpoints that left with a cooldown, a doubling or a slot left behind."""

    def __init__(self) -> None:
        self._left: OrderedDict[str, tuple[float, Endpoint, Lease | None]] = OrderedDict()
        """By target, the one that left longest ago first; with the moment."""

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._left)

    def __iter__(self) -> Iterator[Endpoint]:
        """All of them."""
        return (endpoint for _, endpoint, _ in self._left.values())

    def keep(self, endpoint: Endpoint, lease: Lease | None, now_s: float) -> None:
        """It has left; `lease` is what it left behind."""
        self._forget_old(now_s, endpoint.health.cooldown_max_seconds)
        if lease is None and endpoint.ejections == 0 and endpoint.cooldown_left_s(now_s) == 0:
            return
        self._left[endpoint.target] = now_s, endpoint, lease
        if len(self._left) > fixed.FORMER_MAX:
            self._left.popitem(last=False)

    def take(self, target: str, now_s: float, *, kept_s: float) -> tuple[Endpoint, Lease | None] | None:
        """What is known of an address that comes back; nothing when it left more than `kept_s` ago."""
        self._forget_old(now_s, kept_s)
        left = self._left.pop(target, None)
        return None if left is None else left[1:]

    def _forget_old(self, now_s: float, kept_s: float) -> None:
        while self._left and next(iter(self._left.values()))[0] < now_s - kept_s:
            self._left.popitem(last=False)
