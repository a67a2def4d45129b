"""All connections of clients, and which of them has to go where there are too many. Nobody is refused at the door.

A new connection may be one of alerting, and what it wants is known only once its request is there. So it is let in,
and another goes instead: who is missed least. In this order:

1. who has waited the longest for a request, with its answer taken: kept alive for nothing, or slow on purpose;
2. who has its refusal, and is merely given time to read it;
3. who takes its answer the most slowly;
4. whose request came last. `Room` answers requests under `/api/` beyond `limits.max_connections` at once, so this
   takes `RESERVED` others that are being answered in the same moment: the least work is lost with the newest.

The bytes of answers that wait to be taken are bounded too, over all of them: beyond it goes who takes them the most
slowly. Only answers that the system's own buffers did not take count: up to 80 KiB of each connection do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from edge.settings import Limits

RESERVED = 64
"""Connections beyond `limits.max_connections`: for probes and refusals while that many requests run."""
HEAD_START_BYTES = 65_536
HEAD_START_S = 1.0
"""So much in so long is what an answer counts as taken at least: what the first moment shows is chance, like the piece
that a buffer had room for after all. Among those of whom no more is known, who has waited longest goes."""


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
    NO_TLS = "no_tls"
    """The handshake of HTTPS failed, or did not end in time."""
    CROWDED_OUT = "crowded_out"
    """Others needed the room."""


class Guest(Protocol):
    """A connection."""

    @property
    def is_refused(self) -> bool:
        """Whether its client has its refusal and is merely given time to read it."""

    @property
    def unread_bytes(self) -> int:
        """Of its answers, that the system's buffers have not taken."""

    def give_way(self) -> None:
        """Be gone at once."""


@dataclass(frozen=True, slots=True)
class Unread:
    """An answer that waits to be taken."""

    size: int
    """Bytes, when it began to wait."""
    since_s: float

    def pace(self, left: int, now_s: float) -> float:
        """Bytes per second at which it was taken, of which so many are left."""
        return max(self.size - left, HEAD_START_BYTES) / max(now_s - self.since_s, HEAD_START_S)


class Crowd:
    """The connections that are open. Each is idle, is served, or is read: its answer waits to be taken."""

    def __init__(self, limits: Callable[[], Limits], clock: Callable[[], float]) -> None:
        """`limits`: as they are in force now. `clock`: seconds."""
        self._limits = limits
        self._clock = clock
        self._all: set[Guest] = set()
        self._idle: dict[Guest, None] = {}
        """Those without a request and with nothing to take, the one that has waited the longest first."""
        self._served: dict[Guest, None] = {}
        """Those with a request, the oldest first; some of them may be read already."""
        self._read: dict[Guest, Unread] = {}
        """In the order in which they began to wait."""
        self._read_bytes = 0
        """Their sizes: at least what is unread, which shrinks while nobody tells."""
        self.closed: Counter[Closed] = Counter()

    def __len__(self) -> int:
        """How many are open."""
        return len(self._all)

    @property
    def waiting(self) -> int:
        """How many of them have no request."""
        return len(self._all) - len(self._served)

    def came(self, guest: Guest) -> None:
        """A new one, waiting for its first request; where it is one too many, another has to go."""
        while len(self._all) >= self._limits().max_connections + RESERVED:
            self._send_away(self._least_missed())
        self._all.add(guest)
        self._idle[guest] = None

    def make_room(self, count: int) -> None:
        """So many have to go, if there are that many: the system has no room for more."""
        for _ in range(min(count, len(self._all))):
            self._send_away(self._least_missed())

    def serves(self, guest: Guest) -> None:
        """It has a request."""
        if guest in self._all:
            self._idle.pop(guest, None)
            self._served[guest] = None

    def waits(self, guest: Guest) -> None:
        """Its request is answered, which does not mean that the answer was taken."""
        self._served.pop(guest, None)
        if guest in self._all and guest not in self._read:
            self._idle[guest] = None

    def fills(self, guest: Guest) -> None:
        """Its answer is more than the system's buffers take: the rest waits. Where it is too much, somebody goes."""
        if guest not in self._all:
            return
        self._idle.pop(guest, None)
        self._forget_reading(guest)
        self._read[guest] = Unread(guest.unread_bytes, self._clock())
        self._read_bytes += self._read[guest].size
        allowed = self._limits().max_sending_bytes
        if self._read_bytes <= allowed:
            return
        unread = sum(each.unread_bytes for each in self._read)
        while unread > allowed:
            slowest = self._slowest()
            unread -= slowest.unread_bytes
            self._send_away(slowest)

    def drained(self, guest: Guest) -> None:
        """Its answer was taken, but for a little."""
        if self._forget_reading(guest) and guest not in self._served:
            self._idle[guest] = None

    def left(self, guest: Guest) -> None:
        """It is closed."""
        self._all.discard(guest)
        self._idle.pop(guest, None)
        self._served.pop(guest, None)
        self._forget_reading(guest)

    def _forget_reading(self, guest: Guest) -> bool:
        unread = self._read.pop(guest, None)
        if unread is not None:
            self._read_bytes -= unread.size
        return unread is not None

    def _send_away(self, guest: Guest) -> None:
        self.left(guest)
        self.closed[Closed.CROWDED_OUT] += 1
        guest.give_way()

    def _least_missed(self) -> Guest:
        """There is one: this is asked where there are too many."""
        if (guest := next((each for each in self._idle if not each.unread_bytes), None)) is not None:
            return guest
        if (guest := next((each for each in self._served if each.is_refused), None)) is not None:
            return guest
        if self._read:
            return self._slowest()
        return next(iter(self._idle), None) or next(reversed(self._served))

    def _slowest(self) -> Guest:
        now_s = self._clock()
        return min(self._read, key=lambda guest: self._read[guest].pace(guest.unread_bytes, now_s))
