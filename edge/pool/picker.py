"""Which free worker gets a request.

Online endpoints stand in two tiers, primaries and backups, and in each the free ones in the order of their last use:
the one whose last call began longest ago is first. The same again for those that have a capability, as soon as a
request asks for it. Everything is kept up to date endpoint by endpoint (`Ranks.place`), so that a pick looks at nobody
else.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from edge.pool.endpoint import Endpoint

_turn = attrgetter("turn")


class Line:
    """Free endpoints in the order of their turns."""

    __slots__ = ("_endpoints",)

    def __init__(self) -> None:
        self._endpoints: list[Endpoint] = []

    def __bool__(self) -> bool:
        """Whether anybody stands there."""
        return bool(self._endpoints)

    def __contains__(self, endpoint: Endpoint) -> bool:
        """Whether this one does."""
        line = self._endpoints
        place = bisect_left(line, endpoint.turn, key=_turn)
        return place < len(line) and line[place] is endpoint

    def add(self, endpoint: Endpoint) -> None:
        """It stands at its place, if it did not before."""
        line = self._endpoints
        place = bisect_left(line, endpoint.turn, key=_turn)
        if place == len(line) or line[place] is not endpoint:
            line.insert(place, endpoint)

    def discard(self, endpoint: Endpoint) -> None:
        """It does not stand there."""
        line = self._endpoints
        place = bisect_left(line, endpoint.turn, key=_turn)
        if place < len(line) and line[place] is endpoint:
            del line[place]

    def first(self, tried: Collection[str]) -> Endpoint | None:
        """Whose turn it is, but for those in `tried`."""
        for endpoint in self._endpoints:
            if endpoint.target not in tried:
                return endpoint
        return None


@dataclass(slots=True, eq=False)
class Tier:
    """Online endpoints of one priority."""

    online: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    """Those whose slot a slow call holds."""
    free: Line = field(default_factory=Line)
    trial: Line = field(default_factory=Line)
    """Free as well, but only for a trial call (`edge.pool.brake`)."""

    def any_online(self, tried: Collection[str]) -> bool:
        """Whether anyone is, besides those in `tried`."""
        if not tried:
            return bool(self.online)
        return len(self.online) > sum(target in self.online for target in tried)

    def first(self, tried: Collection[str], *, trial: bool) -> Endpoint | None:
        """The free one whose turn it is, not in `tried`; one on trial before all others, where one may be."""
        if trial and self.trial and (endpoint := self.trial.first(tried)) is not None:
            return endpoint
        return self.free.first(tried)

    def forget(self, endpoint: Endpoint) -> None:
        """It is offline, or gone."""
        self.online.discard(endpoint.target)
        self.slow.discard(endpoint.target)
        self.free.discard(endpoint)
        self.trial.discard(endpoint)

    def place(self, endpoint: Endpoint, *, free: bool, slow: bool) -> None:
        """One that is online here: whether its slot may be used, and whether a slow call holds it."""
        (self.slow.add if slow else self.slow.discard)(endpoint.target)
        here, elsewhere = (self.trial, self.free) if endpoint.on_trial else (self.free, self.trial)
        if elsewhere:
            elsewhere.discard(endpoint)
        (here.add if free else here.discard)(endpoint)


@dataclass(slots=True, eq=False)
class _Group:
    """Everyone, or those with one capability."""

    primary: Tier = field(default_factory=Tier)
    backup: Tier = field(default_factory=Tier)


class Ranks:
    """Who is online, who of them is free, and who gets the next request."""

    def __init__(self) -> None:
        self._everyone = _Group()
        self._able: dict[str, _Group] = {}
        """By capability, for those that were ever asked for."""
        self._members: dict[str, Endpoint] = {}
        self._tiers: dict[str, tuple[Tier, ...]] = {}
        """By target: where it stands."""
        self._standing: dict[str, tuple[bool, frozenset[str]]] = {}
        """By target: what put it there."""

    def place(self, endpoint: Endpoint, *, free: bool, slow: bool) -> None:
        """Bring everything up to date for one endpoint. `free`: its slot may be used. `slow`: a slow call holds it."""
        target = endpoint.target
        if not endpoint.online:
            self.remove(endpoint)
            return
        standing = (endpoint.primary, endpoint.capabilities)
        if standing != self._standing.get(target):
            self.remove(endpoint)
            self._members[target], self._standing[target] = endpoint, standing
            self._tiers[target] = tuple(self._tiers_for(endpoint))
            for tier in self._tiers[target]:
                tier.online.add(target)
        for tier in self._tiers[target]:
            tier.place(endpoint, free=free, slow=slow)

    def remove(self, endpoint: Endpoint) -> None:
        """It is offline, or gone."""
        for tier in self._tiers.pop(endpoint.target, ()):
            tier.forget(endpoint)
        self._members.pop(endpoint.target, None)
        self._standing.pop(endpoint.target, None)

    @property
    def any_online(self) -> bool:
        """Whether calls can go anywhere."""
        return bool(self._members)

    def online(self) -> int:
        """How many are."""
        return len(self._members)

    @property
    def any_free(self) -> bool:
        """Whether any slot may be used."""
        first, second = self._everyone.primary, self._everyone.backup
        return bool(first.free or second.free or first.trial or second.trial)

    @property
    def at_work(self) -> Tier:
        """The tier that shares the work: the primaries, or the backups when no primary is online."""
        return self._everyone.primary if self._everyone.primary.online else self._everyone.backup

    def all_tried(self, tried: Collection[str]) -> bool:
        """Whether every online endpoint is in `tried`."""
        return len(self._members) == sum(target in self._members for target in tried)

    def is_free(self, endpoint: Endpoint, *, trial: bool) -> bool:
        """Whether this one may get a request now. `trial`: one on trial may."""
        tier = self._everyone.primary if endpoint.primary else self._everyone.backup
        return endpoint in (tier.trial if endpoint.on_trial and trial else tier.free)

    def pick(
        self, tried: Collection[str] = (), capability: str = "", *, spill: bool = False, trial: bool = False
    ) -> Endpoint | None:
        """Who gets a request now; None: it waits.

        Never one in `tried`. A backup only when no (other) primary is online, or with `spill` when none is free. One
        that has `capability` when any of the tier has, else any. `trial`: one on trial may be used.
        """
        if self._everyone.primary.any_online(tried):
            found = self._pick(tried, capability, trial, primary=True)
            if found is not None or not spill:
                return found
        return self._pick(tried, capability, trial, primary=False)

    def _pick(self, tried: Collection[str], capability: str, trial: bool, *, primary: bool) -> Endpoint | None:
        group = self._everyone
        if capability:
            able = self._group(capability)
            if (able.primary if primary else able.backup).any_online(tried):
                group = able
        return (group.primary if primary else group.backup).first(tried, trial=trial)

    def _group(self, capability: str) -> _Group:
        """Those that have it; put together when the first request asks."""
        group = self._able.get(capability)
        if group is None:
            group = self._able[capability] = _Group()
            for target, endpoint in self._members.items():
                if capability in endpoint.capabilities:
                    tier = group.primary if endpoint.primary else group.backup
                    everyone = self._tiers[target][0]
                    tier.online.add(target)
                    free = endpoint in everyone.free or endpoint in everyone.trial
                    tier.place(endpoint, free=free, slow=target in everyone.slow)
                    self._tiers[target] = (*self._tiers[target], tier)
        return group

    def _tiers_for(self, endpoint: Endpoint) -> Iterable[Tier]:
        """Everyone's first."""
        able = (group for capability, group in self._able.items() if capability in endpoint.capabilities)
        for group in (self._everyone, *able):
            yield group.primary if endpoint.primary else group.backup
