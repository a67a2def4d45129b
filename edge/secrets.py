"""Who may come in: tokens as requests bring them, compared in one way, and what repeated wrong ones come to.

Passwords and tokens that people chose can be guessed, so an address has a few wrong ones and then must wait: until then
its tokens are not even looked at, the right one included, for otherwise guessing would go on. No other address is
concerned, nor any other door. The same wrong one again is no other guess: that one alone must wait, so that a script
which still has the old one after a rotation does not shut out its neighbours. API keys cannot be guessed (they are 128
random bits, or more), so the right one is always taken.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import blake2b

import structlog
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.requests import Request

from edge.errors import ApiError
from edge.peers import client_address
from edge.rate_limit import Buckets, Policy, site_of
from edge.reload import InForce
from hairmesh import flood
from hairmesh.flood import Flood, Later
from hairmesh.secret import is_one_of

WRONG_TOKENS = Policy("wrong-tokens", per_minute=10, burst=10)
"""How many different wrong ones an address has at each door, and how often it may show each of them."""
ADMIN_HEADER = "x-admin-token"
CHALLENGE = {"WWW-Authenticate": "Bearer"}
LOG_PERIOD_S = 60.0
"""The log tells of the first wrong one at each door at once, then of all of them there together, so often."""

log = structlog.get_logger()


class Door(StrEnum):
    """What a token opens."""

    ADMIN = "admin"
    DRILL = "drill"
    API = "api"


class Finding(StrEnum):
    """What came of looking at one."""

    GOOD = "good"
    MISSING = "missing"
    WRONG = "wrong"
    TOO_MANY = "too_many"
    """Wrong ones came from there: this one was not looked at, or is one of them once more."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to answer."""

    finding: Finding
    retry_after_s: float = 0.0
    """For `TOO_MANY`."""


GOOD, MISSING, WRONG = Verdict(Finding.GOOD), Verdict(Finding.MISSING), Verdict(Finding.WRONG)


def bearer_or(headers: Headers, name: str) -> bytes | None:
    """The token that a request brings as `Authorization: Bearer …` or in the header `name`.

    None when it brings none, or more than one, or one in another way: of two, another reader might take the other.
    """
    shown = [value.encode("latin-1") for value in headers.getlist(name)]
    for value in headers.getlist("authorization"):
        scheme, _, credentials = value.partition(" ")
        shown.append(credentials.strip().encode("latin-1") if scheme.lower() == "bearer" else b"")
    return shown[0] if len(shown) == 1 and shown[0] else None


class Gate:
    """Judges what is shown at every door, and counts."""

    def __init__(
        self, in_force: InForce, clock: Callable[[], float] = time.monotonic, later: Later = flood.later
    ) -> None:
        self._in_force = in_force
        self._clock = clock
        self._wrong = Buckets()
        """By door and site; each different wrong one uses one token."""
        self._repeated = Buckets()
        """By door, site and what was shown, as a keyed hash. Apart, so that they push no site out of memory."""
        self._hash_key = secrets.token_bytes(16)
        self.refused: Counter[tuple[Door, Finding]] = Counter()
        """Since the start, for metrics."""
        self._told = {
            door: Flood(partial(_tell, door), period_s=LOG_PERIOD_S, clock=clock, later=later) for door in Door
        }

    def close(self) -> None:
        """Tell the log of what waits."""
        for told in self._told.values():
            told.close()

    def client_of(self, peer: str, headers: Headers) -> str:
        """Whose request it is: the address that counts is the client's, not that of a proxy which is trusted."""
        trusted = self._in_force.settings.trusted_proxies
        return client_address(peer, headers.getlist("x-forwarded-for"), trusted) if trusted else peer

    def judge_admin(self, request: Request) -> Verdict:
        """An admin token, as every page and call of operators takes it."""
        shown = bearer_or(request.headers, ADMIN_HEADER)
        return self.judge(Door.ADMIN, request, shown, self._in_force.settings.admin_tokens)

    def judge(self, door: Door, request: Request, shown: bytes | None, accepted: Iterable[SecretStr]) -> Verdict:
        """A token that can be guessed, as `request` brings it."""
        peer = request.client.host if request.client else ""
        return self.judge_from(door, self.client_of(peer, request.headers), shown, accepted)

    def judge_from(self, door: Door, client: str, shown: bytes | None, accepted: Iterable[SecretStr]) -> Verdict:
        """The same, from an address."""
        if shown is not None and (wait_s := self._wait_s(door, client)):
            return self._refuse(door, client, Verdict(Finding.TOO_MANY, wait_s))
        if shown is None:
            return self._refuse(door, client, MISSING)
        if is_one_of(shown, (each.get_secret_value().encode() for each in accepted)):
            return GOOD
        return self._refuse(door, client, self._wrong_one(door, site_of(client), shown))

    def _wrong_one(self, door: Door, site: str, shown: bytes) -> Verdict:
        now_s = self._clock()
        this_one = (door, site, blake2b(shown, key=self._hash_key, digest_size=16).digest())
        if self._repeated.is_full(this_one, WRONG_TOKENS, now_s):  # a guess, and not what was shown a moment ago
            self._wrong.use((door, site), WRONG_TOKENS, now_s)
        allowed, level = self._repeated.use(this_one, WRONG_TOKENS, now_s)
        return WRONG if allowed else Verdict(Finding.TOO_MANY, level.next_in_s)

    def wrong_key(self, client: str, *, missing: bool) -> Verdict:
        """An API key that is none; it was looked at."""
        if missing:
            return self._refuse(Door.API, client, MISSING)
        allowed, level = self._wrong.use((Door.API, site_of(client)), WRONG_TOKENS, self._clock())
        return self._refuse(Door.API, client, WRONG if allowed else Verdict(Finding.TOO_MANY, level.next_in_s))

    def _wait_s(self, door: Door, client: str) -> float:
        return self._wrong.level((door, site_of(client)), WRONG_TOKENS, self._clock()).next_in_s

    def _refuse(self, door: Door, client: str, verdict: Verdict) -> Verdict:
        self.refused[door, verdict.finding] += 1
        if verdict.finding is not Finding.MISSING:
            self._told[door].note(clients=client)
        return verdict


def _tell(door: Door, count: int, seen: Mapping[str, list[str]]) -> None:
    log.warning("wrong_tokens", door=door.value, count=count, **seen)


def refusal_of(verdict: Verdict) -> ApiError:
    """What to raise under `/api/` for a verdict that is not good."""
    if verdict.finding is Finding.TOO_MANY:
        return ApiError("TOO_MANY_WRONG_TOKENS", retry_after_s=verdict.retry_after_s)
    return ApiError("UNAUTHORIZED", headers=CHALLENGE)
