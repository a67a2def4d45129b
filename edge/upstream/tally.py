"""What is counted of calls on workers, since the start: for metrics. Belongs to the driver's event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from edge.pool import events as ev
from edge.pool.endpoint import State
from edge.pool.figures import PoolFigures
from hairmesh.histogram import Histogram

ATTEMPT_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 15, 20, 30, 60, 120)
WAIT_BOUNDS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60)
FAST, SLOW = "fast", "slow"


@dataclass(slots=True)
class Tally:
    """Attempts, waits, ejections."""

    attempts: Counter[tuple[str, ev.Code]] = field(default_factory=Counter)
    """By RPC of `AnalyzeService` and how they ended."""
    took: dict[str, Histogram] = field(default_factory=dict)
    """How long attempts took, in s, by RPC."""
    waits: Mapping[str, Histogram] = field(
        default_factory=lambda: {FAST: Histogram(WAIT_BOUNDS_S), SLOW: Histogram(WAIT_BOUNDS_S)}
    )
    """How long calls waited for workers, in s, by class."""
    ejections: Counter[str] = field(default_factory=Counter)
    """By cause."""

    def attempt_ended(self, method: str, code: ev.Code, took_s: float) -> None:
        """An RPC is over, or was cancelled."""
        self.attempts[method, code] += 1
        took = self.took.get(method)
        if took is None:
            took = self.took[method] = Histogram(ATTEMPT_BOUNDS_S)
        took.add(took_s)

    def call_ended(self, queue_s: float, *, slow: bool) -> None:
        """A call has its answer, or will not get one."""
        self.waits[SLOW if slow else FAST].add(queue_s)

    def heard(self, line: ev.Log) -> None:
        """The pool said something: an ejection is a change of state like any other to it."""
        if line.event == "worker_state" and line.fields["to"] == State.EJECTED != line.fields["from"]:
            self.ejections[str(line.fields["cause"])] += 1


@dataclass(frozen=True, slots=True)
class MeshFigures:
    """Pool and calls in numbers."""

    pool: PoolFigures
    calls: Tally
    """To be read only."""
