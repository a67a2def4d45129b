"""What the diffusion backend has to say to whoever runs the worker: one method for each kind of news."""

from __future__ import annotations

from typing import Protocol


class News(Protocol):
    """Told from several threads. `problem` names what happened: no address, path or piece of a photo or prompt."""

    def tried_again(self, problem: str) -> None:
        """An attempt has failed in a way that may be over: there is a second one."""

    def socket_shut(self) -> None:
        """The server's socket does not open; its queue and history have to do."""

    def leftovers_wait(self, jobs: int, problem: str) -> None:
        """Of so many jobs something is still on the server; it is tried again and again."""

    def leftovers_removed(self, jobs: int) -> None:
        """… and of so many it is now gone."""

    def journal_missing(self, problem: str) -> None:
        """Jobs cannot be noted: what is left when this process is killed stays on the server."""


class NoNews:
    """For those who do not listen."""

    def tried_again(self, problem: str) -> None:
        """Nothing to do."""

    def socket_shut(self) -> None:
        """Nothing to do."""

    def leftovers_wait(self, jobs: int, problem: str) -> None:
        """Nothing to do."""

    def leftovers_removed(self, jobs: int) -> None:
        """Nothing to do."""

    def journal_missing(self, problem: str) -> None:
        """Nothing to do."""
