"""The run: photos in, files out, several at once. A photo that is refused has failed; what would meet every photo ends
the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from hairmesh.analyze.options import KEY_VARIABLE
from hairmesh.analyze.photos import Photo
from hairmesh.analyze.records import Record, Records, sha256_of
from hairmesh.client import (
    Answer,
    AsyncClient,
    HairMeshError,
    NotAnEnvelopeError,
    OutOfOrderError,
    ParameterError,
    Progress,
    Queued,
    RefusedError,
    RegionError,
    UnauthorizedError,
    UntrustedError,
)
from hairmesh.client.errors import Again, again
from hairmesh.client.options import OnProgress, OnWait

GOES_ON = "The same command goes on from here."
TO_DO: Mapping[type[HairMeshError], str] = {
    UnauthorizedError: f"Give a key that the edge knows with --api-key-file, or in {KEY_VARIABLE}.",
    ParameterError: "The same command fails again: --set and --mask say what is sent with each photo.",
    OutOfOrderError: f"Its operator has to do something first. {GOES_ON}",
    UntrustedError: "Where the edge has an authority of its own, --ca names its PEM file.",
    NotAnEnvelopeError: "Is --url the address of an edge?",
}
"""What every other photo would meet too, and what is to be done first. A region is an exception: it may fit the next
photo."""
NOBODY_THERE = frozenset({Again.NO_EDGE, Again.PERHAPS_NO_EDGE})
"""After these the edge was waited for in vain: the other photos would find none either."""


class EndedError(Exception):
    """The rest of the photos were not tried: it would be of no use.

    `to_do`: what has to be done before the next run.
    """

    def __init__(self, message: str, to_do: str) -> None:
        super().__init__(message)
        self.to_do = to_do


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a photo has no answer."""

    photo: Path
    reason: str
    """UPPER_SNAKE where the service refused, else the kind of error."""
    message: str
    advice: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    request_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """For files and lines."""
        error = {
            "reason": self.reason,
            "message": self.message,
            "advice": self.advice,
            "details": dict(self.details),
            "request_id": self.request_id,
        }
        return {"photo": str(self.photo), "error": error}


@dataclass
class Outcome:
    """What has become of the photos so far."""

    answered: list[Photo] = field(default_factory=list)
    replaced: int = 0
    """How many of these in place of an earlier answer."""
    done_before: list[Photo] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


class Show(Protocol):
    """Is told what happens."""

    def begins(self, photo: Photo) -> None:
        """A photo is looked at."""

    def progress(self, photo: Photo, news: Queued | Progress) -> None:
        """How far a photo's slow call is."""

    def waits(self, photo: Photo, error: HairMeshError, pause_s: float) -> None:
        """A photo's call is sent once more, after `pause_s`."""

    def gone(self) -> None:
        """The edge is not there, and is waited for. Told once until it has answered again."""

    def ends(self, photo: Photo) -> None:
        """A photo is done, or has failed."""

    def line(self, content: Mapping[str, Any]) -> None:
        """A photo's record or failure, for programs."""


class Ask(Protocol):
    """One call with its parameters."""

    async def __call__(self, client: AsyncClient, photo: Path, on_wait: OnWait, on_progress: OnProgress) -> Answer[Any]:
        """The answer for a photo; raises `HairMeshError`, or `OSError` for the photo's file."""


class Run:
    """One run over some photos."""

    def __init__(self, client: AsyncClient, ask: Ask, records: Records, show: Show, *, again: bool) -> None:
        self._client = client
        self._ask = ask
        self._records = records
        self._show = show
        self._anew = again
        self._gone = False
        self.outcome = Outcome()

    async def all(self, photos: Sequence[Photo], concurrency: int) -> None:
        """Every photo, `concurrency` at once; raises `EndedError`, or `OSError` where results cannot be written."""
        left = iter(photos)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(self._some(left))
        except ExceptionGroup as several:  # of those that end it, one is enough to tell
            expected, unexpected = several.split((EndedError, OSError))
            if unexpected is not None or expected is None:
                raise
            raise expected.exceptions[0] from None

    async def _some(self, left: Iterator[Photo]) -> None:
        for photo in left:
            self._show.begins(photo)
            end: EndedError | None = None
            try:
                line = await self._one(photo)
            except HairMeshError as error:
                line = self._failed(_failure(photo, error))
                if (to_do := _to_do(error)) is not None:
                    end = EndedError(str(error), to_do)
                    end.__cause__ = error
            finally:
                self._show.ends(photo)
            self._show.line(line)
            if end is not None:
                raise end

    async def _one(self, photo: Photo) -> Mapping[str, Any]:
        """The photo's record or failure; raises `HairMeshError`, or `OSError` where results cannot be written."""
        try:
            sha256 = await asyncio.to_thread(sha256_of, photo.path)
        except OSError as error:
            return self._failed(_unreadable(photo, error))
        record: Record | None = None if self._anew else self._records.done(photo, sha256)
        if record is not None:
            self.outcome.done_before.append(photo)
            return record
        on_wait = partial(self._waits, photo)
        try:
            answer = await self._ask(self._client, photo.path, on_wait, partial(self._show.progress, photo))
        except OSError as error:
            return self._failed(_unreadable(photo, error))
        self._gone = False
        self._records.prepare(photo)
        pictures = {
            name: await self._client.save_picture(url, self._records.picture(photo, name), on_wait=on_wait)
            for name, url in answer.pictures.items()
        }
        record, replaced = self._records.write(photo, sha256, answer.request_id, answer.raw, pictures)
        self.outcome.answered.append(photo)
        self.outcome.replaced += replaced
        return record

    def _waits(self, photo: Photo, error: HairMeshError, pause_s: float) -> None:
        if again(error) in NOBODY_THERE and not self._gone:
            self._gone = True
            self._show.gone()
        self._show.waits(photo, error, pause_s)

    def _failed(self, failure: Failure) -> Mapping[str, Any]:
        self.outcome.failures.append(failure)
        return failure.as_json()


def _to_do(error: HairMeshError) -> str | None:
    """What has to be done before the other photos are tried; None where nothing has to be."""
    if again(error) in NOBODY_THERE:
        return GOES_ON
    if isinstance(error, RegionError):
        return None
    return next((to_do for kind, to_do in TO_DO.items() if isinstance(error, kind)), None)


def _failure(photo: Photo, error: HairMeshError) -> Failure:
    if isinstance(error, RefusedError):
        return Failure(photo.path, error.reason, error.message, error.advice, error.details, error.request_id)
    return Failure(photo.path, type(error).__name__.removesuffix("Error"), str(error))


def _unreadable(photo: Photo, error: OSError) -> Failure:
    return Failure(photo.path, "UNREADABLE_FILE", error.strerror or type(error).__name__)
