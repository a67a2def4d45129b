"""How often something may happen: token buckets, in bounded memory. Pure: the time is an argument.

A bucket holds as many tokens as may be used at once, and fills at a steady rate. What it says for clients follows
draft-ietf-httpapi-ratelimit-headers-10: its quota is a full bucket, its window the time in which an empty one fills.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network

MAX_BUCKETS = 10_000
"""Beyond them, the one that was used the longest ago is forgotten: whoever can come from so many addresses has as many
buckets anyway."""
IPV6_PREFIX = 64
"""One site has at least so much of the address space: its addresses share a bucket."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How much of a thing one may have."""

    name: str
    """For clients; printable ASCII without a quotation mark."""
    per_minute: float
    burst: int
    """At once."""

    @property
    def per_s(self) -> float:
        """How fast a bucket fills."""
        return self.per_minute / 60

    @property
    def window_s(self) -> int:
        """In which an empty bucket fills, whole seconds."""
        return max(1, math.ceil(self.burst / self.per_s))


@dataclass(frozen=True, slots=True)
class Level:
    """A bucket at one moment."""

    policy: Policy
    tokens: float

    @property
    def next_in_s(self) -> float:
        """Until there is a whole token; 0 when there is one."""
        return max(0.0, (1 - self.tokens) / self.policy.per_s)

    def headers(self) -> Mapping[str, str]:
        """What the client is told. Costs 2 µs."""
        policy = self.policy
        full_in_s = math.ceil((policy.burst - self.tokens) / policy.per_s)
        return {
            "RateLimit-Policy": f'"{policy.name}";q={policy.burst};w={policy.window_s}',
            "RateLimit": f'"{policy.name}";r={int(self.tokens)};t={full_in_s}',
        }


class Buckets:
    """One bucket for each key, full when it is seen first."""

    def __init__(self, max_buckets: int = MAX_BUCKETS) -> None:
        self._max_buckets = max_buckets
        self._tokens: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """Tokens, and when there were so many; the one used last at the end."""

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._tokens)

    def level(self, key: Hashable, policy: Policy, now_s: float) -> Level:
        """Look, and use nothing."""
        tokens, at_s = self._tokens.get(key, (float(policy.burst), now_s))
        return Level(policy, min(float(policy.burst), tokens + max(0.0, now_s - at_s) * policy.per_s))

    def is_full(self, key: Hashable, policy: Policy, now_s: float) -> bool:
        """Whether nothing of it was used lately."""
        return self.level(key, policy, now_s).tokens >= policy.burst

    def use(self, key: Hashable, policy: Policy, now_s: float) -> tuple[bool, Level]:
        """Use one token, if there is one; whether there was, and what is left."""
        level = self.level(key, policy, now_s)
        allowed = level.tokens >= 1
        if allowed:
            level = Level(policy, level.tokens - 1)
        self._tokens[key] = level.tokens, now_s
        self._tokens.move_to_end(key)
        while len(self._tokens) > self._max_buckets:
            self._tokens.popitem(last=False)
        return allowed, level


def site_of(address: str) -> str:
    """What an address shares its bucket with: itself, or its IPv6 network; anything that is no address is itself."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or ip_network((parsed, IPV6_PREFIX), strict=False))
    return str(parsed)
