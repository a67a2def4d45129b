"""What the engine finds in a photo: plain values, so that whoever passes them on needs no vision."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from vision.describe_terms import FaceDescription

Json = dict[str, object]


class Ticket:
    """One job's hold on its caller; `give_up` may be called by another thread."""

    def __init__(self) -> None:
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Nobody waits any more."""
        self._given_up.set()

    @property
    def given_up(self) -> bool:
        """Whether nobody waits any more."""
        return self._given_up.is_set()


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
    """Loaded models. Belongs to the one thread that loads, uses and closes it."""

    @property
    def sees_hair(self) -> bool:
        """Whether there is a parser."""

    def special_points(self, data: bytes, max_pixels: int, ticket: Ticket) -> Points:
        """Raises `ApiError` where the photo is refused, `GivenUpError` where nobody waits."""

    def describe(self, data: bytes, max_pixels: int, ticket: Ticket, *, with_jpeg: bool) -> Described:
        """Raises as `special_points` does."""

    def close(self) -> None:
        """Free the models."""


class GivenUpError(Exception):
    """Nobody waits for this job."""


class NotLoadedError(Exception):
    """There is no engine. `reason` is one of the contract's; the message says what to do, for the log."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason
