"""Reports from the field about pictures, face mesh, parsing and the diffusion server: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row

DECODE = "tests/vision/test_decode.py::"
PHOTO = "tests/edge/test_photo.py::"
UPLOAD = "tests/edge/test_upload.py::"
REST = "tests/edge/test_field_reports.py::"
MESH = "tests/vision/test_field_reports.py::"
HARD = "tests/vision/hard/test_hard_pictures.py::test_it_gets_what_it_is_promised"
LANDMARKS = "tests/vision/test_landmarks.py::"
MODELS = "tests/vision/test_models.py::"
PARSING = "tests/vision/test_parsing.py::"
CLASSES = "tests/vision/test_field_reports_parsing.py::"
REAL = "tests/worker/test_real_models.py::"
COMFYUI = "tests/vision/growth/test_comfyui.py::"
FAULTS = "tests/vision/growth/test_comfyui_faults.py::"
DIFFUSION_WORKER = "tests/worker/test_diffusion.py::"
VIGIL = "tests/vision/growth/test_comfyui_vigil.py::"
TRANSCRIPT = "tests/vision/growth/test_comfyui_transcript.py::"

PICTURES = (
    Row(
        "B01",
        "The same phone photo comes out turned or not, as the decoder is called.",
        "EXIF orientation is applied once, whatever the entrance; what is found and drawn equals the upright copy's, "
        "and no picture carries it on.",
        (
            f"{MESH}test_b01_a_turned_file_is_the_upright_photo_in_everything_that_is_found_and_drawn",
            f"{DECODE}test_orientation_is_applied_once",
            HARD,
        ),
    ),
    Row(
        "B03",
        "16-bit grey turns white.",
        "Scaled to 8 bits; the face is measured as in the 8-bit copy.",
        (f"{DECODE}test_sixteen_bits_are_scaled_and_not_clipped", f"{DECODE}test_sixteen_bit_colour_png", HARD),
    ),
    Row(
        "B04",
        "CMYK comes out as a negative.",
        "Red stays red, with and without Adobe's marker; pictures in answers are RGB.",
        (f"{DECODE}test_red_ink_stays_red_with_and_without_the_adobe_marker", HARD),
    ),
    Row(
        "B05",
        "Pixels hidden under alpha 0 reappear.",
        "Alpha is composited on white before anything looks: one face, and nothing of the hidden one.",
        (
            f"{DECODE}test_hidden_pixels_never_appear",
            f"{DECODE}test_alpha_is_composited_on_white",
            f"{DECODE}test_a_palette_with_a_transparent_colour",
            HARD,
        ),
    ),
    Row(
        "B06",
        "An iPhone's JPEG is refused as MPO.",
        "It is a JPEG; its primary picture counts.",
        (f"{DECODE}test_the_primary_frame_counts", HARD),
    ),
    Row(
        "B08",
        "A small animation of thousands of frames eats the memory.",
        "One frame is decoded.",
        (f"{MESH}test_b08_of_thousands_of_frames_one_is_decoded", HARD),
    ),
    Row(
        "B09",
        "HEIC under a JPEG's name.",
        "The bytes decide.",
        (f"{REST}test_b09_heic_under_a_jpeg_name", f"{DECODE}test_the_bytes_decide_and_not_the_name", HARD),
    ),
    Row(
        "B10",
        "A truncated photo opens and fails later.",
        "DAMAGED_IMAGE; half a picture is never measured, and no worker is blamed.",
        (
            f"{DECODE}test_truncated_photos_are_damaged_and_never_half_grey",
            f"{DECODE}test_a_png_with_damage_among_its_pixels_is_never_measured",
            HARD,
        ),
    ),
    Row(
        "B11",
        "20 kB that unfold to 169 megapixels.",
        "Refused by the size in the header, at the edge, before anything is decoded.",
        (
            f"{PHOTO}test_a_small_file_that_would_fill_the_memory",
            f"{DECODE}test_the_pixel_limit_is_checked_in_the_header",
            f"{MESH}test_b11_a_line_is_no_photo",
            HARD,
        ),
    ),
    Row(
        "B12",
        "A file name that climbs out of the folder.",
        "Names of the client make no files; nothing but pictures is served.",
        (
            f"{REST}test_b12_b13_names_make_no_files",
            f"{REST}test_b12_nothing_but_pictures_is_served",
            f"{REST}test_b12_b13_a_masks_name_makes_no_file_either",
        ),
    ),
    Row(
        "B13",
        "A file name in Chinese or with an emoji.",
        "It changes nothing.",
        (f"{REST}test_b12_b13_names_make_no_files", f"{UPLOAD}test_names_of_files_do_not_matter"),
    ),
    Row(
        "B14",
        "A chunked upload passes the limit that looks at Content-Length.",
        "Counted while it is read, and read no further.",
        (
            f"{UPLOAD}test_reading_stops_where_the_limit_is_crossed",
            f"{UPLOAD}test_a_small_declared_length_is_not_believed",
            "tests/edge/test_exchange.py::test_a_chunked_body_is_counted",
            "tests/edge/test_exchange.py::test_lengths_that_are_none",
        ),
    ),
    Row(
        "B16",
        "A form without a boundary, unterminated, with a part twice.",
        "1008 in the envelope.",
        (
            f"{REST}test_b16_broken_forms",
            f"{REST}test_b16_masks_in_broken_forms",
            f"{UPLOAD}test_what_is_no_form",
            f"{UPLOAD}test_wrong_fields_are_named",
        ),
    ),
    Row(
        "B17",
        "A `data:` prefix is left in the base64.",
        "It is taken off; the bytes decide the format.",
        (
            f"{REST}test_b17_data_urls",
            f"{REST}test_b17_masks_as_data_urls",
            f"{UPLOAD}test_every_dress_of_base64_gives_the_same_bytes",
        ),
    ),
    Row(
        "B18",
        "base64 damaged on the way decodes to another picture.",
        "BAD_BASE64; nothing is dropped or guessed.",
        (
            f"{REST}test_b18_base64_damaged_on_the_way",
            f"{REST}test_b18_a_masks_base64_damaged_on_the_way",
            f"{UPLOAD}test_plus_turned_into_a_blank_is_refused",
            f"{UPLOAD}test_a_foreign_character_is_never_dropped",
        ),
    ),
)

FACE_MESH = (
    Row(
        "B19",
        "Building the landmarker is killed without a word.",
        "The worker dies as a process, and whoever started it hears how; the others serve on. Started again, it loads.",
        (
            "tests/hairmesh/test_child.py::test_child_that_ends_unasked_is_told_with_its_log",
            "tests/worker/test_announcements.py::test_a_load_of_two_minutes_outlives_a_start_timeout_of_90_s",
            "tests/e2e/test_incident.py::test_rolling_restart_of_all_workers",
            f"{LANDMARKS}test_start_up_is_silent",
        ),
    ),
    Row(
        "B20",
        "`mp.solutions` is gone; older versions drag numpy below 2.",
        "The Tasks API alone; everything loads beside numpy 2 and torch.",
        (
            f"{MESH}test_b20_nothing_uses_the_face_mesh_that_is_gone",
            f"{MESH}test_b20_b31_all_that_a_worker_is_made_of_loads_together",
        ),
    ),
    Row(
        "B21",
        "A detector is used after it was closed.",
        "It belongs to the compute thread and is closed behind the last job; a reload never touches it.",
        (
            "tests/worker/test_field_reports.py::test_b21_a_configuration_that_changes_under_running_calls_fails_none_of_them",
            "tests/worker/test_field_reports.py::test_b21_what_a_call_computes_with_is_closed_after_it",
        ),
    ),
    Row(
        "B22",
        "One timestamp error spoils every later frame.",
        "Pictures, not a video: nothing of one request reaches the next.",
        (f"{REAL}test_b22_one_bad_request_never_spoils_the_next",),
    ),
    Row(
        "B23",
        "Under parallel use the mesh hangs, or results cross.",
        "One detector, one thread; everybody gets the answer to their own photo.",
        (f"{REAL}test_b23_callers_side_by_side_get_the_answer_to_their_own_photo",),
    ),
    Row(
        "B24",
        "Memory of a server that runs for long goes up.",
        "It stays where it is (`bench/memory.py`: 500 calls).",
        (f"{REAL}test_b24_memory_of_a_worker_stays_where_it_is",),
    ),
    Row(
        "B26",
        "The small face in the background is taken.",
        "The largest; among equals the one nearest the centre; the same person in every call.",
        (
            f"{REAL}test_b26_of_two_people_the_larger_is_meant_in_every_call",
            f"{LANDMARKS}test_the_larger_face_comes_first",
            f"{LANDMARKS}test_of_equal_faces_the_one_nearer_to_the_centre_comes_first",
        ),
    ),
    Row(
        "B27",
        "Visibility of landmarks is always 0.",
        "Never used; eyes behind glasses are told by the parser's class, or not at all.",
        (
            "tests/vision/test_scale.py::test_a_hidden_eye_leaves_the_other",
            "tests/vision/test_photo_warnings.py::test_glasses_earn_a_warning",
            "tests/vision/test_masks.py::test_eyes_behind_glasses_are_eyes",
            "tests/edge/local/test_engine.py::test_b27_eyes_behind_glasses_are_unknown",
            HARD,
        ),
    ),
    Row(
        "B28",
        "Landmarks drift in profile.",
        "Refused by name; nothing is drawn outside the picture, nothing raises.",
        (
            f"{REAL}test_b28_what_is_no_frontal_face_is_refused_alike_by_every_call",
            f"{REAL}test_b28_a_cartoon_face_breaks_no_call",
            HARD,
        ),
    ),
    Row(
        "B29",
        "Landmarks are off on pictures that are not square.",
        "They are where those of the padded copy are; the library's warning is told once at most.",
        (
            f"{LANDMARKS}test_long_narrow_pictures",
            f"{MESH}test_b29_a_long_narrow_picture_is_told_of_once_at_most",
        ),
    ),
    Row(
        "B30",
        "The GPU delegate cannot be made on a server without a display.",
        "Landmarks run on the CPU always; a GPU that is asked for and not there is named, and ends nothing.",
        (f"{REAL}test_b30_a_gpu_that_is_not_there_is_named_and_ends_nothing",),
    ),
    Row(
        "B31",
        "Generated code and runtime of protobuf do not fit.",
        "All parts load together in one process, from the pinned versions.",
        (
            f"{MESH}test_b20_b31_all_that_a_worker_is_made_of_loads_together",
            "tests/test_project.py::test_stubs_ask_for_the_versions_their_code_refuses_to_run_below",
        ),
    ),
)

FACE_PARSING = (
    Row(
        "B32",
        "Hair is class 17 here and 13 in another list.",
        "17 alone is hair, and lies above the eyes; sides stay the subject's in a mirror.",
        (
            f"{CLASSES}test_b32_hair_is_class_17_and_nothing_else",
            f"{CLASSES}test_b32_black_hair_and_red_lips",
            f"{PARSING}test_labels_lie_where_they_belong",
            f"{PARSING}test_left_and_right_are_not_swapped_in_a_mirror",
        ),
    ),
    Row(
        "B33",
        "A mask is resized with height and width exchanged.",
        "A mask has the photo's shape, whatever that is.",
        (f"{CLASSES}test_b33_width_and_height_change_places_nowhere",),
    ),
    Row(
        "B34",
        "Weights in the old format do not load, or are fetched at start.",
        "Loaded with the safe loader after their hash is checked; nothing is fetched when a worker starts.",
        (
            "tests/vision/test_bisenet.py::test_a_pickle_that_runs_code_is_refused",
            f"{MODELS}test_a_wrong_file_is_refused_by_name",
            f"{CLASSES}test_b34_weights_load_safely_and_ask_no_network",
        ),
    ),
    Row(
        "B36",
        "Parsing is poor on loosely framed photos.",
        "Crops follow the landmarks; loosely framed and tight, the hair is the same.",
        (
            f"{PARSING}test_loose_framing_leaves_the_hair_as_it_was",
            f"{CLASSES}test_b36_a_loose_frame_leaves_the_hair_as_it_was",
            f"{CLASSES}test_b36_half_precision_has_no_nan",
        ),
    ),
    Row(
        "B37",
        "A mask with nothing in it breaks the next step.",
        "Area 0, no colour, no NaN, and everything else goes on; nothing is sent to be grown in an empty region.",
        (
            f"{CLASSES}test_b37_heads_without_hair_are_answered",
            f"{CLASSES}test_b37_a_black_picture_has_no_parts",
            f"{CLASSES}test_b37_a_face_of_which_no_class_but_skin_is_seen",
            f"{MESH}test_b37_a_black_picture_of_a_face_without_hair_has_no_trouble",
            f"{PARSING}test_a_picture_without_hair_is_no_trouble",
            "tests/edge/local/test_engine.py::test_b37_a_shaved_head_has_no_hair_and_no_colour",
            f"{COMFYUI}test_an_empty_region_is_nothing_to_grow",
        ),
    ),
)

DIFFUSION = (
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
