"""How many values fell where: a fixed set of buckets, as Prometheus counts them. Pure.

What records belongs to one thread. Adding one value costs less than a microsecond.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts of values by bucket. `bounds`: the upper end of each bucket, that end included, rising; one more bucket
    holds what lies above the last.
    """

    __slots__ = ("_bounds", "counts", "largest", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """One for each bucket, the one above the last bound included."""
        self.total = 0.0
        """Sum of all values."""
        self.largest = 0.0

    @property
    def count(self) -> int:
        """Values in all."""
        return sum(self.counts)

    def add(self, value: float) -> None:
        """One value, not below zero."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value
        if value > self.largest:  # noqa: PLR1730  (`max` takes three times as long)
            self.largest = value

    def merge(self, other: Histogram) -> None:
        """Add what `other`, with the same bounds, has counted."""
        self.counts = [ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total
        self.largest = max(self.largest, other.largest)

    def copy(self) -> Histogram:
        """One of its own, that goes on by itself."""
        same = Histogram(self._bounds)
        same.merge(self)
        return same

    def quantile(self, share: float) -> float | None:
        """Value below which `share` (0 to 1) of them lie, as if each bucket's were spread evenly; None where there are
        none. Off by less than the width of the bucket that the true one lies in.
        """
        count = self.count
        if count == 0:
            return None
        rank, below = share * count, 0
        for at, here in enumerate(self.counts):
            if here and below + here >= rank:
                low = self._bounds[at - 1] if at else 0.0
                high = min(self._bounds[at], self.largest) if at < len(self._bounds) else self.largest
                return low + (high - low) * max(0.0, rank - below) / here
            below += here
        return self.largest

    def cumulative(self) -> list[tuple[float, int]]:
        """Upper bound and how many values are not above it, bucket by bucket; the last one is without a bound."""
        rows, below = [], 0
        for bound, here in zip((*self._bounds, float("inf")), self.counts, strict=True):
            below += here
            rows.append((bound, below))
        return rows
