"""A small REST client: sends photos, hands back envelopes.

    with Client("http://127.0.0.1:8080") as client:
        answer = client.measure(Path("portrait.jpg").read_bytes(), lang="en")
        if answer.ok:
            picture = client.picture(answer.data["annotated_image_url"])
        else:
            print(answer.reason, answer.message)

Slow calls can tell how far they are; the last thing told is the answer:

    for told in client.follow_styles(photo, styles=["round", "m"]):
        if isinstance(told, Progress):
            print(told.stage, told.step, told.total)

A refusal is an answer, not an exception. Transport failures raise `httpx.HTTPError`.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypedDict, Unpack

import httpx

MEASURE_ROUTE = "/api/v1/face/measure"
STYLES_ROUTE = "/api/v1/hair/styles"
GROW_ROUTE = "/api/v1/hair/grow"
FEATURES_ROUTE = "/api/v1/face/features"
HAIRLINES_ROUTE = "/api/v1/hair/hairlines"
MASKS_ROUTE = "/api/v1/face/masks"
SPECIAL_POINTS_ROUTE = "/api/v1/face/special-points"
TIMEOUT_S, SLOW_TIMEOUT_S = 150.0, 420.0
"""How long the edge may take for a fast and for a slow call: with default settings enough for the queue and two
attempts."""
MAX_TIMEOUT_S = 3600.0
"""More patience the edge does not take."""
ON_THE_WAY_S = 10.0
"""More than that we wait: the edge is told its time, so that its own 1007 arrives and not a broken connection."""

SLOW_ROUTES = frozenset({STYLES_ROUTE, GROW_ROUTE})
EVENT_STREAM = "text/event-stream"

_LANGUAGES = ("zh", "en")
Sex = Literal["female", "male"]


class NotAnEnvelopeError(Exception):
    """What came back under `/api/` is not the contract's envelope: something else answers at this address."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One envelope with its HTTP status. `data` is the decoded JSON object, empty when there was none."""

    http_status: int
    code: int
    """0 is good; 1001 to 1008 as in the contract."""
    message: str
    request_id: str
    data: Mapping[str, Any]
    retry_after_s: float | None

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


Told = Queued | Progress | Answer
"""What a slow call tells: how far it is, and at the end its answer."""


class HairlineOptions(TypedDict, total=False):
    """Parameters of the design call; what is left out is the service's choice."""

    styles: Sequence[str]
    sex: Sex
    height: Literal["low", "natural", "high"]
    density_per_cm2: float
    lang: str


class StyleOptions(TypedDict, total=False):
    """Parameters of growing hair to styles."""

    styles: Sequence[str]
    sex: Sex
    seed: int
    lang: str


class GrowOptions(TypedDict, total=False):
    """Parameters of growing hair in a region: exactly one of `region` and `mask`."""

    region: Sequence[tuple[float, float]]
    """Corners in pixels of the upright photo."""
    mask: bytes
    """A picture of the size of the upright photo, bright inside the region."""
    seed: int
    lang: str


