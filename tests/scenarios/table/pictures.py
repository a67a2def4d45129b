"""Reports from the field about pictures that come in: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import DECODE, HARD, NO_FAULT, PHOTO, REST_REPORTS, UPLOAD, VISION_REPORTS

ROWS = (
    Row(
        "B01",
        "The same phone photo comes out turned or not, as the decoder is called.",
        "EXIF orientation is applied once, whatever the entrance; what is found and drawn equals the upright copy's, "
        "and no picture carries it on.",
        (
            f"{VISION_REPORTS}test_b01_a_turned_file_is_the_upright_photo_in_everything_that_is_found_and_drawn",
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
        "Red stays red, with and without Adobe's marker, as CMYK and as YCCK; pictures in answers are RGB. A file whose"
        " inks are the wrong way round comes out as in every viewer: nothing in it says so.",
        (
            f"{DECODE}test_red_ink_stays_red_with_and_without_the_adobe_marker",
            f"{DECODE}test_red_ink_stays_red_where_inks_are_stored_as_ycck",
            f"{DECODE}test_inks_the_wrong_way_round_are_a_negative_and_no_error",
            HARD,
        ),
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
        (f"{VISION_REPORTS}test_b08_of_thousands_of_frames_one_is_decoded", HARD),
    ),
    Row(
        "B09",
        "HEIC under a JPEG's name.",
        "The bytes decide.",
        (f"{REST_REPORTS}test_b09_heic_under_a_jpeg_name", f"{DECODE}test_the_bytes_decide_and_not_the_name", HARD),
    ),
    Row(
        "B10",
        "A truncated photo opens and fails later.",
        "DAMAGED_IMAGE; half a picture is never measured, and no worker is blamed.",
        (
            f"{DECODE}test_truncated_photos_are_damaged_and_never_half_grey",
            f"{DECODE}test_a_png_with_damage_among_its_pixels_is_never_measured",
            f"{NO_FAULT}test_b68_ten_of_each_in_a_row_and_no_strike",
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
            f"{VISION_REPORTS}test_b11_a_line_is_no_photo",
            HARD,
        ),
    ),
    Row(
        "B12",
        "A file name that climbs out of the folder.",
        "Names of the client make no files; nothing but pictures is served.",
        (
            f"{REST_REPORTS}test_b12_b13_names_make_no_files",
            f"{REST_REPORTS}test_b12_nothing_but_pictures_is_served",
            f"{REST_REPORTS}test_b12_b13_a_masks_name_makes_no_file_either",
        ),
    ),
    Row(
        "B13",
        "A file name in Chinese or with an emoji.",
        "It changes nothing.",
        (f"{REST_REPORTS}test_b12_b13_names_make_no_files", f"{UPLOAD}test_names_of_files_do_not_matter"),
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
            f"{REST_REPORTS}test_b16_broken_forms",
            f"{REST_REPORTS}test_b16_masks_in_broken_forms",
            f"{UPLOAD}test_what_is_no_form",
            f"{UPLOAD}test_wrong_fields_are_named",
        ),
    ),
    Row(
        "B17",
        "A `data:` prefix is left in the base64.",
        "It is taken off; the bytes decide the format.",
        (
            f"{REST_REPORTS}test_b17_data_urls",
            f"{REST_REPORTS}test_b17_masks_as_data_urls",
            f"{UPLOAD}test_every_dress_of_base64_gives_the_same_bytes",
        ),
    ),
    Row(
        "B18",
        "base64 damaged on the way decodes to another picture.",
        "BAD_BASE64; nothing is dropped or guessed.",
        (
            f"{REST_REPORTS}test_b18_base64_damaged_on_the_way",
            f"{REST_REPORTS}test_b18_a_masks_base64_damaged_on_the_way",
            f"{UPLOAD}test_plus_turned_into_a_blank_is_refused",
            f"{UPLOAD}test_a_foreign_character_is_never_dropped",
        ),
    ),
)
