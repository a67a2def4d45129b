"""What was measured of late, for promises: service times, and how many retries are in the budget."""

from __future__ import annotations

import math
from collections import deque
from statistics import median

from edge.pool import config as fixed


class ServiceTimes:
    """Service times of the last good calls of one lane."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=fixed.SERVICE_SAMPLES)

    def add(self, now_s: float, took_s: float) -> None:
        """A call was answered after `took_s`."""
        self._samples.append((now_s, took_s))

    def median_s(self, now_s: float) -> float | None:
        """Median of the fresh ones, in s; None when too few say anything."""
        samples = self._samples
        while samples and samples[0][0] < now_s - fixed.SERVICE_SAMPLE_AGE_S:
            samples.popleft()
        if len(samples) < fixed.SERVICE_SAMPLES_MIN:
            return None
        return median(took_s for _, took_s in samples)


class RetryBudget:
    """Retries may be `RETRY_SHARE` of the requests, `RETRY_FLOOR_PER_S` in any case, `RETRY_BURST` saved up at most."""

    def __init__(self) -> None:
        self._saved = fixed.RETRY_BURST
        self._counted_s = -math.inf

    def request(self) -> None:
        """A request came in."""
        self._saved = min(fixed.RETRY_BURST, self._saved + fixed.RETRY_SHARE)

    def spend(self, now_s: float) -> bool:
        """Take one retry out, if there is one."""
        floor = max(0.0, now_s - self._counted_s) * fixed.RETRY_FLOOR_PER_S
        self._saved = min(fixed.RETRY_BURST, self._saved + floor)
        self._counted_s = now_s
        if self._saved < 1.0:
            return False
        self._saved -= 1.0
        return True
