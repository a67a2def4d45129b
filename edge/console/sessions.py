"""Who has entered the console. Pure: the time is an argument.

A session begins with an admin token and ends when it is left, when its page has been closed for a while, after a day's
work, and at once when its token is taken out of the configuration. It lives in the memory of this edge alone.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import SecretStr

from hairmesh.secret import is_one_of

IDLE_S = 3600.0
"""Without a request; a page that is open and in view asks every few seconds."""
ABSOLUTE_S = 12 * 3600.0
"""However busy it is."""
MAX_SESSIONS = 100
"""Beyond them, whoever has been silent the longest enters anew."""
ID_BYTES = 32


@dataclass(slots=True)
class _Session:
    token: bytes
    """Hash of the admin token that opened it."""
    opened_s: float
    seen_s: float


class Sessions:
    """Kept by the hash of their id: neither ids nor tokens stand here longer than a request."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, _Session] = {}

    def enter(self, given: str, tokens: Iterable[SecretStr], now_s: float) -> str | None:
        """The id of a new session, or None where `given` is none of `tokens`; as slow for every wrong one."""
        token = _hash(given)
        if not _is_one_of(token, tokens):
            return None
        self._forget_over(now_s)
        if len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[min(self._sessions, key=lambda key: self._sessions[key].seen_s)]
        session_id = secrets.token_urlsafe(ID_BYTES)
        self._sessions[_hash(session_id)] = _Session(token, opened_s=now_s, seen_s=now_s)
        return session_id

    def is_open(self, session_id: str, tokens: Iterable[SecretStr], now_s: float) -> bool:
        """Whether this one may go on; that it has asked keeps it open."""
        session = self._sessions.get(key := _hash(session_id))
        if session is None:
            return False
        if _is_over(session, now_s) or not _is_one_of(session.token, tokens):
            del self._sessions[key]
            return False
        session.seen_s = now_s
        return True

    def leave(self, session_id: str) -> None:
        """End it, if it is one."""
        self._sessions.pop(_hash(session_id), None)

    def _forget_over(self, now_s: float) -> None:
        self._sessions = {key: each for key, each in self._sessions.items() if not _is_over(each, now_s)}


def _is_over(session: _Session, now_s: float) -> bool:
    return now_s - session.seen_s > IDLE_S or now_s - session.opened_s > ABSOLUTE_S


def _is_one_of(token: bytes, tokens: Iterable[SecretStr]) -> bool:
    return is_one_of(token, (_hash(each.get_secret_value()) for each in tokens))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
