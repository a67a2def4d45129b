"""The password between edge and workers, and the one before it, so that a rotation costs no request.

Edge and workers are told of a new password at different moments. Until both know it, a worker that refuses one of the
two is asked with the other, once, before its refusal counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from edge.upstream.channel import check_password
from hairmesh import wire

Token = tuple[str, str]
"""A password as metadata."""


class Passwords:
    """The password of now and the one before it. Raises `ChannelSecurityError` for one that metadata cannot carry."""

    def __init__(self, password: str) -> None:
        check_password(password)
        self.known: tuple[Token, ...] = ((wire.TOKEN_KEY, password),)
        """The newest first."""

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
        return True


class Key:
    """Which of them one worker takes: the one that worked last is tried first, so that steady state costs one RPC."""

    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords
        self._worked = passwords.known[0]

    def __repr__(self) -> str:
        """Nothing but its name."""
        return "<Key>"

    def worked(self, token: Token) -> None:
        """The worker took this one."""
        self._worked = token

    def tokens(self) -> Iterator[Token]:
        """Those to try, each once, for as long as the worker does not take them."""
        first = self._worked
        yield first
        for token in self._passwords.known:
            if token != first:
                yield token

    def newest_first(self) -> Iterator[Token]:
        """The same, but for who must notice that a worker has learnt the new one: a probe."""
        return iter(self._passwords.known)
