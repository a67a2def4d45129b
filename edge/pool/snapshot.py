"""The pool at one moment, for operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edge.pool.endpoint import Endpoint
from edge.pool.leases import Lease


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of an endpoint, or one decision about it."""

    age_s: float
    what: str


@dataclass(frozen=True, slots=True)
class ProbeSnapshot:
    """What the last active check found."""

    result: str
    """`GOOD`, `NOT_SERVING`, `UNREACHABLE`, `TIMEOUT`, `AUTH` or `ERROR`."""
    evidence: str
    age_s: float


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
    name: str
    """The `dns:///name:port` that led to it; empty when it stands in the configuration itself."""
    boot_id: str
    """Of its process; empty when it has not told."""
    capabilities: tuple[str, ...]
    """What it says it can do, sorted."""
    leaving: bool
    """No longer of the configuration: gets no new calls, or only until it is replaced."""
    ejections: int
    """Doublings that its next cooldown gets."""
    next_probe_in_s: float | None
    """None while it is being probed."""
    history: tuple[HistoryEntry, ...]
    """Its last changes and what was decided about it, the latest first."""
    last_probe: ProbeSnapshot | None = None
    """None before the first one has come back."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """What it says it cannot do now, each with its reason."""

    @classmethod
    def of(cls, endpoint: Endpoint, lease: Lease | None, now_s: float) -> EndpointSnapshot:
        """`endpoint` and the lease on its slot at `now_s`."""
        probed = endpoint.last_probe
        last_probe = probed and ProbeSnapshot(probed.result.name, probed.evidence, now_s - probed.at_s)
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
            name=endpoint.name,
            boot_id=endpoint.boot_id,
            capabilities=tuple(sorted(endpoint.capabilities)),
            leaving=endpoint.leaving or endpoint.awaits_replacement,
            ejections=endpoint.ejections,
            next_probe_in_s=None if endpoint.probing else max(0.0, endpoint.next_probe_s - now_s),
            history=tuple(HistoryEntry(now_s - at_s, what) for at_s, what in reversed(endpoint.history)),
            last_probe=last_probe,
            lacks=dict(sorted(endpoint.lacks.items())),
        )


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """Workers and queue."""

    endpoints: tuple[EndpointSnapshot, ...]
    """In the order of the configuration; then those that are leaving."""
    waiting_fast: int
    """Fast calls that wait, inside and outside."""
    waiting_slow: int
    """Slow calls that wait, inside and outside."""
    waiting_outside: int
    """Calls beyond `max_in_flight`."""
    inside: int
    """Calls that run or wait for a worker."""
    braked: bool
    """Whether workers that went out for a shared cause come back by single trial calls."""
    growth_capable: int
    """Workers online that can grow hair."""
    shared_cause: str = ""
    """For which they went out; empty when not braked."""
