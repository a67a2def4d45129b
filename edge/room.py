"""What is inside at once, over all requests: bytes of bodies, and requests. Counted, never waited for.

Bodies are counted as they arrive, not as they are announced: who announces much and sends nothing takes no room from
anybody.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from edge.errors import ApiError
from edge.reload import InForce
from edge.turns import Turns


class Room:
    """How much there is, and how much of it is taken."""

    def __init__(self, in_force: InForce) -> None:
        self._in_force = in_force
        self.requests = 0
        """Under `/api/`, that were let in and have not ended."""
        self.body_bytes = 0
        """Of bodies that arrive or are taken apart."""
        self.turns = Turns()
        """In which that is done."""

    @property
    def max_connections(self) -> int:
        """As configured now."""
        return self._in_force.settings.limits.max_connections

    def enter(self) -> None:
        """One more request, which will `leave`; raises `ApiError` BUSY instead where there are too many."""
        if self.requests >= self.max_connections:
            raise ApiError("BUSY", {"max_requests": self.max_connections})
        self.requests += 1

    def leave(self) -> None:
        """One that entered has ended."""
        self.requests -= 1

    def body(self) -> BodyRoom:
        """Room for one body, to be used as a context: what it took is free again at its end."""
        return BodyRoom(self)

    def take_bytes(self, count: int) -> None:
        """Raises `ApiError` BUSY, and takes nothing, where that would be too many."""
        allowed = self._in_force.settings.limits.max_uploading_bytes
        if self.body_bytes + count > allowed:
            raise ApiError("BUSY", {"max_uploading_bytes": allowed})
        self.body_bytes += count


class BodyRoom:
    """The room that one body takes."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._taken = 0

    def take(self, count: int) -> None:
        """So many bytes more have arrived; raises `ApiError` BUSY where there is no room for them."""
        self._room.take_bytes(count)
        self._taken += count

    async def turn(self, pieces: int = 1) -> None:
        """To be awaited before each further piece of work on the body, or so many that cannot be divided."""
        await self._room.turns.take(pieces)

    def __enter__(self) -> Self:
        """Nothing is taken yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give all of it back."""
        self._room.body_bytes -= self._taken
        self._taken = 0
