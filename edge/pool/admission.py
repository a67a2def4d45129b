"""Who may come in, and in what order they get workers.

Fast and slow calls are two lanes, each first come first served. Inside are `max_in_flight` requests, running or waiting
for a worker; the rest waits outside, and there its bodies count. Slow calls take at most a share of the places inside,
so that a fast one never stands outside for their sake.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from edge.pool import config as fixed
from edge.pool.agenda import Alarm
from edge.pool.config import DispatchConfig


class Place(Enum):
    """Where a request is."""

    NEW = auto()
    OUTSIDE = auto()
    WAITING = auto()
    """Inside, for a worker."""
    RUNNING = auto()


@dataclass(slots=True, eq=False)
class Request:
    """A client's call from arrival to answer."""

    call_id: str
    number: int
    """Its place in the order of arrival."""
    slow: bool
    deadline_s: float
    size_bytes: int
    capability: str = ""
    """What a worker should be able to do for it."""
    input_key: str = ""
    """Of its input; empty until it matters."""
    client_key: str = ""
    place: Place = Place.NEW
    give_up_s: float = 0.0
    """While it waits: when its waiting ends."""
    spill_s: float = math.inf
    """While it waits inside: from when on a backup may help."""
    waits_since_s: float = 0.0
    queue_s: float = 0.0
    """Waiting so far, the present one not counted, in s."""
    attempts: int = 0
    retries: int = 0
    broke: int = 0
    """Workers that died of it or failed on it."""
    tried: tuple[str, ...] = ()
    """Endpoints that failed it."""
    endpoint: str = ""
    """The last one it ran on."""
    began_s: float = 0.0
    """When its last attempt began."""
    attempt_s: float = 0.0
    """Time its last attempt was given, in s."""
    full_time: bool = False
    """Whether that is all that one may take."""
    progressed_s: float = -math.inf
    """When its last attempt was last seen to move."""
    seen: tuple[int, str] | None = None
    """Step counter and stage when its worker last told of them."""
    alarms: tuple[Alarm, ...] = ()
    """While it waits: for the end of its patience, and for its spill."""


def _number(request: Request) -> int:
    return request.number


@dataclass(slots=True)
class _Lane:
    """One class of calls."""

    places: int
    """How many of its requests may be inside."""
    inside: int = 0
    waiting: list[Request] = field(default_factory=list)
    """Inside, by arrival."""
    outside: dict[str, Request] = field(default_factory=dict)
    """By call id, in order of arrival."""

    def insert(self, request: Request) -> None:
        """Have it wait at its place."""
        insort(self.waiting, request, key=_number)

    def remove(self, request: Request) -> None:
        """It waits no longer."""
        del self.waiting[bisect_left(self.waiting, request.number, key=_number)]


