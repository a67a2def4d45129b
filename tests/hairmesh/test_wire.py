"""What both sides share."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.upstream.channel import ChannelSecurityError, check_password
from hairmesh.wire import MAX_MESSAGE_BYTES, MAX_OUTPUT_SIDE_PX, password_problem
from worker.settings import SettingsError, parse


def test_the_largest_picture_fits_into_a_message_even_when_it_does_not_compress() -> None:
    rgb_bytes = 3 * MAX_OUTPUT_SIDE_PX**2
    assert rgb_bytes * 1.01 + 1_000_000 < MAX_MESSAGE_BYTES  # PNG's own bytes, and the numbers beside it


@given(
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1).filter(lambda text: text.strip() == text)
)
def test_printable_ascii_is_a_password(password: str) -> None:
    assert password_problem(password) == ""


@given(st.text())
def test_edge_and_worker_refuse_the_same_passwords(password: str) -> None:
    text = json.dumps({"accept_passwords": [password]})
    problem = password_problem(password)
    if not problem:
        check_password(password)
        parse(text, {}, origin="x")
        return
    with pytest.raises(ChannelSecurityError, match=problem):
        check_password(password)
    with pytest.raises(SettingsError, match=problem):
        parse(text, {}, origin="x")
