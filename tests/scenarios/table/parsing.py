"""Reports from the field about face parsing: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import COMFYUI, MODELS, PARSING, PARSING_REPORTS, VISION_REPORTS

ROWS = (
    Row(
        "B32",
        "Hair is class 17 here and 13 in another list.",
        "17 alone is hair, and lies above the eyes; sides stay the subject's in a mirror.",
        (
            f"{PARSING_REPORTS}test_b32_hair_is_class_17_and_nothing_else",
            f"{PARSING_REPORTS}test_b32_black_hair_and_red_lips",
            f"{PARSING}test_labels_lie_where_they_belong",
            f"{PARSING}test_left_and_right_are_not_swapped_in_a_mirror",
        ),
    ),
    Row(
        "B33",
        "A mask is resized with height and width exchanged.",
        "A mask has the photo's shape, whatever that is.",
        (f"{PARSING_REPORTS}test_b33_width_and_height_change_places_nowhere",),
    ),
    Row(
        "B34",
        "Weights in the old format do not load, or are fetched at start.",
        "Loaded with the safe loader after their hash is checked; nothing is fetched when a worker starts.",
        (
            "tests/vision/test_bisenet.py::test_a_pickle_that_runs_code_is_refused",
            f"{MODELS}test_a_wrong_file_is_refused_by_name",
            f"{PARSING_REPORTS}test_b34_weights_load_safely_and_ask_no_network",
        ),
    ),
    Row(
        "B36",
        "Parsing is poor on loosely framed photos.",
        "Crops follow the landmarks; loosely framed and tight, the hair is the same.",
        (
            f"{PARSING}test_loose_framing_leaves_the_hair_as_it_was",
            f"{PARSING_REPORTS}test_b36_a_loose_frame_leaves_the_hair_as_it_was",
            f"{PARSING_REPORTS}test_b36_half_precision_has_no_nan",
        ),
    ),
    Row(
        "B37",
        "A mask with nothing in it breaks the next step.",
        "Area 0, no colour, no NaN, and everything else goes on; nothing is sent to be grown in an empty region.",
        (
            f"{PARSING_REPORTS}test_b37_heads_without_hair_are_answered",
            f"{PARSING_REPORTS}test_b37_a_black_picture_has_no_parts",
            f"{PARSING_REPORTS}test_b37_a_face_of_which_no_class_but_skin_is_seen",
            f"{VISION_REPORTS}test_b37_a_black_picture_of_a_face_without_hair_has_no_trouble",
            f"{PARSING}test_a_picture_without_hair_is_no_trouble",
            "tests/edge/local/test_engine.py::test_b37_a_shaved_head_has_no_hair_and_no_colour",
            f"{COMFYUI}test_an_empty_region_is_nothing_to_grow",
        ),
    ),
)
