"""How long calls wait for a worker: the real pool on virtual time, under load that comes by chance and nothing else.

What `scripts/sizing.py` computes by formula is held against this.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from edge.pool import events as ev
from edge.pool.config import DispatchConfig, PoolConfig
from edge.pool.manager import Pool

PROBE_S = 0.002
WARM_S = 2.0
"""By when every worker is online."""


@dataclass(frozen=True, slots=True)
class Waits:
    """What a run came to."""

    waited_s: tuple[float, ...]
    """Of each fast call that got a worker, sorted."""
    refused: int
    running_most: int
    """Calls on workers at once."""

    def quantile_s(self, share: float) -> float:
        """So many wait less than that."""
        return self.waited_s[min(int(share * len(self.waited_s)), len(self.waited_s) - 1)]

    @property
    def mean_s(self) -> float:
        """Of all."""
        return sum(self.waited_s) / len(self.waited_s)


class _Play:
    """One run."""

    def __init__(
        self, workers: int, calls: int, mean_s: Mapping[bool, float], max_in_flight: int, chance: Random
    ) -> None:
        targets = tuple(f"10.{n // 62500}.{n // 250 % 250}.{n % 250 + 1}:28187" for n in range(workers))
        self._pool = Pool(
            PoolConfig(targets, dispatch=DispatchConfig(max_in_flight=max_in_flight)), seed=1, edge_id="e"
        )
        self._agenda: list[tuple[float, int, ev.Event]] = []
        self._order = itertools.count()
        self._chance, self._mean_s = chance, mean_s
        self._submitted_s: dict[str, float] = {}
        self._slow: set[str] = set()
        self._running = 0
        self._wake_s = math.inf
        self.waited_s: list[float] = []
        self.refused = self.running_most = 0
        self._left = calls

    def run(self, fast_per_s: float, slow_per_s: float) -> None:
        """Until every call has ended."""
        calls_per_s = fast_per_s + slow_per_s
        self._feed(ev.Started(0.0))
        next_s = WARM_S
        while self._left or self._running or self._submitted_s:
            planned_s = self._agenda[0][0] if self._agenda else math.inf
            if self._left and next_s <= min(planned_s, self._wake_s):
                self._submit(f"e-{self._left}", next_s, slow=self._chance.random() < slow_per_s / calls_per_s)
                next_s += self._chance.expovariate(calls_per_s)
            elif self._wake_s < planned_s:
                now_s, self._wake_s = self._wake_s, math.inf
                self._feed(ev.Tick(now_s))
            else:
                self._feed(heapq.heappop(self._agenda)[2])

    def _submit(self, call_id: str, now_s: float, *, slow: bool) -> None:
        self._left -= 1
        self._submitted_s[call_id] = now_s
        if slow:
            self._slow.add(call_id)
        self._feed(ev.Submitted(now_s, call_id, slow))

    def _feed(self, event: ev.Event) -> None:
        now_s = event.now_s
        if isinstance(event, ev.CallEnded):
            self._running -= 1
        for decision in self._pool.handle(event):
            match decision:
                case ev.Wake(at_s):
                    self._wake_s = max(at_s, now_s)
                case ev.Probe(target):
                    self._plan(ev.ProbeEnded(now_s + PROBE_S, target, ev.ProbeResult.GOOD, "SERVING"))
                case ev.Start(call_id):
                    slow, waited_s = call_id in self._slow, now_s - self._submitted_s.pop(call_id)
                    if not slow:
                        self.waited_s.append(waited_s)
                    self._running += 1
                    self.running_most = max(self.running_most, self._running)
                    takes_s = self._chance.expovariate(1 / self._mean_s[slow])
                    self._plan(ev.CallEnded(now_s + takes_s, call_id, ev.Code.OK))
                case ev.Fail(call_id):
                    del self._submitted_s[call_id]
                    self.refused += 1

    def _plan(self, event: ev.Event) -> None:
        heapq.heappush(self._agenda, (event.now_s, next(self._order), event))


def waits(
    workers: int,
    calls_per_s: float,
    call_s: float,
    *,
    calls: int,
    slow_per_s: float = 0.0,
    slow_call_s: float = 0.0,
    max_in_flight: int = 100_000,
    seed: int = 1,
) -> Waits:
    """Fast and slow calls come by chance (Poisson) and take a time by chance (exponential); nothing fails.

    `calls`: of both kinds together. `call_s`, `slow_call_s`: what they take on average.
    """
    play = _Play(workers, calls, {False: call_s, True: slow_call_s}, max_in_flight, Random(seed))
    play.run(calls_per_s, slow_per_s)
    return Waits(tuple(sorted(play.waited_s)), play.refused, play.running_most)
