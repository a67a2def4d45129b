"""What the bench of several edges counts."""

from __future__ import annotations

from typing import Any

import pytest

from bench.edges import EDGES, LOADS, WORKERS, Seen, busy_share, overlaps, ratio, refusals


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
