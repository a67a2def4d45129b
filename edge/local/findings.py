"""What the engine finds in a photo: plain values, so that whoever passes them on needs no vision."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from vision.describe_terms import FaceDescription

Json = dict[str, object]


class GivenUpError(Exception):
    """Nobody waits for this job."""


class Ticket:
    """One job between its caller and the thread that does it: how long it waits, that it moves, that it is given up."""

    def __init__(self) -> None:
        self._come_s = time.monotonic()
        self._started_s: float | None = None
        self._left_s: float | None = None
        self.moved_s = self._come_s
        """When it moved last."""

    @property
    def queue_s(self) -> float:
        """How long it stood in line, or has until now."""
        until_s = self._started_s or self._left_s or time.monotonic()
        return until_s - self._come_s

    def give_up(self) -> None:
        """By the caller: it waits no longer."""
        self._left_s = self._left_s or time.monotonic()

    def start(self) -> None:
        """By the thread: its turn has come. Raises `GivenUpError`."""
        self.step()
        self._started_s = self.moved_s

    def step(self) -> None:
        """By the work: it moves. Raises `GivenUpError` where nobody waits."""
        self.moved_s = time.monotonic()
        self.look()

    def look(self) -> None:
        """By the work, while something else works: as `step`, but waiting never looks like moving."""
        if self._left_s is not None:
            raise GivenUpError


@dataclass(frozen=True, slots=True)
class Place:
    """The photo and where the face is in it, as in the answers of workers."""

    photo: Json
    face: Json


@dataclass(frozen=True, slots=True)
class Points:
    """Named points, (x, y) in pixels of the upright photo."""

    place: Place
    points: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Described:
    """A face in words."""

    place: Place
    description: FaceDescription
    warnings: tuple[Json, ...]
    jpeg: bytes | None = field(repr=False)
    """The upright photo as a plain JPEG, reduced; None where nobody asked for it."""


class Engine(Protocol):
    """Loaded models. Belongs to the one thread that loads, uses and closes it.

    An exception that is not named here is the photo's doing, or the engine's: `check` tells which.
    """

    @property
    def sees_hair(self) -> bool:
        """Whether there is a parser."""

    def special_points(self, data: bytes, max_pixels: int, ticket: Ticket) -> Points:
        """Raises `ApiError` where the photo is refused, `GivenUpError` where nobody waits."""

    def describe(self, data: bytes, max_pixels: int, ticket: Ticket, *, with_jpeg: bool) -> Described:
        """Raises as `special_points` does."""

    def check(self) -> None:
        """Raise whatever is wrong unless a known picture gets its known answer."""

    def close(self) -> None:
        """Free the models."""


class NotLoadedError(Exception):
    """There is no engine. `reason` is one of the contract's; the message says what to do, for the log."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason
