"""Reports from the field about alerts and logs: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import ALERTS, DEPENDENCY

ROWS = (
    Row(
        "B89",
        "Health JSON says healthy=false with status 200: simple monitors stay green.",
        "No worker online is 503, for those who read the status alone, and 200 afterwards. Why is in `/admin/pool`.",
        (
            f"{ALERTS}test_an_outage_is_told_and_its_end_and_a_drill_says_so",
            f"{DEPENDENCY}test_25_a_required_one_takes_all_out_by_their_own_word_and_all_are_back_with_it",
            "tests/edge/test_monitor.py::test_monitor",
        ),
    ),
    Row(
        "B91",
        "A flapping alert: only the first firing is sent when no resolved is sent between.",
        "The end of an outage is sent within half a minute, so that a second one is told again; one outage is told once"
        " an hour.",
        (
            f"{ALERTS}test_b91_b92_outages_in_real_time",
            f"{ALERTS}test_an_outage_is_told_and_its_end_and_a_drill_says_so",
        ),
    ),
    Row(
        "B92",
        "An alert resolves itself while the fault goes on.",
        "Silence is no recovery: what was known stays when nobody probes, over restarts of Prometheus and of the edge."
        " Nobody probing is an alert of its own.",
        (
            f"{ALERTS}test_b91_b92_outages_in_real_time",
            "tests/deploy/test_monitoring_files.py::test_rules",
        ),
    ),
    Row(
        "B93",
        "JSON and newline are written in two calls: lines of parallel writers weld together, readers break.",
        "One call for a line, under a lock on the file; half a line of a killed process is cut off by the next writer.",
        (
            "tests/edge/test_request_log.py::test_b93_eight_processes_on_one_file_one_of_them_killed",
            "tests/edge/test_request_log.py::test_b93_a_disk_that_fills_up_cuts_no_line_and_every_loss_is_told",
            "tests/edge/test_request_log.py::test_half_a_line_that_a_killed_process_left_is_cut_off_and_told",
            "tests/edge/test_request_log.py::test_each_line_is_one_write",
        ),
    ),
)
