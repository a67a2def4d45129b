"""Reports from the field about pools and their health checks: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import COOLDOWNS, DISK_CHECK, DISPATCH, HEALTH, NO_FAULT, PASSIVE, REAL, SIM

ROWS = (
    Row(
        "B64",
        "After a device-side assert every call fails, yet readiness stays good.",
        "The canary speaks after every failed stage: NOT_SERVING at once, latched; the call is tried elsewhere once.",
        (
            f"{REAL}test_14_b64_a_lost_accelerator_costs_one_retry_and_never_comes_back",
            f"{HEALTH}test_lost_accelerator_latches_until_the_process_is_new",
        ),
    ),
    Row(
        "B65",
        "A passing probe puts an ejected worker back though calls on it fail.",
        "A cooldown outranks every probe.",
        (
            f"{COOLDOWNS}test_2_b65_passing_probes_bring_no_traffic_to_a_worker_that_fails_every_call",
            f"{SIM}test_2_probes_pass_and_calls_fail_then_one_call_then_a_longer_cooldown",
        ),
    ),
    Row(
        "B67",
        "All are in cooldown; requests fail though one would be back in a moment.",
        "They are told when one is back; then one trial at a time.",
        (f"{COOLDOWNS}test_b67_a_pool_all_out_is_told_with_a_time_and_comes_back_one_trial_at_a_time",),
    ),
    Row(
        "B68",
        "Errors that are not the worker's fault feed its cooldown.",
        "Photos, parameters, passwords of strangers, clients that leave or lose patience: no strike.",
        (
            f"{NO_FAULT}test_b68_ten_of_each_in_a_row_and_no_strike",
            f"{PASSIVE}test_nobody_is_blamed_for",
            "tests/worker/test_field_reports.py::test_b68_faults_of_callers_never_touch_the_workers_health",
        ),
    ),
    Row(
        "B69",
        "A storage check passes on a full or read-only disk.",
        "Now and then the check really writes.",
        (
            f"{DISK_CHECK}test_free_space_and_a_real_write_that_leaves_nothing",
            f"{DISK_CHECK}test_folder_that_cannot_be_written_is_found",
            "tests/worker/test_field_reports.py::test_b69_a_full_disk_and_a_read_only_one_are_found_by_writing",
            "tests/e2e/test_incident.py::test_b69_full_picture_store",
            "tests/e2e/test_incident.py::test_b69_read_only_picture_store",
            "tests/e2e/test_incident.py::test_b69_full_log_folder",
            "tests/e2e/test_incident.py::test_b69_full_log_folder_leaves_whole_lines",
        ),
    ),
    Row(
        "B70",
        "The health request queues behind the work and times out.",
        "It never uses the slot: fifty jobs wait, no probe does.",
        (
            f"{REAL}test_12_b70_fifty_jobs_wait_for_one_worker_that_computes_and_no_probe_waits_with_them",
            f"{DISPATCH}test_b70_fifty_queued_jobs_and_a_probe_every_moment_harm_nobody",
            "tests/worker/test_field_reports.py::test_b70_fifty_jobs_wait_at_the_door_and_checks_do_not",
        ),
    ),
    Row(
        "B71",
        "Everything is slow for a while; members are killed for it, and load moves until all are down.",
        "Slow is no failure: nobody is ejected, and all serve at once when it is over.",
        (f"{NO_FAULT}test_b71_a_slow_spell_on_every_worker_takes_nobody_out",),
    ),
)
