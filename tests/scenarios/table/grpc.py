"""Reports from the field about gRPC: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import CALLS, GRPC, HEALTH, LINES, NO_FAULT, PROCESS

ROWS = (
    Row(
        "B38",
        "A cancellation escapes from a grpc.aio handler, and the client never gets an answer.",
        "Handlers answer whatever is raised in them; the edge sets a deadline on every RPC.",
        (
            f"{GRPC}test_b38_a_worker_that_never_answers_costs_no_more_than_one_attempt",
            f"{HEALTH}test_call_over_the_grace_time_is_cut_off_with_a_reason",
        ),
    ),
    Row(
        "B39",
        "Messages above 4 MiB fail with RESOURCE_EXHAUSTED.",
        "One limit on both sides and in both directions; above it no strike and no retry; a big upload is 413.",
        (
            "tests/edge/upstream/test_sizes.py::test_b39_pictures_about_the_default_limit_pass_both_ways",
            "tests/edge/upstream/test_sizes.py::test_b39_above_our_limit_is_nobodys_fault_and_not_tried_again",
            f"{NO_FAULT}test_b39_a_body_above_the_edges_limit_is_413_and_reaches_nobody",
            f"{CALLS}test_big_messages_pass_and_too_big_ones_are_no_busy",
        ),
    ),
    Row(
        "B40",
        "Keepalive pings faster than the server allows end in GOAWAY.",
        "One table holds both sides' settings: workers allow pings twice as often as edges send them.",
        (
            f"{LINES}test_b40_an_idle_channel_and_a_silent_call_are_pinged_and_never_told_to_calm_down",
            "tests/edge/upstream/test_connection.py::test_b40_pings_offend_no_worker_of_ours_but_every_other_one",
        ),
    ),
    Row(
        "B41",
        "Work inside the event loop blocks the health service.",
        "Work runs in the compute thread alone: checks are answered at once while it does.",
        (f"{CALLS}test_health_and_status_answer_while_it_computes",),
    ),
    Row(
        "B43",
        "The client gave up, the blocking job runs on.",
        "The slot follows the thread; stages look at a flag, so that this is soon.",
        (
            f"{CALLS}test_call_that_runs_out_of_time_keeps_the_slot_until_its_thread_ends",
            f"{CALLS}test_ten_cancelled_calls_leave_soon_by_the_flag",
        ),
    ),
    Row(
        "B44",
        "A fork after gRPC was used ends in a deadlock.",
        "Processes are spawned, never forked.",
        (
            "tests/worker/test_field_reports.py::test_b44_nothing_forks_processes_are_started_anew",
            "tests/worker/test_field_reports.py::test_b44_a_worker_that_starts_children_goes_on_answering",
        ),
    ),
    Row(
        "B46",
        "A middlebox drops an idle flow without a word; the next RPC fails.",
        "Pings keep the flow alive; where it is dropped all the same, they notice, and the call is tried elsewhere.",
        (
            f"{LINES}test_b46_pings_keep_a_flow_alive_where_silence_would_have_it_dropped",
            f"{LINES}test_b46_a_flow_dropped_without_a_word_costs_one_retry_and_comes_back",
        ),
    ),
    Row(
        "B47",
        "A cached channel dials the address of a dead worker for minutes.",
        "A channel belongs to an address; names are resolved anew, and the new address has a channel of its own.",
        (
            "tests/edge/upstream/test_resolver.py::test_b47_a_worker_that_dies_and_comes_back_elsewhere_is_used_again_and_others_carry_the_load",
        ),
    ),
    Row(
        "B48",
        "The server stops before the last words of its handlers are out.",
        "The end waits for the running call and its log line, within its grace.",
        (
            f"{PROCESS}test_sigterm_lets_the_running_call_finish",
            "tests/worker/test_field_reports.py::test_b48_the_log_line_of_a_call_that_is_refused_at_the_very_end_is_written",
        ),
    ),
    Row(
        "B49",
        "grpc.aio in two event loops: BlockingIOError floods the log.",
        "One loop per process for all channels.",
        (f"{LINES}test_b49_five_thousand_requests_while_monitors_ask_and_grpc_has_nothing_to_complain_of",),
    ),
    Row(
        "B50",
        "A channel per call: thousands of open sockets.",
        "One channel per endpoint, for as long as it is in the pool.",
        ("tests/edge/upstream/test_flat.py::test_b50_descriptors_and_memory_stay_flat",),
    ),
    Row(
        "B51",
        "Watch takes a thread per watcher, and starves the server.",
        "Streams are coroutines: fifty that vanish cost nothing.",
        (
            f"{HEALTH}test_fifty_watchers_that_leave_cost_nothing",
            "tests/worker/test_watchers.py::test_b51_watchers_killed_leave_nothing_behind",
            "tests/worker/test_watchers.py::test_b51_watchers_that_fall_silent_are_gone_within_the_ping_time",
            "tests/worker/test_field_reports.py::test_b51_fifty_watchers_killed_leave_nothing_behind",
        ),
    ),
)
