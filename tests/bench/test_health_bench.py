"""What counts as a slot's way back."""

from __future__ import annotations

import pytest

from bench.health import reuse_ms


def computed(began_s: float, ended_s: float, *, cancelled: bool = False) -> dict[str, object]:
    return {"event": "computed", "began_s": began_s, "ended_s": ended_s, "cancelled": cancelled}


def test_only_what_follows_a_cancelled_call_counts() -> None:
    records: list[dict[str, object]] = [
        computed(0.0, 1.0),
        {"event": "call", "outcome": "ok"},
        computed(5.0, 6.0, cancelled=True),
        {"event": "abandoned_call_ended"},
        computed(6.02, 7.0),
        computed(7.5, 8.0, cancelled=True),
    ]
    assert reuse_ms(records) == [pytest.approx(20.0)]
