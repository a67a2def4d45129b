"""The pool at one moment, for operators."""

from __future__ import annotations

from dataclasses import dataclass

from edge.pool.endpoint import Endpoint
from edge.pool.leases import Lease


@dataclass(frozen=True, slots=True)
class EndpointSnapshot:
    """One worker."""

    target: str
    primary: bool
    state: str
    cause: str
    """Empty when there is none."""
    evidence: str
    """What its last change rests on."""
    cooldown_left_s: float
    call_id: str
    """Of the call that holds its slot; empty when we hold none there."""
    in_flight_s: float | None
    """Age of that call, in s."""
    left_behind: bool
    """Its attempt is over, its thread perhaps not."""
    stage: str
    """What the worker says it does now."""
    taken_by_others: bool
    """Whether another edge's call is in its slot."""

    @classmethod
    def of(cls, endpoint: Endpoint, lease: Lease | None, now_s: float) -> EndpointSnapshot:
        """`endpoint` and the lease on its slot at `now_s`."""
        return cls(
            target=endpoint.target,
            primary=endpoint.primary,
            state=str(endpoint.state),
            cause="" if endpoint.cause is None else str(endpoint.cause),
            evidence=endpoint.evidence,
            cooldown_left_s=endpoint.cooldown_left_s(now_s),
            call_id="" if lease is None else lease.call_id,
            in_flight_s=None if lease is None else now_s - lease.began_s,
            left_behind=lease is not None and lease.left_s is not None,
            stage=endpoint.stage,
            taken_by_others=endpoint.taken,
        )


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """Workers and queue."""

    endpoints: tuple[EndpointSnapshot, ...]
    """In the order of the configuration."""
    waiting_fast: int
    """Fast calls that wait, inside and outside."""
    waiting_slow: int
    """Slow calls that wait, inside and outside."""
    waiting_outside: int
    """Calls beyond `max_in_flight`."""
    inside: int
    """Calls that run or wait for a worker."""
