"""Reports from the field about the diffusion server: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import COMFYUI, DIFFUSION_WORKER, FAULTS, TRANSCRIPT, VIGIL

ROWS = (
    Row(
        "B72",
        "The socket says its first word and then nothing, while jobs finish.",
        "The history is polled beside it, and is the truth: the picture is there within 5 s; the socket is renewed.",
        (
            f"{FAULTS}test_b72_what_only_the_history_knows_is_there_with_the_next_look_at_it",
            f"{VIGIL}test_b72_and_b74_are_found_out_in_time",
            f"{FAULTS}test_b72_a_silent_socket_is_renewed_and_the_history_brings_the_picture",
            f"{FAULTS}test_b72_movement_that_only_the_memory_shows_is_a_sign_of_life",
        ),
    ),
    Row(
        "B73",
        "The same prompt again, from the cache: success, and no output.",
        "A `client_id` always; without output one more try under new names, then a named failure.",
        (
            f"{FAULTS}test_b73_a_success_without_output_is_tried_once_more_under_new_names",
            f"{FAULTS}test_b73_and_then_given_up",
            f"{COMFYUI}test_a_prompt_is_never_sent_without_a_client_id",
            f"{TRANSCRIPT}test_without_a_client_id_a_cached_prompt_has_no_output",
        ),
    ),
    Row(
        "B74",
        "The server crashed and came back: it knows nothing of the job.",
        "In neither queue nor history, twice: one more try, then a named failure, within 10 s.",
        (
            f"{VIGIL}test_b72_and_b74_are_found_out_in_time",
            f"{FAULTS}test_b74_a_prompt_that_is_nowhere_is_tried_once_more",
            f"{FAULTS}test_b74_and_then_given_up",
            f"{FAULTS}test_a_server_that_restarts_during_the_job_gets_it_once_more",
        ),
    ),
    Row(
        "B75",
        "Everything stays queued, and HTTP answers.",
        "Stalled by lack of progress, however short the caller's time; our own job leaves the queue; growth is out of"
        " capability, the worker is not; the other styles of the call do not wait.",
        (
            f"{FAULTS}test_b75_the_default_call_finds_a_server_that_stands_and_does_not_wait_for_it_again",
            f"{DIFFUSION_WORKER}test_b75_a_server_that_stands_costs_growth_until_it_moves_and_its_callers_no_answer",
            f"{FAULTS}test_b75_a_queue_that_stands_still_is_stalled_and_our_job_leaves_it",
            f"{FAULTS}test_b75_our_own_job_that_stands_still_is_stalled",
            f"{VIGIL}test_a_queue_that_only_grows_stands_still",
            f"{VIGIL}test_a_stand_outlives_the_job_that_met_it",
        ),
    ),
    Row(
        "B76",
        "A workflow with errors, refused with 400 or taken with 200.",
        "Refused once, the node in the log, nothing of the workflow in any answer. The worker stays healthy and online;"
        " growth is out of its capability, as no call of it can succeed.",
        (
            f"{DIFFUSION_WORKER}test_b76_a_workflow_that_is_refused_costs_growth_and_no_health",
            f"{FAULTS}test_b76_a_workflow_that_the_server_does_not_know_is_refused_once",
            f"{FAULTS}test_b76_a_prompt_that_is_taken_with_errors_is_refused_and_removed",
            "tests/vision/growth/test_comfyui_answers.py::test_paths_and_values_of_a_refusal_are_not_repeated",
        ),
    ),
    Row(
        "B78",
        "A name that is taken already: the earlier picture is used.",
        "Names of their own for every job, and those the server answers with.",
        (
            f"{COMFYUI}test_b78_two_jobs_at_once_get_their_own_pictures",
            f"{COMFYUI}test_b78_a_name_that_somebody_else_has_is_not_mistaken_for_ours",
        ),
    ),
    Row(
        "B79",
        "The socket is half dead.",
        "Noticed by its pings, replaced under the same name; the history brings the result.",
        (
            f"{FAULTS}test_b79_a_half_dead_socket_is_noticed_and_replaced",
            f"{FAULTS}test_a_socket_that_breaks_again_and_again_costs_nothing_but_news",
        ),
    ),
)
