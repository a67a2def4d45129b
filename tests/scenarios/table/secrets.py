"""Reports from the field about secrets: which tests stand for them."""

from __future__ import annotations

from tests.scenarios.row import Row
from tests.scenarios.table.files import PASSWORDS, SECRETS, SECURITY

ROWS = (
    Row(
        "B98",
        "A token that is not ASCII makes the comparison raise: 500 without authentication.",
        "Bytes are compared, in one place. Such a token, an empty one, a long one, or one sent twice is 401; one of 1"
        " MB is 431 before anybody looks; the configuration refuses what headers or metadata cannot carry.",
        (
            f"{SECRETS}test_b98_any_bytes_are_a_wrong_token_and_no_more",
            f"{SECRETS}test_b98_one_that_no_head_may_hold_is_not_even_looked_at",
            f"{SECRETS}test_b98_the_right_one_sent_twice_is_refused",
            "tests/hairmesh/test_secret.py::test_b98_nobody_else_compares_secrets",
            f"{PASSWORDS}test_non_ascii_bytes_are_wrong_not_an_error",
            "tests/edge/upstream/test_channel.py::"
            "test_a_password_that_metadata_cannot_carry_is_refused_without_being_told",
        ),
    ),
    Row(
        "B99",
        "The rejected token is printed in full in a log.",
        "No password, token or key of ours, no wrong one and none of what is downstream shows in any log, answer,"
        " metric or process list.",
        (f"{SECURITY}test_b99_b100_no_secret_shows_anywhere",),
    ),
    Row(
        "B100",
        "A key in the query string stands in the access log.",
        "It opens nothing: 401, or 400 for a call. There is no access log, and nothing of a query is kept.",
        (
            f"{SECRETS}test_b100_a_token_in_the_query_opens_nothing",
            f"{SECURITY}test_b99_b100_no_secret_shows_anywhere",
            "tests/edge/test_api_keys.py::test_a_key_in_the_query_or_in_the_body_is_none",
        ),
    ),
)
