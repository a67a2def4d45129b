"""Whether a store works, by its last write; said in the log when that is news."""

from __future__ import annotations

import structlog

_NOT_TRIED = "not tried yet"

log = structlog.get_logger()


class Condition:
    """Told of every write, from any thread."""

    def __init__(self) -> None:
        self._trouble = _NOT_TRIED

    @property
    def trouble(self) -> str:
        """Why the last write failed; empty when it did not."""
        return self._trouble

    @property
    def good(self) -> bool:
        """Whether the last write succeeded."""
        return not self._trouble

    def worked(self) -> None:
        """A write succeeded."""
        self._note("")

    def failed(self, trouble: str) -> None:
        """A write did not."""
        self._note(trouble)

    def _note(self, trouble: str) -> None:
        before, self._trouble = self._trouble, trouble
        if before == _NOT_TRIED:
            before = ""
        if trouble and not before:
            log.error("pictures_not_stored", problem=trouble)
        elif before and not trouble:
            log.info("pictures_stored_again")
