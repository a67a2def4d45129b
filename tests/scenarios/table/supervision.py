"""Reports from the field about probes and supervisors: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import HEALTH

ROWS = (
    Row(
        "B94",
        "The status is set for the named service only, and the probe asks for the empty name.",
        "One report feeds every name; an unknown one is NOT_FOUND.",
        (
            f"{HEALTH}test_broken_model_shows_under_the_empty_name_too",
            f"{HEALTH}test_wrong_name_is_not_found_and_watch_says_unknown",
        ),
    ),
    Row(
        "B96",
        "systemd kills a boot that takes longer than its timeout; the watchdog's interval is ignored.",
        "EXTEND_TIMEOUT while models load, READY when it serves, pings at half the interval, STOPPING at the end.",
        (
            "tests/worker/test_announcements.py::test_a_load_of_two_minutes_outlives_a_start_timeout_of_90_s",
            "tests/worker/test_notify.py::test_start_asks_for_time_ready_is_said_when_it_serves_stopping_when_it_ends",
            "tests/worker/test_announcements.py::test_pings_come_within_half_the_watchdogs_time_whatever_else_is_wrong",
        ),
    ),
    Row(
        "B97",
        "Health is answered by other threads while the real loop is stuck.",
        "Verdict and watchdog ping rest on the progress of the work itself.",
        (
            f"{HEALTH}test_frozen_compute_thread_is_a_stall_and_moving_again_ends_it",
            "tests/worker/test_notify.py::test_pings_stop_when_the_compute_thread_is_stuck_and_only_then",
            "tests/worker/test_notify.py::test_a_stuck_event_loop_pings_no_more",
            "tests/worker/test_announcements.py::test_a_stall_ends_the_pings_and_moving_again_brings_them_back",
        ),
    ),
)
