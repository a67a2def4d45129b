"""How the requests went, as the console's page draws it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edge.errors import SYSTEM, TABLE
from edge.stats import BOUNDS_S, SLOT_S, WINDOWS_S, Stats, Tally
from hairmesh.histogram import Histogram

CHART_S = 900.0
"""What the charts reach back."""


SINCE_START = "since_start"


def figures(stats: Stats, window: str, now_s: float) -> dict[str, Any]:
    """Every route over one window, the last minutes slot by slot, and what the system's reasons mean.

    Takes 3 ms of the event loop after a busy hour, 11 where that hour is the window: not for every look. Raises
    `KeyError` for a window that there is none of.
    """
    tally = stats.since_start if window == SINCE_START else stats.over(WINDOWS_S[window], now_s)
    routes = sorted(
        {outcome.route for outcome in tally.counts} | {route for route, count in stats.in_flight.items() if count}
    )
    return {
        "window": window,
        "routes": [{"route": route, "in_flight": stats.in_flight[route], **tally.of_route(route)} for route in routes],
        "slots": [_slot(age_s, tally) for age_s, tally in stats.slots(CHART_S, now_s)],
        "reasons": REASONS,
    }


REASONS: Mapping[str, Mapping[str, str]] = {
    reason: row.message._asdict() for reason, row in TABLE.items() if row.code == SYSTEM
}
"""In both languages."""


def _slot(age_s: float, tally: Tally) -> dict[str, Any]:
    """`age_s`: since it was over. Quantiles are null where nothing ended."""
    durations = Histogram(BOUNDS_S)
    for each in tally.durations.values():
        durations.merge(each)
    quantiles_s = {"p50_ms": durations.quantile(0.5), "p95_ms": durations.quantile(0.95)}
    return {
        "age_s": round(age_s, 1),
        "per_s": round(sum(tally.counts.values()) / SLOT_S, 3),
        "failed": sum(count for outcome, count in tally.counts.items() if outcome.code == str(SYSTEM)),
        **{name: None if value is None else round(value * 1000, 1) for name, value in quantiles_s.items()},
    }
