"""What every picture store does. Pictures are patients' faces: their ids cannot be guessed."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Protocol

ID = re.compile(r"[0-9a-f]{32}")
"""128 random bits, in hex: safe in URLs, file names and object keys on every system."""


def new_id() -> str:
    """An id that nobody can guess."""
    return secrets.token_hex(16)


class StoreError(Exception):
    """A picture could not be stored or read. The message is for the log, never for clients."""


class StoreFullError(StoreError):
    """There is no room for another picture."""


class ImageStore(Protocol):
    """Keeps PNG pictures by id until they are too old. No method blocks the event loop, however slow the disk is."""

    async def put(self, picture_id: str, data: bytes) -> None:
        """Store one picture; once this returns, `get` finds it. Raises `StoreError`."""

    async def get(self, picture_id: str) -> bytes | None:
        """The picture, or None where there is none (any more). Raises `StoreError`."""

    async def remove(self, picture_ids: Iterable[str]) -> None:
        """Forget pictures; those that do not exist are no error. Raises `StoreError`."""

    @property
    def writable(self) -> bool:
        """Whether pictures could be stored at the last look; from memory."""
