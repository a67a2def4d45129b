"""How the requests went: since the start, and over the last minutes and the last hour. Pure; memory is bounded.

Recent ones are counted in slots of `SLOT_S`, in a ring as long as the longest window. A window is the slots that it
touches: it may reach back up to one slot further than it says, never less far.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from edge.errors import TABLE
from hairmesh.histogram import Histogram

SLOT_S = 20.0
WINDOWS_S: Mapping[str, float] = {"last_5_min": 300.0, "last_hour": 3600.0}
"""By the name that `/admin/stats` gives them."""
_SLOTS = round(max(WINDOWS_S.values()) / SLOT_S) + 1

BOUNDS_S = (
    *(0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0),
)
"""Buckets of durations: fine enough around a measurement (0.1 to 0.5 s) and a growth call (5 to 20 s)."""
QUANTILES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

NO_ROUTE = "none"
OTHER = "other"
CLIENT_CLOSED = "CLIENT_CLOSED"
NO_CODE = "none"
CLIENT_CLOSED_STATUS = 499
"""As proxies log a client that left before its answer began."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Outcome(NamedTuple):
    """How one request ended: labels, each with few values whatever clients and workers send."""

    route: str
    method: str
    status: int
    code: str
    reason: str
    """Empty for a good answer."""

    @classmethod
    def of(cls, route: str | None, method: str, status: int | None, code: int | None, reason: str) -> Outcome:
        """`code` None: the client left before its answer was whole."""
        known = method if method in _METHODS else OTHER
        if code is None:
            return cls(route or NO_ROUTE, known, status or CLIENT_CLOSED_STATUS, NO_CODE, CLIENT_CLOSED)
        named = reason if not reason or reason in TABLE else OTHER
        return cls(route or NO_ROUTE, known, status or 0, str(code), named)

    @property
    def series(self) -> Series:
        """What durations are counted by."""
        return Series(self.route, self.method, self.status)


class Series(NamedTuple):
    """Requests whose durations are counted together."""

    route: str
    method: str
    status: int


@dataclass(slots=True)
class Tally:
    """Requests of some time."""

    counts: dict[Outcome, int] = field(default_factory=dict)
    durations: dict[Series, Histogram] = field(default_factory=dict)

    def add(self, outcome: Outcome, series: Series, duration_s: float) -> None:
        """One request."""
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        durations = self.durations.get(series)
        if durations is None:
            durations = self.durations[series] = Histogram(BOUNDS_S)
        durations.add(duration_s)

    def merge(self, other: Tally) -> None:
        """Add those of `other`."""
        for outcome, count in other.counts.items():
            self.counts[outcome] = self.counts.get(outcome, 0) + count
        for series, durations in other.durations.items():
            self.durations.setdefault(series, Histogram(BOUNDS_S)).merge(durations)

    def of_route(self, route: str) -> dict[str, Any]:
        """What people see of one route."""
        counts = {outcome: count for outcome, count in self.counts.items() if outcome.route == route}
        durations = Histogram(BOUNDS_S)
        for series, each in self.durations.items():
            if series.route == route:
                durations.merge(each)
        quantiles = {name: _ms(durations.quantile(share)) for name, share in QUANTILES.items()}
        return {
            "calls": sum(counts.values()),
            "codes": _summed((outcome.code, count) for outcome, count in counts.items()),
            "reasons": _summed((outcome.reason, count) for outcome, count in counts.items() if outcome.reason),
            "latency_ms": {**quantiles, "max": _ms(durations.largest if durations.count else None)},
        }


class Stats:
    """All requests of one edge. Every method belongs to its event loop; `now_s` never falls."""

    def __init__(self) -> None:
        self.since_start = Tally()
        self.in_flight: Counter[str] = Counter()
        """By route; of requests that came for no fixed route, under `NO_ROUTE`."""
        self._slots: deque[tuple[int, Tally]] = deque(maxlen=_SLOTS)
        """Those in which something ended, by their number, the newest last."""

    def began(self, route: str) -> None:
        """A request for this route is being served."""
        self.in_flight[route] += 1

    def ended(self, route: str, outcome: Outcome, duration_s: float, now_s: float) -> None:
        """It is over; `route` as it was given to `began`."""
        self.in_flight[route] -= 1
        number = int(now_s // SLOT_S)
        if not self._slots or self._slots[-1][0] != number:
            self._slots.append((number, Tally()))
        series = outcome.series
        self.since_start.add(outcome, series, duration_s)
        self._slots[-1][1].add(outcome, series, duration_s)

    def over(self, window_s: float, now_s: float) -> Tally:
        """Those that ended within `window_s`, and perhaps up to one slot before."""
        oldest = int(now_s // SLOT_S) - round(window_s / SLOT_S)
        whole = Tally()
        for number, slot in self._slots:
            if number >= oldest:
                whole.merge(slot)
        return whole

    def slots(self, window_s: float, now_s: float) -> Iterator[tuple[float, Tally]]:
        """The whole slots of that time one by one, the oldest first: how long ago each was over, what ended in it."""
        kept, newest = dict(self._slots), int(now_s // SLOT_S)
        for number in range(newest - round(window_s / SLOT_S), newest):
            yield now_s - (number + 1) * SLOT_S, kept.get(number) or Tally()

    def describe(self, now_s: float) -> list[dict[str, Any]]:
        """Every route that was asked for, sorted by name, as `/admin/stats` tells it."""
        spans = {"since_start": self.since_start}
        spans |= {name: self.over(window_s, now_s) for name, window_s in WINDOWS_S.items()}
        routes = {outcome.route for outcome in self.since_start.counts} | set(self.in_flight)
        return [
            {
                "route": route,
                "in_flight": self.in_flight[route],
                **{name: tally.of_route(route) for name, tally in spans.items()},
            }
            for route in sorted(routes)
        ]


def _summed(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    summed: Counter[str] = Counter()
    for name, count in pairs:
        summed[name] += count
    return dict(sorted(summed.items()))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000.0, 1)
