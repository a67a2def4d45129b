"""How long calls take here, as measured. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median

_KEPT_PER_METHOD = 100


class ServiceTimes:
    """Service times of the last minutes by RPC name."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._samples: dict[str, deque[tuple[float, float]]] = {}

    def add(self, method: str, duration_s: float, now_s: float) -> None:
        """One call of `method` took `duration_s` and ended at `now_s`."""
        self._samples.setdefault(method, deque(maxlen=_KEPT_PER_METHOD)).append((now_s, duration_s))

    def medians_s(self, now_s: float) -> Mapping[str, float]:
        """Median of each RPC with at least one call inside the window."""
        oldest_s = now_s - self._window_s
        recent = {
            method: [duration for ended_s, duration in samples if ended_s >= oldest_s]
            for method, samples in self._samples.items()
        }
        return {method: median(durations) for method, durations in recent.items() if durations}
