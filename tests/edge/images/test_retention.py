"""Which pictures go: the too old always, the oldest for room, the young never for that."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.images.retention import HELPER_AGE_S, NEARLY_FULL, ROOM_MADE, Census, Entry, Retention, Why

NOW_S = 1_800_000_000.0
KEEP = Retention(max_bytes=1000, max_age_s=10_000.0, min_age_s=600.0)


def picture(age_s: float, size: int = 100) -> Entry:
    return Entry(f"{age_s:.3f}-{size}", picture=True, made_s=NOW_S - age_s, bytes=size)


def left(entries: list[Entry], wanted_bytes: int = 0) -> list[Entry]:
    """What two looks leave, and the count says the same."""
    census = Census(KEEP, NOW_S)
    stay = [entry for entry in entries if census.look(entry) is None]
    assert (census.count, census.bytes) == (len(stay), sum(entry.bytes for entry in stay))
    if clearance := census.clearance(wanted_bytes):
        stay = [entry for entry in stay if clearance.look(entry) is None]
    return stay


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (picture(10_001), Why.OLD),
        (picture(9_999), None),
        (Entry("half", picture=False, made_s=NOW_S - HELPER_AGE_S - 1, bytes=5), Why.OLD),
        (Entry("half", picture=False, made_s=NOW_S - HELPER_AGE_S + 1, bytes=5), None),
    ],
)
def test_what_is_too_old(entry: Entry, why: Why | None) -> None:
    assert Census(KEEP, NOW_S).look(entry) is why


def test_what_is_being_written_is_counted_by_who_writes_it() -> None:
    census = Census(KEEP, NOW_S, {"1000.000-100"})
    for entry in (picture(1000), picture(2000), picture(-1)):
        assert census.look(entry) is None
    assert census.count == 1


def test_nothing_goes_while_there_is_room() -> None:
    entries = [picture(age_s) for age_s in range(1000, 1900, 100)]
    assert left(entries) == entries


def test_the_oldest_make_room_for_more_than_the_next_picture() -> None:
    entries = [picture(age_s) for age_s in range(1000, 2000, 100)]
    shuffled = random.Random(7).sample(entries, len(entries))
    assert sorted(left(shuffled), key=lambda entry: entry.made_s) == sorted(
        entries[:9], key=lambda entry: entry.made_s
    ), "one of ten has gone, the oldest"


def test_room_is_made_for_what_is_wanted() -> None:
    entries = [picture(age_s) for age_s in range(1000, 1900, 100)]
    assert left(entries, wanted_bytes=350) == entries[:6]


def test_the_young_stay_however_little_room_there_is() -> None:
    young = [picture(age_s) for age_s in range(10, 600, 60)]
    assert left([*young, picture(700), picture(800)], wanted_bytes=500) == young


def test_of_one_minute_no_more_go_than_must() -> None:
    start_s = NOW_S % 60.0 + 1200.0  # the beginning of a minute, twenty minutes ago
    entries = [picture(start_s - number) for number in range(11)]
    assert len(left(entries)) == 9


def test_an_empty_store_has_nothing_to_give() -> None:
    assert Census(KEEP, NOW_S).clearance(5000) is None


@given(st.lists(st.tuples(st.floats(0, 12_000), st.integers(1, 300)), max_size=40), st.integers(0, 900))
def test_no_picture_goes_before_an_older_one(made: list[tuple[float, int]], wanted_bytes: int) -> None:
    """By the minute; and either there is room then, or only young ones are left."""
    entries = [picture(age_s, size) for age_s, size in made]
    stay = left(entries, wanted_bytes)
    kept = set(map(id, stay))  # two may be alike
    gone = [entry for entry in entries if id(entry) not in kept and NOW_S - entry.made_s <= KEEP.max_age_s]
    oldest_left_s = min((entry.made_s for entry in stay), default=NOW_S)
    assert all(entry.made_s // 60 <= oldest_left_s // 60 for entry in gone)
    assert all(NOW_S - entry.made_s >= KEEP.min_age_s for entry in gone)
    used_bytes = sum(entry.bytes for entry in stay)
    has_room = used_bytes + wanted_bytes <= KEEP.max_bytes and used_bytes <= NEARLY_FULL * KEEP.max_bytes
    assert has_room or all(NOW_S - entry.made_s <= KEEP.min_age_s for entry in stay)
    if gone:
        # No more has gone than the last minute's pictures beyond what was aimed at.
        aim = min(ROOM_MADE * KEEP.max_bytes, KEEP.max_bytes - wanted_bytes)
        assert used_bytes + max(entry.bytes for entry in gone) >= int(aim)
