"""All connections of clients, and which of them has to go where there are too many. Nobody is refused at the door.

A new connection may be one of alerting, and what it wants is known only once its request is there. So it is let in,
and the one that has waited the longest for a request goes instead: kept alive for nothing, or slow on purpose.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from enum import StrEnum
from typing import Protocol

RESERVED = 64
"""Connections beyond `limits.max_connections`: for probes and refusals while that many requests run."""


class Closed(StrEnum):
    """Why the edge ended a connection before its client did."""

    BAD_REQUEST = "bad_request"
    """What came is not HTTP."""
    HEAD_TOO_LARGE = "head_too_large"
    HEAD_LATE = "head_late"
    """A request's head, or the rest of a body that nobody wanted, did not come in time."""
    NOT_READING = "not_reading"
    """The client did not take its answer."""
    SENT_AHEAD = "sent_ahead"
    """Something came behind a request before its answer was out."""
    CROWDED_OUT = "crowded_out"
    """Others needed the room."""


class Guest(Protocol):
    """A connection."""

    @property
    def is_refused(self) -> bool:
        """Whether its client has its refusal and is merely given time to read it."""

    def give_way(self) -> None:
        """Be gone at once."""


class Crowd:
    """The connections that are open."""

    def __init__(self) -> None:
        self._all: set[Guest] = set()
        self._waiting: OrderedDict[Guest, None] = OrderedDict()
        """Those without a request, the one that has waited the longest first."""
        self.closed: Counter[Closed] = Counter()

    def __len__(self) -> int:
        """How many are open."""
        return len(self._all)

    @property
    def waiting(self) -> int:
        """How many of them have no request."""
        return len(self._waiting)

    def came(self, guest: Guest, max_connections: int) -> None:
        """A new one, waiting for its first request; where it is one too many, another has to go."""
        if len(self._all) >= max_connections + RESERVED and (leaves := self._least_missed()) is not None:
            self.left(leaves)
            self.closed[Closed.CROWDED_OUT] += 1
            leaves.give_way()
        self._all.add(guest)
        self._waiting[guest] = None

    def serves(self, guest: Guest) -> None:
        """It has a request."""
        self._waiting.pop(guest, None)

    def waits(self, guest: Guest) -> None:
        """Its request is answered."""
        if guest in self._all:
            self._waiting[guest] = None

    def left(self, guest: Guest) -> None:
        """It is closed."""
        self._all.discard(guest)
        self._waiting.pop(guest, None)

    def _least_missed(self) -> Guest | None:
        """None where every one of them is being served."""
        return next(iter(self._waiting), None) or next((guest for guest in self._all if guest.is_refused), None)
