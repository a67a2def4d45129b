"""What the bench of several edges counts."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from bench.edges import EDGES, LOADS, RATIO_MIN, WORKERS, Seen, busy_share, falls_short, overlaps, ratio, refusals
from tests.test_distribution import ROOT, run


def computed(began_s: float, ended_s: float) -> dict[str, Any]:
    return {"event": "computed", "began_s": began_s, "ended_s": ended_s}


def test_two_calls_in_one_slot_are_seen_in_whatever_order_they_are_logged() -> None:
    apart: list[dict[str, Any]] = [computed(0.0, 1.0), {"event": "computing"}, computed(1.0, 2.0), computed(2.5, 3.0)]
    assert overlaps(apart) == 0
    assert overlaps([*apart, computed(0.5, 0.6)]) == 1, "within the first, and logged last"


def test_only_refusals_for_a_taken_slot_count() -> None:
    calls = [{"event": "call", "reason": reason} for reason in ("", "BUSY", "NO_FACE", "BUSY")]
    assert refusals([*calls, {"event": "computed"}]) == 2


def test_three_edges_are_compared_with_one_round_by_round() -> None:
    rounds = [
        (Seen(one, 100, 0, 0), Seen(three, 50, 0, refused))
        for one, three, refused in ((50.0, 49.0, 5), (40.0, 40.0, 0), (60.0, 54.0, 10))
    ]
    assert ratio(rounds) == pytest.approx(0.98)
    assert busy_share(rounds) == pytest.approx(0.1)


def test_every_edge_has_clients_and_one_load_fills_every_slot_several_times() -> None:
    assert all(len(clients) == EDGES and min(clients) > 0 for clients in LOADS.values())
    assert sum(LOADS["busy"]) >= 4 * WORKERS
    assert sum(LOADS["even"]) == WORKERS


GOOD = {"throughput_ratio": RATIO_MIN, "double_booked": 0, "failed": 0}


@pytest.mark.parametrize(
    "bad",
    [{"throughput_ratio": RATIO_MIN - 0.001}, {"double_booked": 1}, {"failed": 1}],
    ids=lambda bad: next(iter(bad)),
)
def test_what_falls_short_is_named(bad: dict[str, float]) -> None:
    assert falls_short(GOOD) == []
    assert falls_short(GOOD | bad) == list(bad)


@pytest.mark.long
def test_three_edges_get_as_much_out_of_six_workers_as_one_does() -> None:
    """The bench itself, which ends with status 1 where they do not. Needs a machine with nothing else to do."""
    said = run(sys.executable, ROOT / "bench" / "edges.py", folder=ROOT, PYTHONPATH=str(ROOT))
    assert json.loads(said.splitlines()[-1])["throughput_ratio"] >= RATIO_MIN
