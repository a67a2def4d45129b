"""Reports from the field about HTTP, connections and the configuration: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import EXCHANGE, GRPC, LEAVING, MAIN, RELOAD, REST_REPORTS

ROWS = (
    Row(
        "B52",
        "A picture as the body of a route that takes JSON: 500, and the body lands in the log.",
        "415, 413 or BAD_JSON from every call; nothing of the body in any log or answer.",
        (f"{REST_REPORTS}test_b52_pictures_as_bodies_stay_out_of_logs",),
    ),
    Row(
        "B54",
        "A refusal repeats what was sent: pictures, or secrets.",
        "It names the field and what is wrong with it, in less than 1 kB; values are in no answer and no log.",
        (
            f"{REST_REPORTS}test_b54_refusals_do_not_repeat_what_was_sent",
            "tests/edge/test_upload.py::test_nothing_of_a_broken_text_is_in_its_refusal",
        ),
    ),
    Row(
        "B55",
        "A client closes its connection and its call runs on.",
        "The RPC is cancelled within 1 s, the slot follows the stage that runs, the job leaves the diffusion server,"
        " and the request log says `client_closed`.",
        (
            f"{REST_REPORTS}test_b55_thirty_clients_leave",
            f"{EXCHANGE}test_a_client_that_leaves_cancels_its_call",
            f"{GRPC}test_18_a_client_that_leaves_frees_the_worker",
            f"{LEAVING}test_18_a_client_of_the_edge_leaves_and_the_worker_hears_of_it",
            "tests/worker/test_growth_calls.py::test_a_client_that_leaves_frees_the_slot_in_mid_growth",
            "tests/worker/test_diffusion.py::test_a_client_that_leaves_takes_its_job_along",
        ),
    ),
    Row(
        "B56",
        "Files of uploads stay open where an error skips closing them.",
        "Uploads are in memory alone: whatever becomes of them, no descriptor and no file stays.",
        (f"{REST_REPORTS}test_b56_uploads_leave_nothing_open",),
    ),
    Row(
        "B57",
        "A limit on connections counts idle ones, and health gets the 503.",
        "Requests are limited, and an idle connection makes room for a new one: probes are answered beside any number.",
        (
            f"{REST_REPORTS}test_b57_idle_connections_cost_nobody_an_answer",
            "tests/edge/server/test_connection.py::test_more_connections_than_there_is_room_for",
        ),
    ),
    Row(
        "B58",
        "A reload reaches one of several processes.",
        "An edge is one process: to start it with more is refused.",
        (
            f"{MAIN}test_several_processes_are_refused",
            f"{MAIN}test_a_changed_file_is_in_force_in_the_running_process",
        ),
    ),
    Row(
        "B59",
        "A long call or an idle connection delays the end without end.",
        "Idle connections are closed at once; what runs after the grace time, and what is half sent, gets 503. A worker"
        " ends by its own grace time, and takes its job off the diffusion server.",
        (
            "tests/edge/test_stopping.py::"
            "test_b59_neither_a_long_call_nor_an_idle_connection_nor_half_an_upload_keeps_it",
            f"{MAIN}test_a_whole_life",
            "tests/worker/test_process.py::test_compute_thread_that_never_ends_does_not_hold_the_process",
            "tests/worker/test_diffusion.py::test_a_worker_that_ends_takes_its_job_along",
        ),
    ),
    Row(
        "B60",
        "Health waits for a thread of the pool that all requests share.",
        "Probes need no thread: they are answered while sixty requests wait, and while the disk hangs.",
        (
            f"{EXCHANGE}test_probes_answer_while_sixty_requests_wait",
            f"{EXCHANGE}test_a_disk_that_hangs_stops_neither_probes_nor_refusals",
        ),
    ),
    Row(
        "B61",
        "Behind a proxy, links come out as http:// or with the inner host.",
        "They begin with `public_base_url`, prefix included; Host and forwarded headers change nothing, whoever sends"
        " them.",
        (
            f"{REST_REPORTS}test_b61_addresses_in_answers_come_from_the_configuration",
            f"{REST_REPORTS}test_b61_behind_a_proxy_the_configured_base_counts_even_where_the_proxy_is_trusted",
            "tests/edge/test_settings.py::test_what_picture_urls_begin_with",
        ),
    ),
    Row(
        "B63",
        "A reload reads half a file.",
        "What is in force stays, password and all, until the file is whole; what is wrong with it is said once, in the"
        " log and in `/admin/pool`.",
        (
            "tests/edge/test_reload_of_a_process.py::test_b63_written_in_two_halves_a_second_apart",
            "tests/edge/test_reload_of_a_process.py::test_b63_a_bad_file_changes_nothing_and_is_one_clear_error",
            f"{RELOAD}test_half_a_file_is_given_time",
            f"{RELOAD}test_what_is_broken_changes_nothing_and_is_said_once",
            f"{RELOAD}test_whatever_takes_the_files_place_the_watching_goes_on",
        ),
    ),
)
