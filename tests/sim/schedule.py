"""A seed makes a schedule: configuration, clients, troubles. All numbers of it are drawn here."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from edge.pool.config import DispatchConfig, HealthCheckConfig, PoolConfig
from edge.pool.events import Code
from tests.sim.faults import FAULTS, SHARED, Fault

GRID_S = 0.05
"""Arrivals and troubles fall on multiples of it, so that many things happen in the same moment."""
REQUESTS = 100
"""In one schedule, about."""


@dataclass(frozen=True, slots=True)
class Load:
    """One client program: when it calls, and with what."""

    seed: str
    edge: int
    begins_s: float
    lasts_s: float
    every_s: float
    burst: int
    """Calls at once."""
    slow: float
    """Share of slow calls."""
    leaves: float
    """Share of calls whose client does not wait for the answer."""
    patience_s: tuple[float | None, ...]
    growth: bool
    """Whether its slow calls ask for the capability."""
    poison: str
    """Input that breaks workers; empty: none of its inputs does."""
    poison_every: int
    """Every how many calls."""
    variants: bool
    """Whether each of these is another one, or all are the same."""

    def input_key(self, number: int) -> str:
        """Of the edge's call of this number."""
        if not self.poison or number % self.poison_every:
            return f"input {self.seed} {number}"
        return f"{self.poison}/{number}" if self.variants else self.poison

    def __str__(self) -> str:
        when = f"{self.begins_s:.1f}+{self.lasts_s:.1f} s, {self.burst} per {self.every_s:.2f} s"
        return f"load {self.seed} edge {self.edge} {when} {self.poison}".rstrip()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything that will happen, but for what the pool makes of it."""

    seed: int
    requests: int
    kinds: tuple[str, ...]
    config: PoolConfig
    edges: int
    latency_s: float
    call_s: float
    slow_call_s: float
    step_s: float
    poison_ends: Code | None
    """How a call with poison ends; None: its process dies of it."""
    loads: tuple[Load, ...]
    faults: tuple[Fault, ...]
    over_s: float
    """When all faults stop."""

    def without(self, *numbers: int) -> Schedule:
        """The same without the troubles of these numbers."""
        return replace(self, faults=tuple(each for n, each in enumerate(self.faults) if n not in numbers))

    def left_out(self) -> list[int]:
        """Numbers of the troubles that the schedule of this seed has, and this one has not."""
        full = generate(self.seed, requests=self.requests, kinds=self.kinds).faults
        return [number for number, fault in enumerate(full) if fault not in self.faults]


def generate(seed: int, *, requests: int = REQUESTS, kinds: Sequence[str] = ()) -> Schedule:
    """The schedule of this seed. `kinds`: only these troubles, and some of them for certain."""
    chance, poisons = random.Random(f"schedule {seed}"), random.Random(f"poisons {seed}")
    workers = tuple(f"w{number}:1" for number in range(1, chance.choice([1, 2, 3, 3, 4, 5, 6]) + 1))
    call_s = chance.choice([0.05, 0.5, 0.5, 2.0])
    slow_call_s = chance.choice([call_s, 4.0, 12.0])
    config = _config(chance, workers)
    slow = chance.choice([0.0, 0.1, 0.3, 0.6])
    work_s = requests * ((1 - slow) * call_s + slow * slow_call_s)
    active_s = min(max(work_s / len(workers) / chance.choice([0.2, 0.4, 0.7, 1.3]), 12.0), 240.0)
    edges = chance.choice([1, 1, 2, 3])
    loads = _loads(chance, poisons, seed, edges=edges, requests=requests, active_s=active_s, slow=slow)
    return Schedule(
        seed=seed,
        requests=requests,
        kinds=tuple(kinds),
        config=config,
        edges=edges,
        latency_s=chance.choice([0.0, 0.001, 0.001, 0.05]),
        call_s=call_s,
        slow_call_s=slow_call_s,
        step_s=chance.choice([0.1, 0.5, 2.0]),
        poison_ends=None if chance.random() < 0.5 else poisons.choice([Code.INTERNAL, Code.FAILED_PRECONDITION]),
        loads=tuple(loads),
        faults=tuple(_faults(chance, workers, edges=edges, active_s=active_s, kinds=kinds)),
        over_s=active_s,
    )


def _config(chance: random.Random, workers: tuple[str, ...]) -> PoolConfig:
    cooldown_s = chance.choice([0.0, 3.0, 5.0, 20.0, 60.0])
    primaries = workers[: chance.choice([0, 0, 1, 2])]
    interval_s = chance.choice([2.0, 8.0])
    return PoolConfig(
        workers=workers,
        primary_workers=primaries,
        health=HealthCheckConfig(
            interval_seconds=interval_s,
            timeout_seconds=chance.choice([1.0, 3.0]),
            unhealthy_threshold=chance.choice([1, 2, 2, 3]),
            healthy_threshold=chance.choice([1, 1, 2]),
            cooldown_seconds=cooldown_s,
            cooldown_max_seconds=max(cooldown_s, chance.choice([30.0, 120.0])),
        ),
        dispatch=DispatchConfig(
            max_in_flight=chance.choice([2, 8, 64, 64]),
            queue_wait_seconds=chance.choice([2.0, 10.0, 30.0]),
            max_queue_wait_seconds=chance.choice([0.0, 10.0, 60.0, 60.0]),
            max_queued_bytes=chance.choice([1000, 10**6]),
            request_timeout_seconds=chance.choice([3.0, 10.0]),
            growth_timeout_seconds=chance.choice([10.0, 30.0]),
            retry_on_failure=chance.random() < 0.9,
            max_retries=chance.choice([0, 1, 1, 2]),
            spill_after_seconds=chance.choice([None, None, 1.0]),
        ),
    )


def _grid(value_s: float) -> float:
    return round(round(value_s / GRID_S) * GRID_S, 6)


def _loads(
    chance: random.Random,
    poisons: random.Random,
    seed: int,
    *,
    edges: int,
    requests: int,
    active_s: float,
    slow: float,
) -> list[Load]:
    count = chance.choice([1, 2, 3, 4]) + edges - 1
    poison = chance.random() < 0.4
    loads = []
    for number in range(count):
        burst = chance.choice([1, 1, 2, 10])
        begins_s = _grid(chance.choice([0.0, 0.0, 0.3]) * active_s)
        lasts_s = active_s - begins_s
        every_s = max(GRID_S, _grid(lasts_s * burst * count / requests))
        loads.append(
            Load(
                seed=f"{seed}:{number}",
                edge=number % edges,
                begins_s=begins_s,
                lasts_s=lasts_s,
                every_s=every_s,
                burst=burst,
                slow=slow,
                leaves=chance.choice([0.0, 0.0, 0.1, 0.4]),
                patience_s=chance.choice([(None,), (None,), (None, 0.3, 3.0, 30.0), (3.0,)]),
                growth=chance.random() < 0.5,
                poison=f"poison {number}" if poison and number == count - 1 else "",
                poison_every=poisons.choice([1, 2, 4]),
                variants=poisons.random() < 0.5,
            )
        )
    return loads


def _faults(
    chance: random.Random, workers: tuple[str, ...], *, edges: int, active_s: float, kinds: Sequence[str]
) -> list[Fault]:
    count = chance.choice([2, 4, 6]) if kinds else chance.choice([0, 1, 2, 4, 6, 9])
    faults = []
    for _ in range(count):
        kind = chance.choice(list(kinds or FAULTS))
        several = chance.randint(1, len(workers)) if kind in SHARED and chance.random() < 0.5 else 1
        at_s = _grid(chance.random() * active_s * 0.9)
        lasts_s = _grid(min(chance.choice([0.3, 3.0, 15.0, 40.0]) * (0.5 + chance.random()), active_s - at_s))
        targets = tuple(chance.sample(workers, several))
        faults.append(Fault(kind, at_s, lasts_s, targets, chance.randrange(edges), chance.random()))
    return sorted(faults, key=lambda fault: fault.at_s)
