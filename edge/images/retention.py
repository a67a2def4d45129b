"""Which pictures go: those that are too old, and the oldest where there is not room for all. No I/O, no clock.

Ages are counted by the minute: a hundred thousand pictures are never sorted, nor held in memory by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto

NEARLY_FULL = 0.95
"""Of `max_bytes`: from here on room is made, while there still is some for whoever comes meanwhile."""
ROOM_MADE = 0.9
"""Of `max_bytes`: so much is left when it has been made."""
HELPER_AGE_S = 2 * 3600.0
"""What is no picture (a file that was never finished, a mark of removal) goes at this age. No request lasts so long."""
_SLOT_S = 60.0


@dataclass(frozen=True, slots=True)
class Retention:
    """How long pictures are kept."""

    max_bytes: int
    """All together."""
    max_age_s: float
    """Older ones go, always."""
    min_age_s: float
    """Younger ones never go for want of room: their answer has just been given."""

    def nearly_full(self, used_bytes: int) -> bool:
        """Whether it is time to make room."""
        return used_bytes > NEARLY_FULL * self.max_bytes

    def fits(self, used_bytes: int, more_bytes: int) -> bool:
        """Whether there is room for so much more."""
        return used_bytes + more_bytes <= self.max_bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in the store."""

    name: str
    """As the store calls it."""
    picture: bool
    """Or a helper of ours."""
    made_s: float
    """Unix time."""
    bytes: int


class Why(Enum):
    """Why an entry goes."""

    OLD = auto()
    ROOM = auto()


class Census:
    """A first look at every entry: what is too old, and how much there is of which age.

    What is being `written`, and what was made after `now_s`, is counted by whoever writes it.
    """

    def __init__(self, retention: Retention, now_s: float, written: Collection[str] = ()) -> None:
        self._retention = retention
        self._now_s = now_s
        self._written = written
        self._by_minute: defaultdict[int, int] = defaultdict(int)
        self.bytes = 0
        self.count = 0

    def look(self, entry: Entry) -> Why | None:
        """Whether it goes; counted where it is a picture that stays."""
        max_age_s = self._retention.max_age_s if entry.picture else HELPER_AGE_S
        if self._now_s - entry.made_s > max_age_s:
            return Why.OLD
        if entry.picture and entry.made_s <= self._now_s and entry.name not in self._written:
            self.bytes += entry.bytes
            self.count += 1
            self._by_minute[int(entry.made_s // _SLOT_S)] += entry.bytes
        return None

    def clearance(self, wanted_bytes: int) -> Clearance | None:
        """What else has to go so that there is room, for `wanted_bytes` at least; None where there is."""
        retention = self._retention
        room = retention.fits(self.bytes, wanted_bytes) and not retention.nearly_full(self.bytes)
        if room or not self._by_minute:
            return None
        surplus_bytes = self.bytes - min(int(ROOM_MADE * retention.max_bytes), retention.max_bytes - wanted_bytes)
        minutes = sorted(self._by_minute)
        for minute in minutes[:-1]:
            if self._by_minute[minute] >= surplus_bytes:
                break
            surplus_bytes -= self._by_minute[minute]
        else:
            minute = minutes[-1]
        return Clearance(minute, surplus_bytes, self._now_s - retention.min_age_s)


class Clearance:
    """A second look: all that were made before a minute go, and of that minute, in any order, until enough has gone."""

    def __init__(self, minute: int, surplus_bytes: int, youngest_s: float) -> None:
        self._minute = minute
        self._surplus_bytes = surplus_bytes
        """To go of those made in that minute."""
        self._youngest_s = youngest_s
        """Whatever was made later stays."""

    def look(self, entry: Entry) -> Why | None:
        """Whether it goes."""
        if not entry.picture or entry.made_s > self._youngest_s:
            return None
        minute = int(entry.made_s // _SLOT_S)
        if minute > self._minute or (minute == self._minute and self._surplus_bytes <= 0):
            return None
        if minute == self._minute:
            self._surplus_bytes -= entry.bytes
        return Why.ROOM
