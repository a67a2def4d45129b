"""Token buckets, on a clock of the test's own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.rate_limit import Buckets, Policy, site_of

SIXTY = Policy("key", per_minute=60, burst=5)


def test_a_burst_then_a_steady_rate() -> None:
    buckets = Buckets()
    assert [buckets.use("a", SIXTY, 0.0)[0] for _ in range(6)] == [True] * 5 + [False]
    allowed, level = buckets.use("a", SIXTY, 0.25)
    assert not allowed
    assert level.next_in_s == pytest.approx(0.75)
    assert buckets.use("a", SIXTY, 1.0)[0]
    assert not buckets.use("a", SIXTY, 1.9)[0]
    assert [buckets.use("a", SIXTY, 100.0)[0] for _ in range(6)] == [True] * 5 + [False], "full again, and not more"


def test_each_key_has_its_own() -> None:
    buckets = Buckets()
    for _ in range(5):
        buckets.use("a", SIXTY, 0.0)
    assert not buckets.use("a", SIXTY, 0.0)[0]
    assert buckets.use("b", SIXTY, 0.0)[0]


def test_looking_uses_nothing() -> None:
    buckets = Buckets()
    assert [buckets.level("a", SIXTY, 0.0).tokens for _ in range(3)] == [5.0] * 3
    assert len(buckets) == 0


def test_another_policy_holds_at_once() -> None:
    buckets = Buckets()
    buckets.use("a", SIXTY, 0.0)
    assert buckets.level("a", Policy("key", 60, 2), 0.0).tokens == 2
    for _ in range(2):
        assert buckets.use("a", Policy("key", 60, 2), 0.0)[0]
    assert not buckets.use("a", SIXTY, 0.0)[0], "more room is no gift"


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    buckets = Buckets()
    for _ in range(5):
        buckets.use("a", SIXTY, 10.0)
    assert not buckets.use("a", SIXTY, 5.0)[0]


def test_memory_is_bounded_and_the_one_unused_the_longest_is_forgotten() -> None:
    buckets = Buckets(max_buckets=3)
    for key in "abcd":
        buckets.use(key, SIXTY, 0.0)
    assert len(buckets) == 3
    assert buckets.level("a", SIXTY, 0.0).tokens == 5
    assert buckets.level("b", SIXTY, 0.0).tokens == 4


def test_a_refused_use_keeps_its_bucket_from_being_forgotten() -> None:
    buckets = Buckets(max_buckets=2)
    for _ in range(6):
        buckets.use("loud", SIXTY, 0.0)
    for key in "abc":
        buckets.use(key, SIXTY, 0.0)
        assert not buckets.use("loud", SIXTY, 0.0)[0]


@given(
    per_minute=st.floats(0.1, 10_000),
    burst=st.integers(1, 1_000),
    steps=st.lists(st.floats(0, 30), min_size=1, max_size=60),
)
def test_never_more_than_the_burst_and_what_came_since(per_minute: float, burst: int, steps: list[float]) -> None:
    buckets, policy, now_s, used = Buckets(), Policy("key", per_minute, burst), 0.0, 0
    for step in steps:
        now_s += step
        allowed, level = buckets.use("a", policy, now_s)
        used += allowed
        assert used <= burst + now_s * policy.per_s + 1e-6
        assert 0 <= level.tokens <= burst
        assert allowed or level.next_in_s > 0
        match = re.fullmatch(r'"key";r=(\d+);t=(\d+)', level.headers()["RateLimit"])
        assert match is not None
        left, full_in_s = map(int, match.groups())
        assert left == int(level.tokens)
        assert full_in_s <= policy.window_s


def test_the_headers_say_quota_window_and_what_is_left() -> None:
    """draft-ietf-httpapi-ratelimit-headers-10: both are lists of a name with parameters."""
    buckets, policy = Buckets(), Policy("address", per_minute=30, burst=10)
    _, level = buckets.use("a", policy, 0.0)
    assert level.headers() == {"RateLimit-Policy": '"address";q=10;w=20', "RateLimit": '"address";r=9;t=2'}
    for _ in range(9):
        _, level = buckets.use("a", policy, 0.0)
    assert level.headers()["RateLimit"] == '"address";r=0;t=20'
    assert buckets.level("a", policy, 19.99).headers()["RateLimit"] == '"address";r=9;t=1'


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_addresses_of_one_ipv6_network_share_a_bucket(address: str, site: str) -> None:
    assert site_of(address) == site
