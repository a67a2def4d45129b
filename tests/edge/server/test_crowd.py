"""Which connection has to go where there are too many."""

from __future__ import annotations

from dataclasses import dataclass

from edge.server.crowd import RESERVED, Closed, Crowd

MOST = 8
FULL = MOST + RESERVED


@dataclass(eq=False)
class Guest:
    is_refused: bool = False
    gone: bool = False

    def give_way(self) -> None:
        self.gone = True


def filled(crowd: Crowd) -> list[Guest]:
    """As many as there may be, each waiting for a request."""
    guests = [Guest() for _ in range(FULL)]
    for guest in guests:
        crowd.came(guest, MOST)
    return guests


def test_nobody_goes_while_there_is_room() -> None:
    crowd = Crowd()
    assert not any(guest.gone for guest in filled(crowd))
    assert (len(crowd), crowd.waiting, crowd.closed) == (FULL, FULL, {})


def test_who_waited_longest_goes_for_who_comes() -> None:
    crowd = Crowd()
    guests = filled(crowd)
    crowd.serves(guests[0])
    crowd.waits(guests[0])  # it had a request meanwhile
    newcomers = [Guest(), Guest()]
    for newcomer in newcomers:
        crowd.came(newcomer, MOST)
    assert [guest.gone for guest in guests[:4]] == [False, True, True, False]
    assert not any(guest.gone for guest in newcomers)
    assert (len(crowd), crowd.closed) == (FULL, {Closed.CROWDED_OUT: 2})


def test_one_with_a_request_stays() -> None:
    crowd = Crowd()
    guests = filled(crowd)
    for guest in guests[:-1]:
        crowd.serves(guest)
    crowd.came(Guest(), MOST)
    assert [guest for guest in guests if guest.gone] == [guests[-1]]


def test_where_nobody_waits_one_that_has_its_refusal_goes() -> None:
    crowd = Crowd()
    guests = filled(crowd)
    for guest in guests:
        crowd.serves(guest)
    guests[5].is_refused = True
    crowd.came(Guest(), MOST)
    assert [guest for guest in guests if guest.gone] == [guests[5]]


def test_where_everybody_is_served_the_new_one_comes_in_all_the_same() -> None:
    crowd = Crowd()
    guests = filled(crowd)
    for guest in guests:
        crowd.serves(guest)
    crowd.came(Guest(), MOST)
    assert not any(guest.gone for guest in guests)
    assert len(crowd) == FULL + 1


def test_who_was_sent_away_does_not_come_back_when_its_answer_ends() -> None:
    crowd = Crowd()
    guests = filled(crowd)
    crowd.came(Guest(), MOST)
    crowd.waits(guests[0])
    assert (len(crowd), crowd.waiting) == (FULL, FULL)
    crowd.left(guests[0])
    assert len(crowd) == FULL


def test_a_limit_that_became_lower_holds_for_who_comes() -> None:
    crowd = Crowd()
    guests = filled(crowd)
    crowd.came(Guest(), MOST - 2)
    assert [guest for guest in guests if guest.gone] == [guests[0]]
