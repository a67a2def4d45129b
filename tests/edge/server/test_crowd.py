"""Which connection has to go where there are too many, or too much that they do not take."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from edge.server.crowd import RESERVED, Closed, Crowd
from edge.settings import Limits

MOST = 8
FULL = MOST + RESERVED
MUCH = 16_777_216
"""All that may wait to be taken here."""


@dataclass(eq=False)
class Guest:
    is_refused: bool = False
    unread_bytes: int = 0
    gone: bool = False

    def give_way(self) -> None:
        self.gone = True


@dataclass
class House:
    """A crowd with room for `FULL`, and its clock."""

    limits: Limits = field(default_factory=lambda: Limits(max_connections=MOST, max_sending_bytes=MUCH))
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.crowd = Crowd(lambda: self.limits, lambda: self.now_s)

    def fill(self) -> list[Guest]:
        """As many as there may be, each waiting for a request."""
        guests = [Guest() for _ in range(FULL)]
        for guest in guests:
            self.crowd.came(guest)
        return guests

    def fill_and_serve(self) -> list[Guest]:
        """The same, each with a request."""
        guests = self.fill()
        for guest in guests:
            self.crowd.serves(guest)
        return guests

    def reads(self, guest: Guest, unread_bytes: int) -> None:
        """So much of its answer waits to be taken."""
        guest.unread_bytes = unread_bytes
        self.crowd.fills(guest)


@pytest.fixture
def house() -> House:
    return House()


def gone(guests: list[Guest]) -> list[int]:
    """Which of them."""
    return [number for number, guest in enumerate(guests) if guest.gone]


def test_nobody_goes_while_there_is_room(house: House) -> None:
    assert gone(house.fill()) == []
    assert (len(house.crowd), house.crowd.waiting, house.crowd.closed) == (FULL, FULL, {})


def test_who_waited_longest_goes_for_who_comes(house: House) -> None:
    guests = house.fill()
    house.crowd.serves(guests[0])
    house.crowd.waits(guests[0])  # it had a request meanwhile
    newcomers = [Guest(), Guest()]
    for newcomer in newcomers:
        house.crowd.came(newcomer)
    assert (gone(guests), gone(newcomers)) == ([1, 2], [])
    assert (len(house.crowd), house.crowd.closed) == (FULL, {Closed.CROWDED_OUT: 2})


def test_one_with_a_request_stays(house: House) -> None:
    guests = house.fill()
    for guest in guests[:-1]:
        house.crowd.serves(guest)
    house.crowd.came(Guest())
    assert gone(guests) == [FULL - 1]


def test_an_answer_that_is_still_being_taken_is_not_cut_off_while_others_are_idle(house: House) -> None:
    guests = house.fill()
    for guest, unread_bytes in zip(guests, (3_000_000, 20_000), strict=False):
        house.crowd.serves(guest)
        house.reads(guest, unread_bytes)
        house.crowd.waits(guest)  # for the next request: the answer is out of the edge's hands, not of its memory
    house.crowd.drained(guests[1])  # the last 20 kB are below what anybody is told of
    for guest in guests[2:]:
        house.crowd.serves(guest)
        house.crowd.waits(guest)
    house.crowd.came(Guest())
    assert gone(guests) == [2]
    guests[1].unread_bytes = 0
    house.crowd.drained(guests[0])
    guests[0].unread_bytes = 0
    for _ in range(FULL):
        house.crowd.came(Guest())
    assert gone(guests) == list(range(FULL))  # taken at last, the first one is idle like the others
    assert house.crowd.waiting == FULL


def test_where_nobody_waits_one_that_has_its_refusal_goes(house: House) -> None:
    guests = house.fill_and_serve()
    guests[5].is_refused = True
    house.reads(guests[6], 3_000_000)
    house.crowd.came(Guest())
    assert gone(guests) == [5]


def test_then_who_takes_its_answer_the_most_slowly(house: House) -> None:
    guests = house.fill_and_serve()
    for guest in guests[:4]:
        house.reads(guest, 3_000_000)
    house.now_s = 10.0
    taken = (500_000, 24_000, 2_900_000, 200_000)
    for guest, count in zip(guests, taken, strict=False):
        guest.unread_bytes -= count
    house.reads(guests[4], 15_000)  # just begun: nothing is known of it
    newcomers = [Guest() for _ in range(4)]
    for newcomer in newcomers:
        house.crowd.came(newcomer)
        house.crowd.serves(newcomer)
    assert gone(newcomers) == []
    assert gone(guests) == [0, 1, 3, 4]
    house.crowd.drained(guests[2])


@pytest.mark.parametrize("at_once", [0, 16_384, 65_536])
def test_a_moment_says_nothing_and_who_has_waited_longest_goes(house: House, at_once: int) -> None:
    """Over HTTPS a buffer takes one more piece right after its owner was said to be waiting."""
    guests = house.fill_and_serve()
    for guest in guests[:4]:
        house.reads(guest, MUCH // 5)
        guest.unread_bytes -= at_once
        house.now_s += 0.02
    house.crowd.drained(guests[0])
    house.reads(guests[0], MUCH // 5)  # it takes its answer piece by piece, and has just had one
    house.reads(guests[4], 2 * (MUCH // 5))
    assert gone(guests) == [1]


def test_where_everybody_is_served_the_newest_request_goes(house: House) -> None:
    """The number is a bound. Who comes has none yet, and stays: it may be one of alerting."""
    guests = house.fill()
    for guest in (*guests[1:], guests[0]):
        house.crowd.serves(guest)
    newcomer = Guest()
    house.crowd.came(newcomer)
    assert (gone(guests), newcomer.gone) == ([0], False)
    assert len(house.crowd) == FULL


def test_what_waits_to_be_taken_is_bounded_over_all(house: House) -> None:
    guests = house.fill_and_serve()
    for guest in guests[:3]:
        house.reads(guest, MUCH // 4)
    house.now_s = 10.0
    guests[0].unread_bytes -= 1000
    guests[1].unread_bytes -= 2000
    guests[2].unread_bytes -= 500_000
    house.reads(guests[3], MUCH // 4)
    assert gone(guests) == []  # no more than may be
    house.reads(guests[4], MUCH // 4)
    assert gone(guests) == [0]
    house.reads(guests[5], MUCH // 2)
    assert gone(guests) == [0, 1, 2]
    assert house.crowd.closed == {Closed.CROWDED_OUT: 3}


def test_what_was_taken_meanwhile_or_left_counts_no_more(house: House) -> None:
    guests = house.fill_and_serve()
    house.reads(guests[0], MUCH)
    guests[0].unread_bytes = 20_000  # nobody told
    house.reads(guests[1], MUCH // 2)
    house.crowd.drained(guests[0])
    house.crowd.left(guests[1])
    house.reads(guests[2], MUCH - 20_000)
    assert gone(guests) == []


def test_who_was_sent_away_does_not_come_back(house: House) -> None:
    guests = house.fill()
    house.crowd.came(Guest())
    house.crowd.serves(guests[0])
    house.crowd.waits(guests[0])
    house.reads(guests[0], MUCH)
    house.crowd.drained(guests[0])
    assert (len(house.crowd), house.crowd.waiting) == (FULL, FULL)
    house.crowd.left(guests[0])
    assert len(house.crowd) == FULL


def test_a_limit_that_became_lower_holds_for_who_comes(house: House) -> None:
    guests = house.fill()
    house.limits = Limits(max_connections=MOST + 2, max_sending_bytes=MUCH)
    house.crowd.came(Guest())
    assert gone(guests) == []
    house.limits = Limits(max_connections=MOST, max_sending_bytes=MUCH)
    house.crowd.came(Guest())
    assert gone(guests) == [0, 1]
    assert len(house.crowd) == FULL
