"""The bad day of a model server on virtual time: `python -m tests.sim.bad_day` prints the table of docs/watch.md.

A batch job keeps the server full with long requests. Two old watchdogs guard it: one sends a test request every five
minutes and restarts after five failures in a row; one counts answers of 500 and looks the more often the more it sees.
A restart takes minutes and answers everything that runs with 500. The first looks at what it guards through its own
queue, the second counts what restarts do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from tests.fakes.vllm_engine import VllmServer
from tests.sim.watched_server import CANARY_S, Watched

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S
TICK_S = 5.0
LOAD_S = 240.0
"""Loading 19 GB."""
SLOTS = 2


class Guard(Protocol):
    """Whoever restarts the server. Called every tick."""

    def tick(self, at_s: float) -> None:
        """Look, and act."""
        ...


@dataclass(slots=True)
class BatchJob:
    """Working hours of 2–4 long requests at a time; what failed is asked again when the server is back."""

    server: VllmServer
    random: Random
    from_s: float = 9 * HOUR_S
    to_s: float = 21 * HOUR_S
    open: dict[int, float] = field(default_factory=dict)
    again: list[float] = field(default_factory=list)
    lost: int = 0
    """Answered with 500 on the way."""
    done: int = 0

    def tick(self, at_s: float) -> None:
        """Hear answers, ask anew."""
        for number in [number for number in self.open if number in self.server.failed]:
            self.again.append(self.open.pop(number))
            self.lost += 1
        finished = [number for number in self.open if number in self.server.finished]
        self.done += len(finished)
        for number in finished:
            del self.open[number]
        if not self.server.listens:
            return
        if not self.open and not self.again and self.from_s <= at_s < self.to_s:
            self.again = [self.random.uniform(3 * 60.0, 9 * 60.0) for _ in range(self.random.randint(2, 4))]
        for work_s in self.again:
            self.open[self.server.submit(work_s)] = work_s
        self.again = []


@dataclass(slots=True)
class TestRequests:
    """The first old rule: every 300 s a test request with 45 s patience; five failures in a row mean restart."""

    server: VllmServer
    restarts: list[float] = field(default_factory=list)
    _next_s: float = 0.0
    _sent_s: float = 0.0
    _number: int | None = None
    _failures: int = 0

    __test__ = False

    def tick(self, at_s: float) -> None:
        """See `Guard`."""
        if self._number is not None:
            if self._number in self.server.finished:
                self._number, self._failures = None, 0
            elif self._number in self.server.failed or at_s - self._sent_s >= 45.0:
                self.server.abort(self._number)
                self._number = None
                self._fail(at_s)
        if at_s >= self._next_s:
            self._next_s = at_s + 300.0
            if self.server.listens:
                self._sent_s = at_s
                self._number = self.server.submit(CANARY_S)
            else:
                self._fail(at_s)

    def _fail(self, at_s: float) -> None:
        self._failures += 1
        if self._failures == 5:
            self._failures = 0
            self.restarts.append(at_s)
            self.server.restart()


@dataclass(slots=True)
class CountsErrors:
    """The second old rule: three answers of 500 since it last acted mean restart; each one seen halves its period."""

    server: VllmServer
    restarts: list[float] = field(default_factory=list)
    _next_s: float = 0.0
    _period_s: float = 600.0
    _seen: int = 0
    _counted: int = 0

    def tick(self, at_s: float) -> None:
        """See `Guard`."""
        if at_s < self._next_s:
            return
        fresh = len(self.server.failed) - self._seen
        self._seen += fresh
        self._counted += fresh
        self._period_s = max(self._period_s / 2**fresh, 30.0) if fresh else min(self._period_s * 2, 600.0)
        self._next_s = at_s + self._period_s
        if self._counted >= 3:
            self._counted = 0
            self.restarts.append(at_s)
            self.server.restart()


@dataclass(slots=True)
class Ours:
    """`hairmesh watch`, looking every 10 s."""

    watched: Watched
    _next_s: float = 0.0

    def tick(self, at_s: float) -> None:
        """See `Guard`."""
        if at_s >= self._next_s:
            self._next_s = at_s + self.watched.limits.interval_s
            self.watched.look(at_s)


@dataclass(frozen=True, slots=True)
class Day:
    """What became of one."""

    restarts: tuple[float, ...]
    lost: int
    done: int
    canaries_while_working: int = 0


def live(*, ours: bool, hangs_at_s: float | None = None, seed: int = 7) -> Day:
    """One day under the two old rules or under ours; at `hangs_at_s` the engine really gets stuck."""
    server = VllmServer(slots=SLOTS, load_s=LOAD_S, at_s=-HOUR_S)
    job = BatchJob(server, Random(seed))
    watched = Watched(server)
    guards: Iterable[Guard] = [Ours(watched)] if ours else [TestRequests(server), CountsErrors(server)]
    hung = False
    for n in range(int(DAY_S / TICK_S)):
        at_s = n * TICK_S
        server.advance(at_s)
        job.tick(at_s)
        if hangs_at_s is not None and at_s >= hangs_at_s and not hung:
            hung = True
            server.engines[0].hung = True
        for guard in guards:
            guard.tick(at_s)
    working = [at_s for at_s in watched.canaries if job.from_s <= at_s < job.to_s]
    return Day(tuple(server.restarts), job.lost, job.done, len(working))


STUCK_AT_S = 15 * HOUR_S
SEEDS = range(8)


def table() -> str:
    """Markdown, as in docs/watch.md: sums over the days of all `SEEDS`."""
    rows = [
        f"| {len(SEEDS)} days | rules | restarts a day | in all | long requests lost | done |",
        "|---|---|---|---|---|---|",
    ]
    for name, hangs_at_s in (("healthy, busy from 9 to 21 h", None), ("the engine really stuck at 15 h", STUCK_AT_S)):
        for rules, ours in (("the two old ones", False), ("`hairmesh watch`", True)):
            days = [live(ours=ours, hangs_at_s=hangs_at_s, seed=seed) for seed in SEEDS]
            counts = [len(day.restarts) for day in days]
            span = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
            lost, done = sum(day.lost for day in days), sum(day.done for day in days)
            rows.append(f"| {name} | {rules} | {span} | {sum(counts)} | {lost} | {done} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
