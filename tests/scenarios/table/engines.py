"""Reports from the field about servers that are watched: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import ENGINES, RESTARTS, WATCHDOG_TESTS

ROWS = (
    Row(
        "B80",
        "The engine hangs with requests waiting and none running; the API answers 200.",
        "Waiting is work: still counters are a stall.",
        (
            f"{WATCHDOG_TESTS}test_b80_waiting_without_running_is_a_stuck_engine_and_not_an_idle_one",
            "tests/hairmesh/test_watch.py::test_a_stuck_engine_is_sick_and_a_dry_run_only_says_so",
        ),
    ),
    Row(
        "B81",
        "All requests were aborted, and the running gauge is stale.",
        "A canary comes before the verdict; if it is answered, nothing is restarted.",
        (
            f"{WATCHDOG_TESTS}test_b81_stale_gauges_after_a_mass_abort_are_refuted_by_the_canary",
            f"{WATCHDOG_TESTS}test_b81_a_canary_that_waits_behind_running_work_is_no_failure",
            f"{ENGINES}test_b81_a_stale_engine_that_the_balancer_avoids_is_never_restarted_and_named",
            f"{ENGINES}test_b81_a_stale_engine_that_can_be_asked_by_name_shows_its_step",
        ),
    ),
    Row(
        "B82",
        "Metrics are renamed or missing.",
        "UNKNOWN: the canary decides, and a warning names what is missing.",
        (
            f"{WATCHDOG_TESTS}test_b82_missing_metrics_are_named_and_never_stall_nor_restart_by_default",
            f"{WATCHDOG_TESTS}test_b82_without_steps_silence_is_unknown_until_the_canary_has_spoken",
        ),
    ),
    Row(
        "B83",
        "Several API servers, several engines, one of them stuck.",
        "Counters are judged per engine.",
        (
            f"{WATCHDOG_TESTS}test_b83_one_stuck_engine_is_seen_though_the_other_advances",
            f"{WATCHDOG_TESTS}test_b83_stale_gauges_of_one_engine_are_refuted_by_a_canary_each",
            f"{ENGINES}test_b83_a_stuck_engine_is_asked_by_name_though_the_balancer_avoids_it",
            f"{ENGINES}test_b83_a_stuck_engine_to_which_no_canary_comes_is_named_and_left_alone",
            "tests/hairmesh/test_watch.py::test_of_several_engines_the_stuck_one_is_named_and_each_gets_a_canary",
        ),
    ),
    Row(
        "B85",
        "A busy engine misses its health deadline.",
        "Slow is SATURATED; only refused connections, several in a row, are DEAD.",
        (
            f"{WATCHDOG_TESTS}test_b85_slow_is_saturated_and_never_restarted",
            f"{RESTARTS}test_b85_refused_five_times_in_a_row_is_dead",
            "tests/hairmesh/test_watch.py::test_b85_refused_five_times_is_dead",
        ),
    ),
    Row(
        "B86",
        "A long prefill or a cold start: running, and no token yet.",
        "Not before the grace, and not after a start before its own.",
        (
            f"{WATCHDOG_TESTS}test_b86_a_silence_shorter_than_the_grace_is_nothing",
            f"{RESTARTS}test_b86_a_first_request_that_takes_long_after_a_start_is_given_the_time",
        ),
    ),
    Row(
        "B87",
        "/metrics answers 500 or HTML while inference works.",
        "The canary decides; HTTP errors are never proof.",
        (
            f"{WATCHDOG_TESTS}test_b87_metrics_broken_while_inference_works_is_degraded_and_says_so",
            f"{WATCHDOG_TESTS}test_b87_without_counters_a_silent_canary_is_no_proof",
            "tests/hairmesh/test_watch.py::test_b87_broken_metrics_are_degraded_by_canary",
        ),
    ),
    Row(
        "B88",
        "A vision LLM refuses a WebP data URI.",
        "Whatever comes in, an 8-bit RGB JPEG goes there, upright and without metadata; a 400 is not tried again.",
        (
            "tests/edge/local/test_engine.py::test_b88_whatever_comes_in_a_plain_jpeg_goes_out",
            "tests/edge/local/test_engine.py::test_b88_it_is_upright_reduced_and_holds_nothing_but_pixels",
            "tests/edge/local/test_llm.py::test_what_goes_wrong_has_a_name",
        ),
    ),
)
