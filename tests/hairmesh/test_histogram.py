"""Histograms against the values themselves."""

from __future__ import annotations

import math
from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from hairmesh.histogram import Histogram

BOUNDS = (0.1, 0.5, 1.0, 5.0)
VALUES = st.lists(st.floats(0, 100) | st.sampled_from(BOUNDS), max_size=60)


def of(values: list[float]) -> Histogram:
    histogram = Histogram(BOUNDS)
    for value in values:
        histogram.add(value)
    return histogram


@given(VALUES)
def test_counts_are_those_of_the_values(values: list[float]) -> None:
    histogram = of(values)
    assert histogram.count == len(values)
    assert math.isclose(histogram.total, sum(values), abs_tol=1e-9)
    assert histogram.largest == max(values, default=0.0)
    for bound, count in histogram.cumulative():
        assert count == sum(value <= bound for value in values)


@given(VALUES, VALUES)
def test_merging_is_counting_together(first: list[float], second: list[float]) -> None:
    merged, copied = of(first), of(first)
    merged.merge(of(second))
    assert merged.counts == of(first + second).counts
    assert merged.largest == of(first + second).largest
    assert copied.copy().counts == copied.counts
    copied.copy().add(1.0)
    assert copied.count == len(first), "a copy goes on by itself"


@given(VALUES.filter(bool), st.floats(0.01, 1))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(values: list[float], share: float) -> None:
    true = sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)]
    told = of(values).quantile(share)
    assert told is not None
    bucket = bisect_left(BOUNDS, true)
    low = BOUNDS[bucket - 1] if bucket else 0.0
    high = BOUNDS[bucket] if bucket < len(BOUNDS) else max(values)
    assert low * (1 - 1e-12) <= told <= high * (1 + 1e-12)  # its ends are sums of differences


def test_of_nothing_there_is_no_quantile() -> None:
    assert of([]).quantile(0.5) is None