class Admission:
    """The two queues, inside and outside, of both lanes."""

    def __init__(self, config: DispatchConfig) -> None:
        self._lanes = {False: _Lane(places=0), True: _Lane(places=0)}
        self._outside_bytes = 0
        self._retrying: dict[str, Request] = {}
        self.began_waiting: list[Request] = []
        """Requests whose `give_up_s` was set since the list was last emptied."""
        self._set(config)

    def __repr__(self) -> str:
        """Counts of both lanes: inside (of them waiting), outside."""
        lanes = (
            f"{name} {lane.inside} ({len(lane.waiting)}), {len(lane.outside)}"
            for name, lane in (("fast", self._lanes[False]), ("slow", self._lanes[True]))
        )
        return f"<Admission {'; '.join(lanes)}>"

    def reconfigure(self, config: DispatchConfig, now_s: float) -> None:
        """Other limits: more places are given to those outside; who is inside stays, and keeps what was promised."""
        self._set(config)
        self._admit(now_s)

    def _set(self, config: DispatchConfig) -> None:
        self._config = config
        self._lanes[False].places = config.max_in_flight
        self._lanes[True].places = max(1, int(config.max_in_flight * fixed.SLOW_SHARE_INSIDE))

    @property
    def inside(self) -> int:
        """Requests inside, running or waiting for a worker."""
        return self._lanes[False].inside + self._lanes[True].inside

    @property
    def outside(self) -> int:
        """Requests that wait to get in."""
        return len(self._lanes[False].outside) + len(self._lanes[True].outside)

    @property
    def anyone_waits(self) -> bool:
        """Whether anybody waits, inside or outside."""
        return bool(self._lanes[False].waiting or self._lanes[True].waiting or self.outside)

    def waiting(self, *, slow: bool) -> int:
        """Requests of a lane that wait, inside or outside."""
        return len(self._lanes[slow].waiting) + len(self._lanes[slow].outside)

    def ahead_of(self, request: Request) -> int:
        """Requests of its lane that wait and are to get a worker before it; 0 once it has one."""
        lane = self._lanes[request.slow]
        if request.place is Place.WAITING:
            return bisect_left(lane.waiting, request.number, key=_number)
        if request.place is Place.OUTSIDE:
            return len(lane.waiting) + sum(other.number < request.number for other in lane.outside.values())
        return 0

    def has_room(self, *, slow: bool) -> bool:
        """Whether a new request of this lane comes in at once."""
        lane = self._lanes[slow]
        return not lane.outside and lane.inside < lane.places and self.inside < self._config.max_in_flight

    def arrive(self, request: Request, now_s: float) -> bool:
        """Let a new request in, or have it wait outside. False: too many bytes wait there already."""
        request.waits_since_s = now_s
        if self.has_room(slow=request.slow):
            self._let_in(request, now_s)
            return True
        if self._outside_bytes + request.size_bytes > self._config.max_queued_bytes:
            return False
        self._outside_bytes += request.size_bytes
        self._lanes[request.slow].outside[request.call_id] = request
        self._waits(request, Place.OUTSIDE, now_s + self._config.max_queue_wait_seconds)
        return True

    def start(self, request: Request, now_s: float) -> None:
        """One who waits inside gets a worker."""
        self._lanes[request.slow].remove(request)
        self._retrying.pop(request.call_id, None)
        request.place = Place.RUNNING
        request.queue_s += now_s - request.waits_since_s

    def put_back(self, request: Request, now_s: float, *, afresh: bool) -> None:
        """A running one lost its worker and waits again, at its old place.

        `afresh`: with a new `queue_wait_seconds` (after a failed attempt), else with what is left of the old one.
        """
        request.waits_since_s = now_s
        self._lanes[request.slow].insert(request)
        if request.tried:
            self._retrying[request.call_id] = request
        if afresh:
            self._wait_inside(request, now_s)
        else:
            self._waits(request, Place.WAITING, request.give_up_s)

    def leave(self, request: Request, now_s: float) -> None:
        """A request is over, wherever it is."""
        self._retrying.pop(request.call_id, None)
        lane = self._lanes[request.slow]
        if request.place is Place.OUTSIDE:
            del lane.outside[request.call_id]
            self._outside_bytes -= request.size_bytes
        elif request.place is not Place.NEW:
            lane.inside -= 1
        if request.place is Place.WAITING:
            lane.remove(request)
        if request.place is not Place.RUNNING:
            request.queue_s += now_s - request.waits_since_s
        if self.outside:
            self._admit(now_s)

    def in_order(self) -> Iterator[Request]:
        """Those who wait inside at this moment, by arrival over both lanes."""
        fast, slow = self._lanes[False].waiting, self._lanes[True].waiting
        if not slow:
            return iter(fast.copy())
        return heapq.merge(fast.copy(), slow.copy(), key=_number)

    def retrying(self) -> list[Request]:
        """Those who wait for another worker than one that failed them."""
        return list(self._retrying.values())

    def everyone_waiting(self) -> list[Request]:
        """Those who wait, inside first, then outside."""
        fast, slow = self._lanes[False], self._lanes[True]
        return [*fast.waiting, *slow.waiting, *fast.outside.values(), *slow.outside.values()]

    def _admit(self, now_s: float) -> None:
        """Let in from outside whoever has room now, by arrival over both lanes."""
        while heads := [next(iter(lane.outside.values())) for lane in self._lanes.values() if self._opens(lane)]:
            request = min(heads, key=_number)
            del self._lanes[request.slow].outside[request.call_id]
            self._outside_bytes -= request.size_bytes
            self._let_in(request, now_s)

    def _opens(self, lane: _Lane) -> bool:
        return bool(lane.outside) and lane.inside < lane.places and self.inside < self._config.max_in_flight

    def _let_in(self, request: Request, now_s: float) -> None:
        lane = self._lanes[request.slow]
        lane.inside += 1
        lane.insert(request)
        self._wait_inside(request, now_s)

    def _wait_inside(self, request: Request, now_s: float) -> None:
        spill_s = self._config.spill_after_seconds
        request.spill_s = math.inf if spill_s is None else now_s + spill_s
        self._waits(request, Place.WAITING, now_s + self._config.queue_wait_seconds)

    def _waits(self, request: Request, place: Place, give_up_s: float) -> None:
        request.place = place
        request.give_up_s = min(request.deadline_s, give_up_s)
        self.began_waiting.append(request)
