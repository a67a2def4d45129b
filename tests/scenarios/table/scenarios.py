"""Scenarios of the pool: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import (
    CALLS,
    CHECKS,
    COOLDOWNS,
    DECISIONS,
    DEPENDENCY,
    DISK,
    DISPATCH,
    DRIVER,
    ENDPOINT,
    EVENTS,
    GRPC,
    HEALTH,
    LEAVING,
    LINES,
    ONE_LOOP,
    POISON,
    PROCESS,
    REAL,
    SHARED,
    SIM,
    VERDICT,
    WATCH,
    WATCHDOG_TESTS,
)

ROWS = (
    Row(
        "1",
        "While a worker sits out its cooldown, probes of it pass, or fail.",
        "Neither ends the cooldown. The first good probe after it brings the worker back.",
        (
            f"{COOLDOWNS}test_1_probes_inside_a_cooldown_lift_nothing_and_the_first_good_one_after_it_does",
            f"{SIM}test_1_probes_inside_a_cooldown_lift_nothing",
            f"{WATCH}test_inside_a_cooldown_neither_word_nor_probes_nor_a_new_process_help",
            f"{ENDPOINT}test_no_traffic_inside_a_cooldown_whatever_is_heard",
        ),
    ),
    Row(
        "2",
        "A worker passes every probe and fails every call.",
        "Nothing goes there for the whole cooldown; then one call does, and the next cooldown is twice as long.",
        (
            f"{COOLDOWNS}test_2_b65_passing_probes_bring_no_traffic_to_a_worker_that_fails_every_call",
            f"{SIM}test_2_probes_pass_and_calls_fail_then_one_call_then_a_longer_cooldown",
            f"{ENDPOINT}test_cooldowns_double_up_to_the_maximum",
            "tests/e2e/test_incident.py::test_health_that_lies_does_not_shorten_a_cooldown",
        ),
    ),
    Row(
        "3",
        "All five workers fail within moments, for a cause that they may share.",
        "All are out and `/monitor` says so, with one alert. Cooldowns shorten, and one trial call at a time, in the"
        " whole pool, finds out when it is over.",
        (
            f"{SHARED}test_3_five_workers_fail_together_and_are_back_within_seconds_of_the_causes_end",
            "tests/edge/pool/test_brake.py::test_3_all_workers_fail_together",
            "tests/edge/pool/test_brake.py::test_trials_are_two_seconds_apart_however_soon_they_fail",
        ),
    ),
    Row(
        "4",
        "The only worker fails once.",
        "1007 with the rest of its cooldown as `Retry-After`, `/monitor` 503, back by the first good probe after it.",
        (
            f"{COOLDOWNS}test_4_the_only_worker_fails_once_and_clients_and_monitor_hear_the_truth",
            f"{SIM}test_4_the_only_worker_fails_once",
            f"{DRIVER}test_the_only_worker_fails_once",
        ),
    ),
    Row(
        "5",
        "Fifty callers want the one slot.",
        "They are served in the order of their arrival, or told BUSY when their wait is over. Nobody is ejected.",
        (
            f"{DISPATCH}test_5_fifty_callers_and_one_busy_worker_wait_for_no_longer_than_they_were_told",
            f"{DISPATCH}test_5_the_waiting_ones_are_served_first_come_first_served",
            f"{SIM}test_5_fifty_callers_one_slot",
            f"{DRIVER}test_fifty_callers_and_one_slot_are_served_in_order",
        ),
    ),
    Row(
        "6",
        "All primaries are killed under load.",
        "Their calls are tried again on the backups, which carry on.",
        (
            f"{SIM}test_6_all_primaries_are_killed_under_load",
            f"{DRIVER}test_sigkill_of_one_of_two_costs_no_client_anything_and_of_the_last_one_is_told_at_once",
            "tests/e2e/test_incident.py::test_all_primaries_killed_under_load",
        ),
    ),
    Row(
        "7",
        "Six calls of half a second come at once to three free slots.",
        "Late binding: two rounds. Nobody waits behind two others.",
        (
            f"{DISPATCH}test_7_six_calls_on_three_free_slots_take_two_rounds",
            f"{SIM}test_7_six_calls_on_three_slots_take_two_rounds",
            f"{DRIVER}test_a_request_gets_its_worker_when_a_slot_is_free",
        ),
    ),
    Row(
        "8",
        "An edge starts over fifty workers.",
        "Their first probes are spread over half a second.",
        (
            f"{DISPATCH}test_8_fifty_workers_are_not_asked_all_at_once",
            f"{EVENTS}test_first_probes_are_sent_at_once_slightly_spread",
        ),
    ),
    Row(
        "9",
        "Health says SERVING and calls are refused.",
        "The first refused call ejects the worker and is answered by another one.",
        (
            f"{COOLDOWNS}test_9_a_worker_whose_health_says_serving_and_whose_calls_are_refused_is_down",
            f"{SIM}test_9_serving_by_health_refused_by_calls_is_down",
        ),
    ),
    Row(
        "10",
        "Waves of calls go straight to one worker, past any edge.",
        "Its slot lets one compute; the others hear BUSY and for how long.",
        (
            f"{CALLS}test_waves_of_calls_never_compute_side_by_side",
            f"{CALLS}test_busy_time_follows_measured_service_times",
        ),
    ),
    Row(
        "11",
        "A hundred health checks come while the slot computes.",
        "They never use the slot, and are answered at once: SERVING.",
        (f"{CALLS}test_health_and_status_answer_while_it_computes",),
    ),
    Row(
        "12",
        "One call computes for long.",
        "Progress proves that it is work: SERVING throughout, no ejection.",
        (
            f"{REAL}test_12_b70_fifty_jobs_wait_for_one_worker_that_computes_and_no_probe_waits_with_them",
            f"{VERDICT}test_moving_counter_is_busy_for_ever",
        ),
    ),
    Row(
        "13",
        "The compute thread stands still while RPC threads answer.",
        "No step for longer than its stage allows, seen twice: stalled, and out of rotation until it moves.",
        (
            f"{REAL}test_13_a_frozen_compute_thread_takes_its_worker_out_and_the_rest_carries_on",
            f"{HEALTH}test_frozen_compute_thread_is_a_stall_and_moving_again_ends_it",
        ),
    ),
    Row(
        "14",
        "The accelerator is lost in a way that only a new process ends.",
        "NOT_SERVING, latched: an answer that looks good again proves nothing.",
        (
            f"{REAL}test_14_b64_a_lost_accelerator_costs_one_retry_and_never_comes_back",
            f"{HEALTH}test_lost_accelerator_latches_until_the_process_is_new",
            f"{CHECKS}test_models_come_back_with_the_canary_an_accelerator_does_not",
        ),
    ),
    Row(
        "15",
        "Progress is slow but moves; then it stops.",
        "Slow is BUSY for ever; still for longer than the stage allows is STALLED.",
        (
            f"{VERDICT}test_moving_counter_is_busy_for_ever",
            f"{VERDICT}test_still_counter_is_stalled_after_two_readings_over_the_limit",
        ),
    ),
    Row(
        "16",
        "Models still load.",
        "NOT_SERVING with the reason `starting`; liveness is fine, nobody restarts it.",
        (
            f"{HEALTH}test_while_models_load_only_liveness_and_disk_serve",
            f"{HEALTH}test_not_serving_before_the_first_canary",
        ),
    ),
    Row(
        "17",
        "A call with a second of patience queues behind one of twenty.",
        "It is answered when its second is over.",
        (
            f"{SIM}test_17_a_short_deadline_is_answered_when_it_passes",
            f"{DRIVER}test_a_queued_call_is_answered_at_its_own_deadline",
            f"{GRPC}test_patience_ends",
            f"{CALLS}test_short_deadline_behind_a_running_call_is_answered_at_once",
            f"{GRPC}test_17_a_queued_call_is_answered_when_its_own_time_is_up",
        ),
    ),
    Row(
        "18",
        "A client leaves while its call runs.",
        "The RPC is cancelled at once; the slot is leased again when the worker says that its thread has ended.",
        (
            f"{LEAVING}test_18_a_client_of_the_edge_leaves_and_the_worker_hears_of_it",
            f"{SIM}test_18_a_client_leaves_and_the_slot_frees_when_the_thread_ends",
            f"{DRIVER}test_a_client_that_leaves_cancels_the_rpc_and_the_slot_follows_the_thread",
            f"{GRPC}test_18_a_client_that_leaves_frees_the_worker",
        ),
    ),
    Row(
        "19",
        "The same with every middleware that the edge uses.",
        "The exchange around each request watches the connection itself, whatever stands outside of it.",
        (f"{GRPC}test_19_no_middleware_stands_between_a_client_that_leaves_and_its_call",),
    ),
    Row(
        "20",
        "A worker's machine freezes: no answer, no FIN.",
        "HTTP/2 pings notice within two probe periods; its call fails then and is tried again elsewhere.",
        (
            f"{DRIVER}test_a_frozen_process_is_noticed_and_its_call_goes_elsewhere",
            f"{SIM}test_a_silent_host_is_noticed_within_two_probe_periods",
            f"{LINES}test_b46_a_flow_dropped_without_a_word_costs_one_retry_and_comes_back",
            "tests/e2e/test_incident.py::test_a_frozen_worker_is_noticed_and_its_call_retried",
            "tests/edge/upstream/test_connection.py::test_a_frozen_worker_is_noticed_within_16_s_though_nothing_runs",
            "tests/e2e/test_hosts.py::test_each_edge_judges_by_its_own_lines_and_no_client_sees_an_error",
        ),
    ),
    Row(
        "21",
        "The name behind a DNS target moves while the old address still answers.",
        "The name is resolved again and again; the new address joins, the vanished one drains.",
        (
            "tests/edge/upstream/test_resolver.py::test_21_a_name_that_moves_while_the_old_address_still_answers_is_followed_without_losing_a_call",
            "tests/edge/upstream/test_resolver.py::test_an_empty_or_failed_answer_keeps_the_last_one_and_is_said_once",
        ),
    ),
    Row(
        "22a",
        "SIGTERM on a worker under load.",
        "It says so at once and serves on for a moment; what runs is finished, what is refused goes elsewhere.",
        (
            f"{DRIVER}test_sigterm_under_load_costs_no_client_anything_and_nobody_is_ejected",
            f"{SIM}test_22_a_drained_worker_costs_nobody_anything",
            f"{HEALTH}test_drain_finishes_the_running_call_and_refuses_new_ones",
            f"{PROCESS}test_sigterm_lets_the_running_call_finish",
        ),
    ),
    Row(
        "22b",
        "SIGTERM on one of two edges behind a proxy.",
        "It finishes its fast calls before it closes its port.",
        ("tests/edge/test_main.py::test_22_one_of_two_edges_is_stopped_and_no_call_is_lost",),
    ),
    Row(
        "23",
        "Two event loops would touch the same channels.",
        "One driver owns channels and clock; nothing of the edge makes another loop.",
        (
            f"{ONE_LOOP}test_23_nothing_of_the_edge_makes_a_second_loop_or_another_process",
            f"{ONE_LOOP}test_23_who_owns_channels_never_leaves_the_loop",
            f"{ONE_LOOP}test_23_every_event_reaches_the_pool_from_one_thread",
            "tests/edge/upstream/test_home.py::test_a_driver_serves_its_own_loop_only",
            "tests/edge/upstream/test_home.py::test_no_second_loop_of_the_process_gets_channels",
        ),
    ),
    Row(
        "24",
        "Readiness is false because a disk is full.",
        "Liveness stays true: a restart would not help.",
        (
            f"{HEALTH}test_full_disk_takes_out_the_worker_but_not_its_life",
            f"{CHECKS}test_out_at_once_below_the_lower_mark_back_only_above_the_upper_one",
            "tests/e2e/test_incident.py::test_a_full_disk_takes_its_worker_out_and_space_brings_it_back",
        ),
    ),
    Row(
        "25",
        "A dependency that all workers share dies.",
        "Optional: the capability goes, the workers stay. Required: they say so themselves, without any cooldown.",
        (
            f"{DEPENDENCY}test_25_an_optional_one_costs_its_capability_and_nobody_his_measurement",
            f"{DEPENDENCY}test_25_a_required_one_takes_all_out_by_their_own_word_and_all_are_back_with_it",
            "tests/edge/pool/test_brake.py::test_a_dependency_of_all_is_told_by_themselves_and_they_come_back_by_a_trial",
        ),
    ),
    Row(
        "26",
        "A cooldown ends with a hundred calls waiting.",
        "One goes there first; if it fails, no other follows.",
        (
            f"{COOLDOWNS}test_26_a_cooldown_ends_with_a_hundred_waiting_and_one_goes_there_first",
            f"{SIM}test_26_a_cooldown_ends_with_many_waiting_and_one_goes_first",
        ),
    ),
    Row(
        "27",
        "An input kills its worker.",
        "Two workers at most meet it; then it is refused as POISON_INPUT for ten minutes.",
        (
            f"{POISON}test_27_an_input_that_kills_its_worker_meets_two_of_them_and_is_then_refused",
            "tests/edge/pool/test_poison.py::test_27_an_input_that_breaks_two_workers_meets_no_third_and_is_refused",
            "tests/edge/pool/test_poison.py::test_it_is_remembered_for_ten_minutes",
        ),
    ),
    Row(
        "28",
        "Two thousand requests, two hundred probe rounds, twenty worker restarts.",
        "One channel per endpoint for its life: descriptors and memory stay flat.",
        ("tests/edge/upstream/test_flat.py::test_b50_descriptors_and_memory_stay_flat",),
    ),
    Row(
        "29",
        "One uploader sends twenty variants of an input that makes a stage fail.",
        "Its inputs are held to one worker, so that no more than one ever doubts itself; everyone else is served.",
        (
            f"{POISON}test_29_twenty_variants_of_an_input_that_breaks_a_stage_harm_nobody_else",
            f"{DECISIONS}test_one_uploader_of_bad_inputs_does_not_make_a_worker_guilty_that_answers_others",
            "tests/edge/pool/test_poison.py::test_29_who_uploads_variant_after_variant_is_held_to_one_worker_and_the_pool_stays_whole",
            "tests/edge/pool/test_poison.py::test_29_and_so_it_is_when_the_worker_itself_takes_the_blame",
        ),
    ),
    Row(
        "30",
        "A model's output turns to zeros under full load, and every photo has no face.",
        "The canary runs between two calls when it is overdue, or after eight refusals in a row.",
        (
            f"{REAL}test_30_models_that_find_nothing_any_more_are_found_out_under_full_load",
            f"{HEALTH}test_eight_refusals_in_a_row_force_a_canary",
            f"{HEALTH}test_overdue_canary_runs_between_calls_and_when_idle",
            "tests/e2e/test_incident.py::test_an_accelerator_gone_blind_is_found_by_the_canary",
        ),
    ),
    Row(
        "31",
        "A hundred clients of three edges leave at once.",
        "The workers' status streams tell every edge when a thread has ended: its slot is used again at once.",
        (
            f"{LEAVING}test_31_a_hundred_clients_of_three_edges_leave_and_every_slot_is_used_again_at_once",
            f"{DRIVER}test_a_burst_of_leaving_clients_frees_every_slot",
            f"{DRIVER}test_two_edges_share_workers_without_knowing_of_each_other",
            "tests/e2e/test_several_edges.py::test_they_share_slots_pictures_and_nothing_else",
        ),
    ),
    Row(
        "32",
        "Seven seconds in one diffusion node, ninety of loading there, the whole machine asleep for thirty.",
        "Each stage has its own patience, and a reading that comes late starts anew: no stall.",
        (
            f"{VERDICT}test_late_reading_starts_anew",
            f"{VERDICT}test_waiting_in_a_dependencys_queue_never_stalls_nor_counts_afterwards",
            "tests/hairmesh/test_watch_worker.py::"
            "test_a_worker_whose_call_waits_in_comfyuis_queue_is_well_and_left_alone",
            f"{CHECKS}test_suspended_machine_does_not_age_the_evidence",
            f"{WATCHDOG_TESTS}test_scenario_32_a_suspended_machine_is_no_stall",
            "tests/scenarios/test_suspension.py::test_32_half_a_minute_of_sleep_ends_no_call_and_takes_nobody_out",
            "tests/scenarios/test_suspension.py::"
            "test_32_the_edge_alone_sleeps_and_nobody_is_out_for_the_connections_it_lost",
        ),
    ),
    Row(
        "33",
        "A disk fills: the edge hears it by Watch first, or by a failed call first. Free space swings.",
        "The same end state, NOT_SERVING with cause `disk` and no cooldown; two watermarks, and ten seconds out.",
        (
            f"{DISK}test_33_whether_watch_or_a_failed_call_comes_first_the_end_is_the_same",
            f"{DISK}test_the_last_worker_s_full_disk_is_told_by_monitor_and_ends_by_itself",
            f"{ENDPOINT}test_watch_and_failed_call_lead_to_the_same_end_in_either_order",
            f"{CHECKS}test_free_space_that_swings_changes_the_state_rarely",
            "tests/worker/test_field_reports.py::test_33_full_disk_is_the_same_whether_a_watcher_or_a_call_learns_it_first",
            "tests/e2e/test_incident.py::test_a_full_disk_takes_its_worker_out_and_space_brings_it_back",
        ),
    ),
    Row(
        "34",
        "All workers are restarted, one by one.",
        "Draining is no strike and a new process ends it: no error, no ejection, no cooldown left behind.",
        (
            f"{SIM}test_a_rolling_restart_leaves_no_error_and_no_cooldown_behind",
            "tests/e2e/test_incident.py::test_rolling_restart_of_all_workers",
        ),
    ),
    Row(
        "35",
        "Growth is busy on all workers when measurements arrive.",
        "A measurement gets the next slot, and growth leaves one while any waits.",
        (
            f"{DISPATCH}test_35_growth_is_busy_everywhere_and_a_measurement_gets_the_next_slot",
            f"{DISPATCH}test_35_slow_calls_leave_one_worker_to_the_fast_ones_that_wait",
            f"{SIM}test_35_growth_fills_the_pool_and_a_measurement_gets_the_next_slot",
            f"{SIM}test_slow_calls_leave_one_worker_while_fast_ones_wait",
        ),
    ),
)
