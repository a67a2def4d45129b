"""The pool in numbers, for metrics: what `PoolSnapshot` says of a thousand workers, without their histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edge.pool.endpoint import Endpoint

Standing = tuple[str, str, bool]
"""State, cause (empty when there is none), whether it is primary."""


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """At one moment."""

    standings: Mapping[Standing, int]
    """How many workers stand so; those that are leaving too."""
    online: Mapping[str, bool]
    """By worker: whether calls go there."""
    growth_capable: int
    """Workers online that can grow hair."""
    braked: bool
    waiting_fast: int
    """Fast calls that wait, inside and outside."""
    waiting_slow: int
    """Slow calls that wait, inside and outside."""
    outside: int
    """Calls beyond `max_in_flight`."""
    inside: int
    """Calls that run or wait for a worker."""
    slots_busy: int
    """Leases: calls that run, and those left behind."""


def standings(endpoints: Iterable[Endpoint]) -> Mapping[Standing, int]:
    """How many stand how."""
    return Counter((str(e.state), "" if e.cause is None else str(e.cause), e.primary) for e in endpoints)
