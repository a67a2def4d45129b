"""Who may go on, and until when. Time is an argument."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from edge.console.sessions import ABSOLUTE_S, IDLE_S, MAX_SESSIONS, Sessions

TOKENS = (SecretStr("first-admin-token-of-the-test"), SecretStr("second-admin-token-of-the-test"))


def entered(sessions: Sessions, now_s: float = 0.0, token: str = "first-admin-token-of-the-test") -> str:
    session_id = sessions.enter(token, TOKENS, now_s)
    assert session_id is not None
    return session_id


@pytest.mark.parametrize(
    "token", ["", "first-admin-token-of-the-tes", "first-admin-token-of-the-testx", "\udcff", "中文"]
)
def test_nobody_enters_by_another_token(token: str) -> None:
    assert Sessions().enter(token, TOKENS, 0.0) is None


def test_nobody_enters_where_there_are_no_tokens() -> None:
    assert Sessions().enter("", (), 0.0) is None


def test_ids_cannot_be_guessed_and_are_not_kept() -> None:
    sessions = Sessions()
    ids = {entered(sessions) for _ in range(20)}
    assert len(ids) == 20
    assert all(len(each) >= 43 for each in ids)  # 256 bits in base64
    assert not any(each in repr(vars(sessions)) for each in ids)
    assert "admin-token" not in repr(vars(sessions))


def test_a_session_goes_on_as_long_as_it_is_used_and_no_longer_than_a_shift() -> None:
    sessions = Sessions()
    session_id = entered(sessions)
    now_s = 0.0
    while now_s + IDLE_S <= ABSOLUTE_S:
        now_s += IDLE_S
        assert sessions.is_open(session_id, TOKENS, now_s)
    assert not sessions.is_open(session_id, TOKENS, ABSOLUTE_S + 1.0)
    assert not sessions.is_open(session_id, TOKENS, now_s), "it does not come back"


def test_a_session_that_is_not_used_ends() -> None:
    sessions = Sessions()
    session_id = entered(sessions)
    assert not sessions.is_open(session_id, TOKENS, IDLE_S + 1.0)


def test_a_session_ends_with_the_token_that_opened_it() -> None:
    sessions = Sessions()
    first, second = entered(sessions), entered(sessions, token="second-admin-token-of-the-test")
    assert not sessions.is_open(first, TOKENS[1:], 1.0)
    assert sessions.is_open(second, TOKENS[1:], 1.0)
    assert not sessions.is_open(first, TOKENS, 2.0), "a token that is put back opens nothing again"


def test_leaving_ends_one_session() -> None:
    sessions = Sessions()
    first, second = entered(sessions), entered(sessions)
    sessions.leave(first)
    sessions.leave("no-such-session")
    assert not sessions.is_open(first, TOKENS, 1.0)
    assert sessions.is_open(second, TOKENS, 1.0)


def test_too_many_make_room_for_each_other() -> None:
    sessions = Sessions()
    ids = [entered(sessions, float(number)) for number in range(MAX_SESSIONS)]
    assert sessions.is_open(ids[0], TOKENS, MAX_SESSIONS + 1.0)
    entered(sessions, MAX_SESSIONS + 2.0)
    assert not sessions.is_open(ids[1], TOKENS, MAX_SESSIONS + 3.0), "the one that was silent the longest"
    assert sessions.is_open(ids[0], TOKENS, MAX_SESSIONS + 3.0)
