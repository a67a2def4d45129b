"""What systemd is told of an edge, and when."""

from __future__ import annotations

import itertools

from edge.announcements import PROBES_LATE_MAX_S, Announcements

BEAT_S = 1.0
LATE_S = PROBES_LATE_MAX_S + 1


def follow(told: Announcements, *, from_s: float, until_s: float, late_s: float = 0.0, online: int = 2) -> list[float]:
    """Moments of the pings."""
    beats = [from_s + n * BEAT_S for n in range(round((until_s - from_s) / BEAT_S))]
    return [
        now_s for now_s in beats if "WATCHDOG" in told.due(online=online, total=2, probes_late_s=late_s, now_s=now_s)
    ]


def test_pings_come_within_half_the_watchdogs_time_whoever_is_online() -> None:
    told = Announcements(watchdog_s=30.0)
    pings = follow(told, from_s=0, until_s=100) + follow(told, from_s=100, until_s=200, online=0)
    assert pings[0] == 0
    assert all(10 <= later - earlier <= 15 for earlier, later in itertools.pairwise(pings))
    assert pings[-1] >= 185


def test_a_pool_that_stands_still_ends_the_pings_and_moving_again_brings_them_back() -> None:
    told = Announcements(watchdog_s=30.0)
    assert follow(told, from_s=0, until_s=20, late_s=PROBES_LATE_MAX_S)
    assert not follow(told, from_s=20, until_s=200, late_s=LATE_S)
    assert follow(told, from_s=200, until_s=201) == [200]


def test_while_it_stops_nothing_is_probed_any_more_and_the_loop_alone_counts() -> None:
    told = Announcements(watchdog_s=30.0)
    assert told.stopping(3) == {"STOPPING": "1", "STATUS": "finishes 3 requests and leaves"}
    assert follow(told, from_s=0, until_s=30, late_s=LATE_S) == [0, 10, 20]


def test_where_systemd_does_not_watch_nothing_is_pinged() -> None:
    assert not follow(Announcements(watchdog_s=None), from_s=0, until_s=100)


def test_status_is_said_on_change() -> None:
    told = Announcements(watchdog_s=None)
    said = [
        told.due(online=online, total=2, probes_late_s=late_s, now_s=float(n))
        for n, (online, late_s) in enumerate([(2, 0.0), (2, 0.5), (1, 0.0), (1, LATE_S), (1, 0.0)])
    ]
    assert [each.get("STATUS") for each in said] == [
        "serves: 2 of 2 workers online",
        None,
        "serves: 1 of 2 workers online",
        "does not probe its workers",
        "serves: 1 of 2 workers online",
    ]
    told.stopping(0)
    assert told.due(online=0, total=2, probes_late_s=0.0, now_s=9.0) == {}


def test_a_reload_begins_with_its_moment_and_ends_with_ready() -> None:
    told = Announcements(watchdog_s=None)
    assert told.reloading(1.5) == {"RELOADING": "1", "MONOTONIC_USEC": "1500000"}
    assert told.ready() == {"READY": "1"}
