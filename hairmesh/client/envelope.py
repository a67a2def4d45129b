"""What comes back: the contract's envelope, and the events of slow calls. Pure: bytes in, values out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hairmesh.client.headers import seconds

EVENT_STREAM = "text/event-stream"
MAX_DEPTH = 32
"""Answers are nested less deeply; Python's own limit would be met anywhere behind."""
NOT_OURS = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading JSON raises that is none of the contract's, `Infinity` as a code and a thousand brackets included."""


class HairMeshError(Exception):
    """The base of every exception that the client defines. All of them go whole from one process to another."""

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy. Python's own way calls the class with the message; some are made from something else."""
        return _made_again, (type(self), self.args), self.__dict__


def _made_again(kind: type[HairMeshError], args: tuple[object, ...]) -> HairMeshError:
    """An exception with its message, without what its class does when it is made."""
    return kind.__new__(kind, *args)


class NotAnEnvelopeError(HairMeshError):
    """What came back under `/api/` is not the contract's envelope: something else answers at this address."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One envelope with its HTTP status. `data` is the decoded JSON object, empty when there was none."""

    http_status: int
    code: int
    """0 is good; 1001 to 1008 as in the contract."""
    message: str
    request_id: str
    data: Mapping[str, Any]
    retry_after_s: float | None
    """When to ask again at the earliest, in s; None: not said."""

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.code == 0

    @property
    def reason(self) -> str:
        """UPPER_SNAKE name of what went wrong, never translated; empty when nothing did."""
        return str(self.data.get("reason", ""))


@dataclass(frozen=True, slots=True)
class Queued:
    """An attempt of a slow call is due."""

    position: int
    """Calls that are to get a worker before it."""
    attempt: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an attempt of a slow call is."""

    stage: str
    """Such as `parsing`, `growing`."""
    step: int
    total: int
    """Steps of this stage at most; 0 when not known."""
    attempt: int
    results_done: int = 0
    """Results that are finished: the one that is being made is the next, in the order asked for."""
    results_total: int = 0


Told = Queued | Progress | Envelope
"""What a slow call tells: how far it is, and at the end its answer."""


def envelope(content: bytes, http_status: int, retry_after: str | None, where: str) -> Envelope:
    """The envelope in an answer's body; `where` is the request, for `NotAnEnvelopeError`."""
    try:
        body = _loaded(content)
        data = body["data"] or {}
        # The result of a stream has no headers of its own; it says the same in its details.
        wait_s = seconds(retry_after)
        if wait_s is None:
            wait_s = seconds((data.get("details") or {}).get("retry_after_s"))
        return Envelope(
            http_status=http_status,
            code=int(body["code"]),
            message=str(body["message"]),
            request_id=str(body["request_id"]),
            data=data,
            retry_after_s=wait_s,
        )
    except NOT_OURS as error:
        raise NotAnEnvelopeError(f"{where}: HTTP {http_status} without an envelope") from error


def _loaded(content: bytes) -> Any:
    """JSON; raises one of `NOT_OURS`."""
    loaded = json.loads(content)
    level = [loaded]
    for _ in range(MAX_DEPTH):
        level = [inside for each in level for inside in _inside(each)]
        if not level:
            return loaded
    raise ValueError("nested too deeply")


def _inside(value: object) -> Iterable[object]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def told(name: str, data: bytes, http_status: int, where: str) -> Told | None:
    """What one event says; None for those of a newer service. Raises `NotAnEnvelopeError`."""
    if name == "result":
        return envelope(data, http_status, None, where)
    try:
        said = _loaded(data)
        if name == "queued":
            return Queued(position=int(said["position"]), attempt=int(said["attempt"]))
        if name == "progress":
            return Progress(
                stage=str(said["stage"]),
                step=int(said["step"]),
                total=int(said["total"]),
                attempt=int(said["attempt"]),
                results_done=int(said.get("results_done", 0)),
                results_total=int(said.get("results_total", 0)),
            )
    except NOT_OURS as error:
        raise NotAnEnvelopeError(f"{where}: an event that is none of the contract's") from error
    return None


class Events:
    """Takes the server-sent events out of a stream, wherever it is cut; comments are nothing."""

    def __init__(self) -> None:
        self._name, self._data, self._rest = "message", list[bytes](), b""

    def feed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Name and data of the events that are complete with this chunk."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in (each.removesuffix(b"\r") for each in lines):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if not line:
                if self._data:
                    yield self._name, b"\n".join(self._data)
                self._name, self._data = "message", []
            elif field == b"event":
                self._name = value.decode(errors="replace")
            elif field == b"data":
                self._data.append(value)
