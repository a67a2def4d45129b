"""What this edge remembers of removals: for as long as a call of those days may still be running."""

from __future__ import annotations

from edge.images.removals import Removals
from edge.images.retention import HELPER_AGE_S

NOW_S = 1_800_000.0


def test_what_began_before_is_not_wanted_what_begins_later_is() -> None:
    removals = Removals()
    assert not removals.concern("a", NOW_S - 10)
    removals.note("a", NOW_S)
    assert removals.concern("a", NOW_S - 10)
    assert removals.concern("a", NOW_S), "in doubt not wanted"
    assert not removals.concern("a", NOW_S + 0.001), "one clock: it is in no doubt"
    assert not removals.concern("b", NOW_S - 10), "another request's are none of it"


def test_the_last_removal_counts() -> None:
    removals = Removals()
    removals.note("a", NOW_S)
    removals.note("a", NOW_S + 100)
    assert removals.concern("a", NOW_S + 90)


def test_they_are_forgotten_when_no_such_request_can_run_any_more() -> None:
    removals = Removals()
    removals.note("old", NOW_S)
    removals.note("again", NOW_S + 1)
    removals.note("again", NOW_S + HELPER_AGE_S)
    removals.note("new", NOW_S + HELPER_AGE_S + 2)
    concerned = {tag for tag in ("old", "again", "new") if removals.concern(tag, NOW_S - 10)}
    assert concerned == {"again", "new"}
