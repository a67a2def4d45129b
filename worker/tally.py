"""What a worker counts of its calls, since the start: for metrics. Belongs to the event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from hairmesh.histogram import Histogram
from worker.progress import StageTime

CALL_BOUNDS_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 15, 20, 30, 60, 120)
STAGE_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120)


@dataclass(slots=True)
class Tally:
    """Calls and their stages, and who was turned away."""

    handled: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By RPC of `AnalyzeService` and gRPC's name of how it ended."""
    took: dict[str, Histogram] = field(default_factory=dict)
    """How long calls took, in s, by RPC."""
    stages: dict[str, Histogram] = field(default_factory=dict)
    """How long stages took, in s, by name."""
    turned_away: Counter[str] = field(default_factory=Counter)
    """Calls without a good password, by `/service/method`; all that this worker does not know under an empty name."""

    def call_ended(self, method: str, code: str, took_s: float, stages: Iterable[StageTime]) -> None:
        """A call is over."""
        self.handled[method, code] += 1
        _add(self.took, method, CALL_BOUNDS_S, took_s)
        for stage in stages:
            _add(self.stages, stage.stage, STAGE_BOUNDS_S, stage.ended_s - stage.began_s)


def _add(histograms: dict[str, Histogram], name: str, bounds: tuple[float, ...], value: float) -> None:
    histogram = histograms.get(name)
    if histogram is None:
        histogram = histograms[name] = Histogram(bounds)
    histogram.add(value)
