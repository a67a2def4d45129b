"""Reports from the field about the face mesh: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import HARD, LANDMARKS, REAL_MODELS, VISION_REPORTS

ROWS = (
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
            f"{VISION_REPORTS}test_b20_nothing_uses_the_face_mesh_that_is_gone",
            f"{VISION_REPORTS}test_b20_b31_all_that_a_worker_is_made_of_loads_together",
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
        (f"{REAL_MODELS}test_b22_one_bad_request_never_spoils_the_next",),
    ),
    Row(
        "B23",
        "Under parallel use the mesh hangs, or results cross.",
        "One detector, one thread; everybody gets the answer to their own photo.",
        (f"{REAL_MODELS}test_b23_callers_side_by_side_get_the_answer_to_their_own_photo",),
    ),
    Row(
        "B24",
        "Memory of a server that runs for long goes up.",
        "It stays where it is (`bench/memory.py`: 500 calls).",
        (f"{REAL_MODELS}test_b24_memory_of_a_worker_stays_where_it_is",),
    ),
    Row(
        "B26",
        "The small face in the background is taken.",
        "The largest; among equals the one nearest the centre; the same person in every call.",
        (
            f"{REAL_MODELS}test_b26_of_two_people_the_larger_is_meant_in_every_call",
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
            f"{REAL_MODELS}test_b28_what_is_no_frontal_face_is_refused_alike_by_every_call",
            f"{REAL_MODELS}test_b28_a_cartoon_face_breaks_no_call",
            HARD,
        ),
    ),
    Row(
        "B29",
        "Landmarks are off on pictures that are not square.",
        "They are where those of the padded copy are; the library's warning is told once at most.",
        (
            f"{LANDMARKS}test_long_narrow_pictures",
            f"{VISION_REPORTS}test_b29_a_long_narrow_picture_is_told_of_once_at_most",
        ),
    ),
    Row(
        "B30",
        "The GPU delegate cannot be made on a server without a display.",
        "Landmarks run on the CPU always; a GPU that is asked for and not there is named, and ends nothing.",
        (f"{REAL_MODELS}test_b30_a_gpu_that_is_not_there_is_named_and_ends_nothing",),
    ),
    Row(
        "B31",
        "Generated code and runtime of protobuf do not fit.",
        "All parts load together in one process, from the pinned versions.",
        (
            f"{VISION_REPORTS}test_b20_b31_all_that_a_worker_is_made_of_loads_together",
            "tests/test_project.py::test_stubs_ask_for_the_versions_their_code_refuses_to_run_below",
        ),
    ),
)
