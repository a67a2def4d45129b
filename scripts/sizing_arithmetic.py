"""What docs/sizing.md computes: workers, edges, memory, network, disk and probes of a service of a given size.

`scripts/sizing.py` writes the page.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from edge.pool import config as pool
from edge.pool.config import DispatchConfig, HealthCheckConfig
from edge.settings import Limits, Static

MB, GB = 1e6, 1e9
DAY_H, HOUR_S = 24, 3600
LIMITS, DISPATCH, HEALTH, STATIC = Limits(), DispatchConfig(), HealthCheckConfig(), Static()


@dataclass(frozen=True, slots=True)
class Given:
    """One number that everything else follows from."""

    value: float
    unit: str
    what: str
    source: str


GIVEN: Mapping[str, Given] = {
    "measure_s": Given(
        0.5,
        "s",
        "elapsed time of a measurement on a worker with one core to itself",
        "`bench/calls.py`, its processor time; put your own elapsed time here first",
    ),
    "styles_s": Given(
        18, "s", "elapsed time of four styles on a diffusion server", "the server's own; `local` on one core: 9"
    ),
    "photo_mb": Given(1.5, "MB", "size of a photo", "at most `limits.max_body_bytes`"),
    "picture_mb": Given(4, "MB", "size of a picture of 2048 px", "[pictures](pictures.md#how-much-disk)"),
    "edge_call_ms": Given(12, "ms", "processor time of an edge for one measurement", "`bench/edges.py`"),
    "watch_core": Given(0.098, "cores", "used by an edge that watches 1,000 idle workers", "`bench/pool_scale.py`"),
    "watch_mb": Given(110, "MB", "memory of an edge for 1,000 workers", "`bench/pool_scale.py`"),
    "edge_mb": Given(130, "MB", "memory of an edge at rest", "`bench/memory.py`"),
    "local_mb": Given(500, "MB", "memory of calls 4 and 99 on the edge", "`bench/memory.py`"),
    "again": Given(
        0.4, "", "attempts per call that find a slot just taken, three edges in full use", "`bench/edges.py`, at most"
    ),
    "styles_share": Given(0.1, "", "calls for four styles, for each measurement", "an assumption: count your own"),
    "hour_share": Given(0.15, "", "share of a day's calls in its busiest hour", "an assumption: count your own"),
    "busy_share": Given(
        0.8, "", "share of the workers that are busy, at most", "the rest is for one that fails, and for chance"
    ),
    "patience_s": Given(2, "s", "time that 19 of 20 measurements wait at most", "as KEDA's trigger"),
    "edge_core": Given(0.6, "cores", "used by an edge, at most", "it has one event loop"),
    "line_mb_s": Given(600, "MB/s", "to and from an edge, each way, at most", "half of 10 Gbit/s"),
    "cell_edges": Given(10, "", "edges over the same workers, at most", "each hears of every call of the others"),
    "cell_workers": Given(1000, "", "workers of one cell, at most", "`bench/pool_scale.py` has tried that many"),
}


def given(name: str) -> float:
    """Its value."""
    return GIVEN[name].value


def waiting_share(workers: int, busy: float) -> float:
    """Share of calls that wait at all, where `busy` workers of `workers` are in use on average (Erlang C)."""
    blocked = 1.0
    for number in range(1, workers + 1):
        blocked = busy * blocked / (number + busy * blocked)
    return blocked / (1 - busy / workers * (1 - blocked))


def wait_s(workers: int, calls_per_s: float, call_s: float, share: float = 0.95) -> float:
    """So many calls wait less than this, in s; infinite where more comes than can be done."""
    busy = calls_per_s * call_s
    if busy >= workers:
        return math.inf
    waiting = waiting_share(workers, busy)
    return max(0.0, math.log(waiting / (1 - share)) / ((workers - busy) / call_s))


def mean_wait_s(workers: int, calls_per_s: float, call_s: float) -> float:
    """Of all calls, in s."""
    busy = calls_per_s * call_s
    return waiting_share(workers, busy) * call_s / (workers - busy)


def calls_within(workers: int, call_s: float, patience_s: float) -> float:
    """Most calls per second of which 19 of 20 wait less than `patience_s`."""
    low, high = 0.0, workers / call_s
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if wait_s(workers, middle, call_s) <= patience_s else (low, middle)
    return low


def workers_for(calls_per_s: float, call_s: float, patience_s: float) -> int:
    """Fewest of which 19 of 20 calls wait less than `patience_s`."""
    workers = max(1, math.ceil(calls_per_s * call_s))
    while wait_s(workers, calls_per_s, call_s) > patience_s:
        workers += 1
    return workers


def most_at_once(mean: float, share: float = 0.95) -> int:
    """So many or fewer come together in `share` of all moments, where it is `mean` on average (Poisson)."""
    total = 0.0
    for number in itertools.count():
        total += math.exp(number * math.log(mean) - mean - math.lgamma(number + 1))
        if total >= share:
            return number
    raise AssertionError("a sum of all is 1")


@dataclass(frozen=True, slots=True)
class Call:
    """What a call is to everybody on its way."""

    name: str
    pictures: int

    @property
    def in_mb(self) -> float:
        """Into an edge: from the client, and from the worker."""
        return given("photo_mb") + self.pictures * given("picture_mb")

    @property
    def out_mb(self) -> float:
        """Out of it: to the worker, again where the slot was just taken, to a shared store, and to whoever looks."""
        return given("photo_mb") * (1 + given("again")) + 2 * self.pictures * given("picture_mb")

    @property
    def edge_ms(self) -> float:
        """Of a core there: in proportion to the bytes."""
        return given("edge_call_ms") * self.in_mb / MEASURE.in_mb

    @property
    def disk_gb(self) -> float:
        """Of 1,000 calls a day, as long as pictures are kept."""
        return 1000 * self.pictures * given("picture_mb") * MB * STATIC.max_age_hours / DAY_H / GB


MEASURE, HAIRLINES, REGION, STYLES = Call("measure", 1), Call("hairlines", 7), Call("region", 2), Call("styles", 8)
CALLS_WITH_PICTURES = (MEASURE, HAIRLINES, REGION, STYLES)


def growth_of_time() -> float:
    """Share of all workers' time that calls for styles take."""
    growing_s = given("styles_s") * given("styles_share")
    return growing_s / (given("measure_s") + growing_s)


