"""The password between edge and workers, and the one before it, so that a rotation costs no request.

Edge and workers are told of a new password at different moments. Until both know it, a worker that refuses one of the
two is asked with the other, once, before its refusal counts. That a worker takes nothing but the former one goes
unnoticed by calls, so it is said here: the edge forgets that one with its next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import Context

import structlog

from edge.upstream.channel import check_password
from hairmesh import wire

log = structlog.get_logger()

Token = tuple[str, str]
"""A password as metadata."""


class Passwords:
    """The password of now and the one before it. Raises `ChannelSecurityError` for one that metadata cannot carry."""

    def __init__(self, password: str) -> None:
        check_password(password)
        self.known: tuple[Token, ...] = ((wire.TOKEN_KEY, password),)
        """The newest first."""
        self.changes = 0
        """How many there were: names the newest without holding it."""

    def __repr__(self) -> str:
        """How many there are."""
        return f"<Passwords {len(self.known)}>"

    def change(self, password: str) -> bool:
        """Remember the present one as the one before. Whether it is another at all."""
        check_password(password)
        newest = (wire.TOKEN_KEY, password)
        if newest == self.known[0]:
            return False
        self.known = (newest, self.known[0])
        self.changes += 1
        return True


class Key:
    """Which of them one worker takes: the one that worked last is tried first, so that steady state costs one RPC."""

    def __init__(self, passwords: Passwords, worker: str) -> None:
        self._passwords = passwords
        self._worker = worker
        """Its address, for the log."""
        self._worked = passwords.known[0]
        self._taken_change = passwords.changes
        """Of the newest one that it took; a new worker need not prove the one it begins with."""
        self._refused_change: int | None = None
        """Of the newest one that it did not take, and has not taken since."""
        self.is_former = False
        """Whether it refuses the newest and takes another."""

    def __repr__(self) -> str:
        """Nothing but its name."""
        return "<Key>"

    def worked(self, token: Token) -> None:
        """The worker took this one. Once per worker the log says which one that is, when it is news."""
        self._worked, change = token, self._passwords.changes
        if token == self._passwords.known[0]:
            is_news = self.is_former or self._taken_change != change
            self.is_former, self._refused_change, self._taken_change = False, None, change
            if is_news:
                self._say("info", "password_current")
        elif self._refused_change == change and not self.is_former:
            self.is_former = True
            self._say(
                "warning",
                "former_password_used",
                problem="refuses shared_password and takes the one before it; the edge forgets that one when it stops",
            )

    def tokens(self) -> Iterator[Token]:
        """Those to try, each once, for as long as the worker does not take them."""
        return self._until_taken(dict.fromkeys((self._worked, *self._passwords.known)))

    def newest_first(self) -> Iterator[Token]:
        """The same, but for who must notice that a worker has learnt the new one: a probe."""
        return self._until_taken(self._passwords.known)

    def _until_taken(self, tokens: Iterable[Token]) -> Iterator[Token]:
        for token in tokens:
            yield token
            if token == self._passwords.known[0]:  # and it was refused: else nobody would ask for the next one
                self._refused_change = self._passwords.changes

    def _say(self, level: str, event: str, **fields: str) -> None:
        """It is no part of the request that happens to bring it about."""
        Context().run(getattr(log, level), event, worker=self._worker, **fields)
