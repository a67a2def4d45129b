"""Statistics against exact counts of the same requests."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import TABLE
from edge.stats import (
    BOUNDS_S,
    CLIENT_CLOSED,
    CLIENT_CLOSED_STATUS,
    NO_CODE,
    NO_ROUTE,
    OTHER,
    SLOT_S,
    WINDOWS_S,
    Outcome,
    Stats,
)
from hairmesh.histogram import Histogram

GOOD = Outcome("/a", "POST", 200, "0", "")
OUTCOMES = (GOOD, Outcome("/a", "POST", 400, "1001", "NO_FACE"), Outcome("/b", "POST", 503, "1007", "BUSY"))


@dataclass(frozen=True)
class Ended:
    """One request."""

    at_s: float
    outcome: Outcome
    duration_s: float


@st.composite
def requests(draw: st.DrawFn) -> list[Ended]:
    """In order of time, over some hours, in bursts and after long silences."""
    at_s, ended = draw(st.floats(0, 1e6)), []
    for _ in range(draw(st.integers(0, 40))):
        at_s += draw(st.sampled_from([0.0, 0.5, 19.9, 20.0, 299.0, 301.0, 3599.0, 4000.0]) | st.floats(0, 700))
        ended.append(Ended(at_s, draw(st.sampled_from(OUTCOMES)), draw(st.floats(0, 130))))
    return ended


@given(requests(), st.floats(0, 8000))
def test_every_window_counts_exactly_what_it_touches(ended: list[Ended], later_s: float) -> None:
    stats = Stats()
    for each in ended:
        stats.began("/a")
        stats.ended("/a", each.outcome, each.duration_s, each.at_s)
    now_s = (ended[-1].at_s if ended else 0.0) + later_s
    assert stats.since_start.counts == Counter(each.outcome for each in ended)
    for window_s in WINDOWS_S.values():
        counted = stats.over(window_s, now_s)
        from_s = (now_s // SLOT_S) * SLOT_S - window_s
        inside = [each for each in ended if each.at_s >= from_s]
        assert counted.counts == Counter(each.outcome for each in inside)
        for series, durations in counted.durations.items():
            exact = Histogram(BOUNDS_S)
            for each in inside:
                if each.outcome.series == series:
                    exact.add(each.duration_s)
            assert (durations.counts, durations.largest) == (exact.counts, exact.largest)
        assert {each for each in ended if now_s - each.at_s < window_s} <= set(inside), "never less than it says"
        assert all(now_s - each.at_s <= window_s + SLOT_S for each in inside), "and hardly more"


def test_what_people_see_of_a_route() -> None:
    stats = Stats()
    for at_s, outcome in ((0.0, OUTCOMES[1]), (4000.0, GOOD), (4001.0, GOOD), (4002.0, OUTCOMES[2])):
        stats.began(outcome.route)
        stats.ended(outcome.route, outcome, 0.25, at_s)
    stats.began("/b")
    first, second = stats.describe(4010.0)
    assert (first["route"], first["in_flight"]) == ("/a", 0)
    assert (second["route"], second["in_flight"]) == ("/b", 1)
    assert first["since_start"]["codes"] == {"0": 2, "1001": 1}
    assert first["since_start"]["reasons"] == {"NO_FACE": 1}
    assert first["last_hour"]["codes"] == first["last_5_min"]["codes"] == {"0": 2}
    assert first["last_5_min"]["reasons"] == {}
    assert 200 < first["last_5_min"]["latency_ms"]["p50"] <= first["last_5_min"]["latency_ms"]["max"] == 250
    assert stats.describe(9000.0)[0]["last_hour"] == {
        "calls": 0,
        "codes": {},
        "reasons": {},
        "latency_ms": {"p50": None, "p90": None, "p95": None, "p99": None, "max": None},
    }


def test_labels_are_bounded_whatever_is_sent() -> None:
    assert Outcome.of(None, "BREW", 404, 1008, "NOT_FOUND") == (NO_ROUTE, OTHER, 404, "1008", "NOT_FOUND")
    assert Outcome.of("/a", "POST", 400, 1005, "SOMETHING_OF_TOMORROWS_WORKER").reason == OTHER
    assert Outcome.of("/a", "POST", None, None, "") == ("/a", "POST", CLIENT_CLOSED_STATUS, NO_CODE, CLIENT_CLOSED)
    assert Outcome.of("/a", "POST", 200, None, "").status == 200, "a stream had begun"


def test_memory_stays_what_it_is_however_long_it_runs() -> None:
    stats = Stats()
    outcomes = [
        Outcome(f"/{n}", "POST", row.http_status, "1", reason) for n in range(7) for reason, row in TABLE.items()
    ]
    now_s = 0.0

    def hour() -> int:
        nonlocal now_s
        for _ in range(200):
            now_s += SLOT_S
            for outcome in outcomes:
                stats.ended(outcome.route, outcome, 0.1, now_s)
        return sum(sys.getsizeof(tally.counts) + sum(map(sys.getsizeof, tally.durations)) for _, tally in stats._slots)

    first = hour()
    assert hour() == first
    assert first < 16_000_000


@pytest.mark.parametrize("reason", sorted(TABLE))
def test_every_reason_of_the_table_is_a_label(reason: str) -> None:
    assert Outcome.of("/a", "POST", 400, 1, reason).reason == reason