def growth_of_disk() -> float:
    """Share of the pictures' disk that calls for styles take."""
    grown_gb = STYLES.disk_gb * given("styles_share")
    return grown_gb / (MEASURE.disk_gb + grown_gb)


@dataclass(frozen=True, slots=True)
class Site:
    """A service for so many measurements a day, and the calls for four styles beside them."""

    measures: int

    @property
    def measures_per_s(self) -> float:
        """In the busiest hour."""
        return self.measures * given("hour_share") / HOUR_S

    @property
    def styles_per_s(self) -> float:
        """In the busiest hour."""
        return self.measures_per_s * given("styles_share")

    @property
    def workers(self) -> int:
        """As many as slow calls run at once 19 of 20 times, and as many as the fast ones need; enough of all idle."""
        slow_busy = self.styles_per_s * given("styles_s")
        apart = workers_for(self.measures_per_s, given("measure_s"), given("patience_s")) + most_at_once(slow_busy)
        busy = self.measures_per_s * given("measure_s") + slow_busy
        return max(apart, math.ceil(busy / given("busy_share")))

    @property
    def edges(self) -> int:
        """That the load needs, and one that may be missing."""
        per_s = ((MEASURE, self.measures_per_s), (STYLES, self.styles_per_s))
        cores = sum(call.edge_ms / 1000 * rate for call, rate in per_s)
        mb_s = sum(max(call.in_mb, call.out_mb) * rate for call, rate in per_s)
        return 1 + math.ceil(max(cores / given("edge_core"), mb_s / given("line_mb_s")))

    @property
    def cells(self) -> int:
        """Groups of edges and workers that know nothing of each other."""
        return math.ceil(max(self.edges / given("cell_edges"), self.workers / given("cell_workers")))

    @property
    def mb_s(self) -> float:
        """Out of all edges together."""
        return MEASURE.out_mb * self.measures_per_s + STYLES.out_mb * self.styles_per_s

    @property
    def disk_gb(self) -> float:
        """For pictures."""
        return self.measures * (MEASURE.disk_gb + STYLES.disk_gb * given("styles_share")) / 1000


@dataclass(frozen=True, slots=True)
class Cell:
    """So many edges over the same so many workers."""

    workers: int
    edges: int

    @property
    def max_in_flight(self) -> int:
        """For each edge: its share of the workers, with one edge missing, even if all calls are slow ones."""
        share = self.workers / max(1, self.edges - 1)
        return max(DISPATCH.max_in_flight, math.ceil(share / pool.SLOW_SHARE_INSIDE))

    @property
    def edge_mb(self) -> float:
        """Memory of each edge, at most."""
        bodies = LIMITS.max_uploading_bytes + DISPATCH.max_queued_bytes + self.max_in_flight * LIMITS.max_body_bytes
        held = bodies + LIMITS.max_sending_bytes
        return given("edge_mb") + given("watch_mb") * self.workers / 1000 + held / MB

    @property
    def watch_core(self) -> float:
        """Of a core, for each edge, without any call."""
        return given("watch_core") * self.workers / 1000

    @property
    def checks_per_s(self) -> float:
        """Of all edges together."""
        return self.workers * self.edges / HEALTH.interval_seconds