class Client:
    """One edge, which may take `timeout_s` for an answer; None: `TIMEOUT_S`, for slow calls `SLOW_TIMEOUT_S`.

    May be shared by threads; close it, or use it as a context manager. Photos are the bytes of any format of the
    contract. `lang` (`zh` or `en`) is the language of messages and of labels in pictures; left out:
    the service's choice.
    """

    def __init__(
        self, url: str, *, timeout_s: float | None = None, api_key: str | None = None, authority: Path | None = None
    ) -> None:
        """`api_key`: where the edge asks for one. `authority`: PEM file of whoever signed the edge's certificate, where
        the system does not know them. Raises `ValueError` for a `timeout_s` that the edge would refuse.
        """
        if timeout_s is not None and not 0.001 <= timeout_s <= MAX_TIMEOUT_S:
            raise ValueError(f"timeout_s must be from 0.001 to {MAX_TIMEOUT_S:.0f}")
        self._timeout_s = timeout_s
        # No proxies from the environment: the address given is the one that is asked.
        self._http = httpx.Client(
            base_url=url,
            timeout=(timeout_s or TIMEOUT_S) + ON_THE_WAY_S,
            trust_env=False,
            verify=True if authority is None else ssl.create_default_context(cafile=authority),
        )
        self._key = {} if api_key is None else {"x-api-key": api_key}

    def measure(
        self,
        photo: bytes,
        *,
        pupillary_distance_mm: float | None = None,
        annotate: bool = True,
        lang: str | None = None,
    ) -> Answer:
        """Measure the face."""
        wanted = {"pupillary_distance_mm": pupillary_distance_mm, "annotate": annotate, "lang": lang}
        return self._call(MEASURE_ROUTE, photo, wanted)

    def styles(self, photo: bytes, **wanted: Unpack[StyleOptions]) -> Answer:
        """Grow hair to several hairline styles (slow)."""
        return self._call(STYLES_ROUTE, photo, wanted)

    def follow_styles(self, photo: bytes, **wanted: Unpack[StyleOptions]) -> Iterator[Told]:
        """The same, told as it goes. Closing the iterator ends the call."""
        return self._follow(STYLES_ROUTE, photo, wanted)

    def grow(self, photo: bytes, **wanted: Unpack[GrowOptions]) -> Answer:
        """Grow hair in a marked region (slow)."""
        return self._call(GROW_ROUTE, photo, wanted)

    def follow_grow(self, photo: bytes, **wanted: Unpack[GrowOptions]) -> Iterator[Told]:
        """The same, told as it goes. Closing the iterator ends the call."""
        return self._follow(GROW_ROUTE, photo, wanted)

    def features(self, photo: bytes, *, lang: str | None = None) -> Answer:
        """Describe face, brows, eyes, nose, lips, hair."""
        return self._call(FEATURES_ROUTE, photo, {"lang": lang})

    def hairlines(self, photo: bytes, **wanted: Unpack[HairlineOptions]) -> Answer:
        """Draw hairline designs."""
        return self._call(HAIRLINES_ROUTE, photo, wanted)

    def masks(self, photo: bytes, *, parts: Sequence[str] | None = None, lang: str | None = None) -> Answer:
        """Mask parts of head and face; None: all."""
        return self._call(MASKS_ROUTE, photo, {"parts": parts, "lang": lang})

    def special_points(self, photo: bytes, *, lang: str | None = None) -> Answer:
        """Name the anatomical points."""
        return self._call(SPECIAL_POINTS_ROUTE, photo, {"lang": lang})

    def send(self, method: str, route: str, **request: Any) -> Answer:
        """Any request under `/api/`, with httpx's keyword arguments; raises `NotAnEnvelopeError`."""
        response = self._http.request(method, route, **request)
        return _answer(response, response.content)

    def picture(self, url: str) -> bytes:
        """The picture at one of an answer's URLs; raises `httpx.HTTPStatusError` when it is gone."""
        return self._http.get(url).raise_for_status().content

    def monitor(self) -> tuple[int, dict[str, Any]]:
        """`GET /monitor`: HTTP status and body."""
        response = self._http.get("/monitor")
        return response.status_code, dict(response.json())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """This client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def _call(self, route: str, photo: bytes, wanted: Mapping[str, object]) -> Answer:
        return self.send("POST", route, **self._form(route, photo, wanted))

    def _follow(self, route: str, photo: bytes, wanted: Mapping[str, object]) -> Iterator[Told]:
        form = self._form(route, photo, wanted)
        form["headers"]["accept"] = EVENT_STREAM
        with self._http.stream("POST", route, **form) as response:
            if not response.headers.get("content-type", "").startswith(EVENT_STREAM):
                yield _answer(response, response.read())
                return
            for name, data in _events(response.iter_bytes()):
                told = _told(response, name, data)
                if told is not None:
                    yield told
                if isinstance(told, Answer):
                    return
        raise httpx.RemoteProtocolError("the stream ended before its result")

    def _form(self, route: str, photo: bytes, wanted: Mapping[str, object]) -> dict[str, Any]:
        """httpx's arguments for a photo with what is wanted, and how long it may take."""
        timeout_s = self._timeout_s or (SLOW_TIMEOUT_S if route in SLOW_ROUTES else TIMEOUT_S)
        form = _form(photo, wanted)
        form["headers"] |= {**self._key, "x-request-timeout-ms": str(round(timeout_s * 1000))}
        return {**form, "timeout": timeout_s + ON_THE_WAY_S}


def _form(photo: bytes, wanted: Mapping[str, object]) -> dict[str, Any]:
    """httpx's arguments for a photo with what is wanted; None is left out, `lang` is said by header as well."""
    files: dict[str, Any] = {"image": ("photo", bytes(photo))}
    fields: dict[str, str] = {}
    headers: dict[str, str] = {}
    for name, value in wanted.items():
        match value:
            case None:
                pass
            case bytes() | bytearray() | memoryview():
                files[name] = (name, bytes(value))
            case bool():
                fields[name] = "true" if value else "false"
            case str() | int() | float():
                fields[name] = str(value)
            case Iterable():
                listed = list(value)
                names = all(isinstance(each, str) for each in listed)
                fields[name] = ",".join(listed) if names else json.dumps(listed)
    if (lang := fields.get("lang")) in _LANGUAGES:  # any other is refused by the parameter
        headers["accept-language"] = lang
    return {"files": files, "data": fields, "headers": headers}


def _answer(response: httpx.Response, content: bytes) -> Answer:
    try:
        body = json.loads(content)
        data = body["data"] or {}
        # The result of a stream has no headers of its own; it says the same in its details.
        retry_after = response.headers.get("retry-after") or data.get("details", {}).get("retry_after_s")
        return Answer(
            http_status=response.status_code,
            code=int(body["code"]),
            message=str(body["message"]),
            request_id=str(body["request_id"]),
            data=data,
            retry_after_s=float(retry_after) if retry_after else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        where = f"{response.request.method} {response.request.url.path}"
        raise NotAnEnvelopeError(f"{where}: HTTP {response.status_code} without an envelope") from error


def _told(response: httpx.Response, name: str, data: bytes) -> Told | None:
    """What one event says; None for those of a newer service."""
    if name == "result":
        return _answer(response, data)
    try:
        said = json.loads(data)
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
    except (ValueError, KeyError, TypeError) as error:
        raise NotAnEnvelopeError(f"{response.request.url.path}: an event that is none of the contract's") from error
    return None


def _events(chunks: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Name and data of the server-sent events in a stream, as they are complete; comments are nothing."""
    name, data, rest = "message", list[bytes](), b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in (each.removesuffix(b"\r") for each in lines):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if not line:
                if data:
                    yield name, b"\n".join(data)
                name, data = "message", []
            elif field == b"event":
                name = value.decode()
            elif field == b"data":
                data.append(value)
