"""What every picture store does. Pictures are patients' faces: their ids cannot be guessed.

An id begins with a tag, a hash of its request's id. So all pictures of a request are found by what their ids begin
with, by every edge that shares the store and after every restart, and there is no index that could be lost or lag.
Request ids are chosen by clients: two requests may have the same one, and then share a tag.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

TAG = re.compile(r"[0-9a-f]{16}")
ID = re.compile(rf"{TAG.pattern}[0-9a-f]{{32}}")
"""A tag and 128 random bits, in hex: safe in URLs, file names and object keys on every system."""
TAG_DIGITS = 16

CLOCKS_S = 5.0
"""How far the clocks of edges and object storage may be apart."""


def tag_of(request_id: str) -> str:
    """With what the ids of a request's pictures begin. Not secret, and no help in guessing the rest."""
    return hashlib.sha256(request_id.encode()).hexdigest()[:TAG_DIGITS]


def new_id(request_id: str) -> str:
    """An id that nobody can guess, not even who knows the request's."""
    return tag_of(request_id) + secrets.token_hex(16)


def is_removed(removed_s: float, began_s: float, clocks_s: float) -> bool:
    """Whether pictures of a request that began then are not wanted, now that those of its id were removed at
    `removed_s`: those of a request that was running are not, those of a later one with the same id are.

    The two clocks may be `clocks_s` apart: in doubt they are not.
    """
    return removed_s >= began_s - clocks_s


def unix_s(monotonic_s: float) -> float:
    """A moment of this process, a little ago, as others count it."""
    return time.time() - (time.monotonic() - monotonic_s)


class StoreError(Exception):
    """A picture could not be stored, read or removed. The message is for the log, never for clients."""


class StoreFullError(StoreError):
    """There is no room for the pictures of an answer."""


class TooLargeError(StoreError):
    """The pictures of an answer are larger than all that the store can hold: nothing that goes would make room."""

    def __init__(self, size: int, max_bytes: int, of_what: str) -> None:
        super().__init__(f"the pictures of one answer are larger than {of_what}")
        self.bytes = size
        self.max_bytes = max_bytes


class RemovedError(StoreError):
    """Somebody had the pictures of a request removed while it ran, or, where clocks leave that in doubt, seconds before
    it began.
    """

    def __init__(self) -> None:
        super().__init__("the pictures of this request have been removed")


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """How a store is doing, from memory."""

    count: int
    """Pictures kept. Of a shared store: by its last sweep, and what this edge did since."""
    bytes: int
    """Of all of them together, likewise."""
    max_bytes: int
    waiting: int
    """Pictures that are being written."""
    waiting_bytes: int
    failures: int
    """Pictures that could not be stored, since the start."""
    removed_old: int
    """Pictures that were removed for their age, since the start."""
    removed_for_room: int
    """Pictures that were removed because the store was full, since the start."""
    removed_by_request: int
    """Pictures that somebody had removed, since the start."""


class ImageStore(Protocol):
    """Keeps PNG pictures by id until they are too old. No method blocks the event loop, however slow the store is."""

    async def put(self, pictures: Mapping[str, bytes], began_s: float) -> None:
        """Store the pictures of one request, which began then (by the monotonic clock of this process); once this
        returns, `get` finds them.

        Raises `RemovedError` where the request's pictures have been removed since it began, or may have: none of them
        is found then. Raises another `StoreError` for what the store refuses, `StoreFullError` and `TooLargeError`
        among them; what was stored until then stays until it is removed.
        """

    async def get(self, picture_id: str) -> bytes | None:
        """The picture, or None where there is none (any more). Raises `StoreError`."""

    async def remove(self, picture_ids: Iterable[str]) -> None:
        """Forget pictures; those that do not exist are no error. Raises `StoreError`."""

    async def remove_request(self, request_id: str) -> int:
        """Forget all pictures of all requests with this id that have begun, those included that are being written, here
        or on another edge, or are yet to be made. How many there were. Raises `StoreError`, after which some are left.
        """

    async def probe(self) -> None:
        """See whether pictures can be stored; try again what could not be, and make the room that there was not."""

    async def sweep(self) -> None:
        """Remove what is too old, and the oldest where there is too much; count what is left."""

    async def nearly_full(self) -> None:
        """Wait until a sweep is due before its time."""

    async def close(self) -> None:
        """End in order: what was promised is stored."""

    @property
    def writable(self) -> bool:
        """Whether pictures could be stored at the last look; from memory."""

    @property
    def figures(self) -> StoreFigures:
        """How it is doing; from memory."""


async def all_done(work: Iterable[Coroutine[object, object, None]]) -> None:
    """Have all of it done at the same time, to its end; then raises the first that failed, if one did."""
    done = await asyncio.gather(*work, return_exceptions=True)
    if failed := next((each for each in done if each is not None), None):
        raise failed
