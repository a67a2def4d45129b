"""The one slot of a worker. Pure: no I/O, no clock; who calls brings the time.

The slot follows the compute thread, not the RPC: a call that was cancelled or ran out of time leaves the slot ABANDONED
until its thread has ended. Each occupation has an epoch, counted from 1, which proves to an edge that an earlier call
has left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class SlotState(StrEnum):
    """As in `hair.worker.v1.SlotState`."""

    FREE = "free"
    BUSY = "busy"
    ABANDONED = "abandoned"


class SlotEvent(StrEnum):
    """What can happen to the slot."""

    OCCUPY = "occupy"
    """A call is admitted and its compute thread starts."""
    ABANDON = "abandon"
    """The RPC ended, its thread has not."""
    RELEASE = "release"
    """The thread ended."""


TRANSITIONS: Mapping[tuple[SlotState, SlotEvent], SlotState] = MappingProxyType(
    {
        (SlotState.FREE, SlotEvent.OCCUPY): SlotState.BUSY,
        (SlotState.BUSY, SlotEvent.ABANDON): SlotState.ABANDONED,
        (SlotState.BUSY, SlotEvent.RELEASE): SlotState.FREE,
        (SlotState.ABANDONED, SlotEvent.RELEASE): SlotState.FREE,
    }
)


class IllegalTransitionError(Exception):
    """The event does not fit the state, or names another occupation. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class CallIdentity:
    """Who calls: what the caller sent of itself, empty where it sent nothing usable."""

    method: str
    request_id: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Occupation:
    """The call in the slot."""

    epoch: int
    call: CallIdentity
    since_s: float
    """Monotonic clock."""


class Slot:
    """State, epoch and occupant."""

    def __init__(self) -> None:
        self._state = SlotState.FREE
        self._epoch = 0
        self._occupation: Occupation | None = None

    @property
    def state(self) -> SlotState:
        """State now."""
        return self._state

    @property
    def epoch(self) -> int:
        """Occupations so far, the present one included."""
        return self._epoch

    @property
    def occupation(self) -> Occupation | None:
        """None when free."""
        return self._occupation

    def occupy(self, call: CallIdentity, now_s: float) -> Occupation:
        """Take the free slot; raises `IllegalTransitionError` when it is taken."""
        self._state = self._next(SlotEvent.OCCUPY)
        self._epoch += 1
        self._occupation = Occupation(self._epoch, call, now_s)
        return self._occupation

    def abandon(self, epoch: int) -> None:
        """The RPC of occupation `epoch` ended before its thread."""
        self._state = self._next(SlotEvent.ABANDON, epoch)

    def release(self, epoch: int) -> None:
        """The thread of occupation `epoch` ended."""
        self._state = self._next(SlotEvent.RELEASE, epoch)
        self._occupation = None

    def _next(self, event: SlotEvent, epoch: int | None = None) -> SlotState:
        following = TRANSITIONS.get((self._state, event))
        if following is None or (epoch is not None and epoch != self._epoch):
            raise IllegalTransitionError(f"{event} of epoch {epoch} in {self!r}")
        return following

    def __repr__(self) -> str:
        """State, epoch and who is in it."""
        who = self._occupation.call.call_id if self._occupation else None
        return f"<Slot {self._state} epoch={self._epoch} call_id={who!r}>"
