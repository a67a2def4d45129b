"""What systemd is told, and when."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from worker.announcements import Announcements
from worker.health.checks import Cause, CheckResult, CheckState
from worker.health.report import Report, report
from worker.thresholds import Thresholds

T = Thresholds()
GOOD = report([], warm=True, draining=False)
LOADING = report([], warm=False, draining=False)
DRAINING = report([], warm=True, draining=True)
BEAT_S = T.beat_s


def bad(cause: Cause, reason: str = "why") -> Report:
    return report([CheckResult("x", CheckState.FAILING, cause, reason)], warm=True, draining=False)


def announcements(watchdog_s: float | None = 10.0) -> Announcements:
    return Announcements(watchdog_s=watchdog_s, thresholds=T)


def follow(told: Announcements, seen: Report, *, from_s: float, until_s: float) -> list[tuple[float, dict[str, str]]]:
    beats = [from_s + n * BEAT_S for n in range(round((until_s - from_s) / BEAT_S))]
    return [(now_s, said) for now_s in beats if (said := told.due(seen, now_s))]


def moments(said: list[tuple[float, dict[str, str]]], name: str) -> list[float]:
    return [now_s for now_s, assignments in said if name in assignments]


def test_ready_once_and_only_when_it_serves_for_the_first_time() -> None:
    told = announcements()
    assert not moments(follow(told, LOADING, from_s=0, until_s=120), "READY")
    assert not moments(follow(told, bad(Cause.DISK), from_s=120, until_s=130), "READY")
    assert moments(follow(told, GOOD, from_s=130, until_s=140), "READY") == [130]
    follow(told, bad(Cause.DISK), from_s=140, until_s=150)
    assert not moments(follow(told, GOOD, from_s=150, until_s=160), "READY")


def test_a_load_of_two_minutes_outlives_a_start_timeout_of_90_s() -> None:
    """B96: more time is asked for before the time that was given runs out, from the first beat to READY."""
    told = announcements()
    asked = follow(told, LOADING, from_s=0, until_s=120)
    ends_s = 90.0
    for now_s in moments(asked, "EXTEND_TIMEOUT_USEC"):
        assert now_s < ends_s
        ends_s = now_s + T.notify_extend_s
    assert ends_s > 120
    assert asked[0][1]["EXTEND_TIMEOUT_USEC"] == "30000000"
    assert not moments(follow(told, GOOD, from_s=120, until_s=300), "EXTEND_TIMEOUT_USEC")


def test_loading_that_does_not_move_gets_no_more_time() -> None:
    stuck = report(
        [CheckResult("progress", CheckState.FAILING, Cause.STALLED, "stalled:model_load")], warm=False, draining=False
    )
    said = follow(announcements(), stuck, from_s=0, until_s=100)
    assert [set(assignments) for _now_s, assignments in said] == [{"STATUS"}]


@given(
    watchdog_s=st.floats(2.0, 120.0),
    causes=st.lists(st.sampled_from([None, Cause.DISK, Cause.DEPENDENCY, Cause.MODELS, Cause.ACCELERATOR]), min_size=1),
)
def test_pings_come_within_half_the_watchdogs_time_whatever_else_is_wrong(
    watchdog_s: float, causes: list[Cause | None]
) -> None:
    """B96: tied to progress, not to readiness: a full disk goes on pinging."""
    told = announcements(watchdog_s)
    pings = []
    for n, cause in enumerate(causes):
        seen = GOOD if cause is None else bad(cause)
        pings += moments(follow(told, seen, from_s=n * 100.0, until_s=n * 100.0 + 100), "WATCHDOG")
    assert pings[0] == 0
    assert all(later - earlier <= watchdog_s / 2 for earlier, later in itertools.pairwise(pings))
    assert all(later - earlier >= watchdog_s / 3 for earlier, later in itertools.pairwise(pings))


def test_a_stall_ends_the_pings_and_moving_again_brings_them_back() -> None:
    """B97."""
    told = announcements()
    follow(told, GOOD, from_s=0, until_s=20)
    assert not moments(follow(told, bad(Cause.STALLED), from_s=20, until_s=60), "WATCHDOG")
    assert moments(follow(told, GOOD, from_s=60, until_s=61), "WATCHDOG") == [60]


def test_where_systemd_does_not_watch_nothing_is_pinged() -> None:
    assert not moments(follow(announcements(None), GOOD, from_s=0, until_s=100), "WATCHDOG")


def test_stopping_is_said_once_and_time_is_asked_for_until_the_end() -> None:
    told = announcements()
    follow(told, GOOD, from_s=0, until_s=10)
    assert [told.stopping(), told.stopping()] == [{"STOPPING": "1"}, {}]
    asked = moments(follow(told, DRAINING, from_s=10, until_s=60), "EXTEND_TIMEOUT_USEC")
    assert asked[0] == 10
    assert all(later - earlier < T.notify_extend_s for earlier, later in itertools.pairwise(asked))


def test_status_is_said_on_change_in_one_line_of_words() -> None:
    told = announcements(None)
    assert told.due(LOADING, 0.0)["STATUS"] == "loads models: starting"
    assert told.due(GOOD, 1.0)["STATUS"] == "serves"
    assert told.due(GOOD, 2.0) == {}
    assert told.due(bad(Cause.DISK, "disk_free_below_5.0g"), 3.0) == {"STATUS": "takes no calls: disk_free_below_5.0g"}
    assert told.due(DRAINING, 4.0) == {"STATUS": "finishes and leaves: draining"}
    assert told.due(bad(Cause.MODELS, "模型\nWATCHDOG=1" + "x" * 10_000), 5.0)["STATUS"].count("\n") == 0
