"""What `Client` and `AsyncClient` have in common: how a request is made, and how its answer is read. No I/O."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

import httpx

from hairmesh.client.answers import (
    DesignHairlinesResponse,
    FaceFeatures,
    GrownRegion,
    GrownStyles,
    MeasureResponse,
    SegmentFaceResponse,
    SpecialPoints,
)
from hairmesh.client.decode import UnexpectedAnswerError, decode
from hairmesh.client.envelope import (
    EVENT_STREAM,
    Envelope,
    HairMeshError,
    Progress,
    Queued,
)
from hairmesh.client.errors import (
    PictureError,
    TooLateError,
    refusal,
)
from hairmesh.client.headers import key_header, request_id_header, seconds
from hairmesh.client.options import HANDLING, OnWait, SlowHandling, form_fields, language_header, ordinary
from hairmesh.client.patience import Patience
from hairmesh.client.photo import Photo, Upload
from hairmesh.client.pictures import pictures
from hairmesh.client.reply import Reply
from hairmesh.client.routes import (
    FEATURES_ROUTE,
    GROW_ROUTE,
    HAIRLINES_ROUTE,
    MASKS_ROUTE,
    MEASURE_ROUTE,
    REMOVE_PICTURES_ROUTE,
    SLOW_ROUTES,
    SPECIAL_POINTS_ROUTE,
    STYLES_ROUTE,
    TIMEOUT_S,
    check_timeout,
    timeout_of,
)
from hairmesh.client.transport import StepTimeouts, envelope_of, translated, transport, unlogged

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A good answer."""

    data: T
    """As `hairmesh.client.answers` describes it."""
    raw: Mapping[str, Any]
    """The same as JSON has it: to be kept, or for fields that only a newer service has."""
    request_id: str
    """By which the service's logs know it, and by which its pictures can be removed."""

    @property
    def pictures(self) -> Mapping[str, str]:
        """URLs by name, such as `annotated`, `round`, `round_grown`, `hair`. They last for days, not for ever."""
        return pictures(self.raw)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One call of the contract, and what it answers."""

    route: str
    answer: type[T]


MEASURE = Call(MEASURE_ROUTE, MeasureResponse)
STYLES = Call(STYLES_ROUTE, GrownStyles)
GROW = Call(GROW_ROUTE, GrownRegion)
FEATURES = Call(FEATURES_ROUTE, FaceFeatures)
HAIRLINES = Call(HAIRLINES_ROUTE, DesignHairlinesResponse)
MASKS = Call(MASKS_ROUTE, SegmentFaceResponse)
SPECIAL_POINTS = Call(SPECIAL_POINTS_ROUTE, SpecialPoints)


@dataclass(frozen=True, slots=True)
class Removed:
    """What the removal of pictures answers."""

    removed: int


class Settings:
    """How a client reaches its edge, and when it asks once more."""

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float | None,
        api_key: str | None,
        authority: str | Path | None,
        retries: bool,
        unreachable_s: float,
    ) -> None:
        """Raises `ValueError` for an address, a time or a key that cannot be used, `OSError` or `ssl.SSLError` for the
        file of authorities.
        """
        try:
            self.url = httpx.URL(url)
            self.url.host.encode("idna")  # as the look-up of the name does it
        except (httpx.InvalidURL, UnicodeError):
            raise ValueError("url must be http://… or https://… with a host's name or address") from None
        if self.url.scheme not in {"http", "https"} or not self.url.host:
            raise ValueError("url must be http://… or https://…")
        if self.url.userinfo:
            raise ValueError("url must hold no user and password")
        if not 0 <= unreachable_s < math.inf:
            raise ValueError("unreachable_s must not be negative")
        self.timeout_s = None if timeout_s is None else check_timeout(timeout_s)
        self.retries, self.unreachable_s = retries, unreachable_s
        self.key_header = key_header(api_key)
        self.transport = transport(self.url, authority)

    def __repr__(self) -> str:
        """Without the key."""
        return str(self.url)


class Tries:
    """The tries of one request: how much time is left for them, and whether there is another."""

    def __init__(self, settings: Settings, total_s: float, on_wait: OnWait | None, *, slow: bool = False) -> None:
        self._retries = settings.retries
        self._on_wait = ordinary("on_wait", on_wait)
        now_s = time.monotonic()
        self._patience = Patience(total_s, now_s, unreachable_s=settings.unreachable_s, slow=slow)

    def pause_s(self, error: HairMeshError) -> float:
        """How long to wait before the next try; raises `error` where there is none."""
        chance = random.random()  # noqa: S311  (no secret)
        pause_s = self._patience.pause_s(error, time.monotonic(), chance) if self._retries else None
        if pause_s is None:
            raise error
        if self._on_wait:
            self._on_wait(error, pause_s)
        return pause_s

    def check_time(self) -> None:
        """Raises `TooLateError` once the time is over, to be asked at every piece that goes out or comes in: httpx
        limits how long each of them takes, not all of them.
        """
        if self._rest_s() <= 0:
            raise TooLateError("no answer in the time given")

    def extensions(self) -> dict[str, Any]:
        """httpx's argument for how long one try may take."""
        return {"timeout": StepTimeouts(self._rest_s)}

    def _rest_s(self) -> float:
        return self._patience.rest_s(time.monotonic())


class Fetch(Tries):
    """The download of one picture."""

    def __init__(self, settings: Settings, on_wait: OnWait | None = None) -> None:
        super().__init__(settings, TIMEOUT_S, on_wait)

    @contextmanager
    def sending(self) -> Iterator[dict[str, Any]]:
        """httpx's extensions for one try. Raises `HairMeshError` of some kind for what httpx raises meanwhile."""
        with unlogged(), translated():
            try:
                yield self.extensions()
            except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError) as error:  # the last by the look-up
                raise UnexpectedAnswerError("a picture's address is none that can be asked") from error


class Request(Tries):
    """One call of the contract: how it is sent, and who is told how far it is."""

    def __init__(self, settings: Settings, call: Call[Any], photo: Photo, given: Mapping[str, object]) -> None:
        """Raises `TypeError` for a photo, a parameter or a callback of no kind that can be used, `ValueError` for
        `request_id`, `timeout_s`, and text that is none.
        """
        handling = cast("SlowHandling", {name: value for name, value in given.items() if name in HANDLING})
        self._route = call.route
        wanted = {name: value for name, value in given.items() if name not in HANDLING and value is not None}
        self._uploads = {"image": Upload(photo)}
        if (mask := wanted.pop("mask", None)) is not None:
            self._uploads["mask"] = Upload(cast("Photo", mask))
        self._fields, _ = form_fields(wanted)
        self._headers = {
            **settings.key_header,
            **language_header(self._fields),
            **request_id_header(handling.get("request_id")),
        }
        self._on_progress = ordinary("on_progress", handling.get("on_progress"))
        self._raised_by_caller: HairMeshError | None = None
        if self._on_progress:
            self._headers["accept"] = EVENT_STREAM
        timeout_s = handling.get("timeout_s")
        total_s = (settings.timeout_s or timeout_of(call.route)) if timeout_s is None else check_timeout(timeout_s)
        super().__init__(settings, total_s, handling.get("on_wait"), slow=call.route in SLOW_ROUTES)

    def pause_s(self, error: HairMeshError) -> float:
        """See `Tries`. What `on_progress` raised is not the service's, whatever it is: it is raised at once."""
        if error is self._raised_by_caller:
            raise error
        return super().pause_s(error)

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """httpx's arguments for one try; the photo's file is open meanwhile."""
        left_s = self._patience.left_s(time.monotonic())
        patience = {"x-request-timeout-ms": str(max(1, round(left_s * 1000)))}
        with ExitStack() as opened:
            yield {
                "method": "POST",
                "url": self._route,
                "files": {
                    name: opened.enter_context(each.opened(self.check_time)) for name, each in self._uploads.items()
                },
                "data": self._fields,
                "headers": self._headers | patience,
                "extensions": self.extensions(),
            }

    def reply(self, response: httpx.Response) -> Reply:
        """What takes the answer of one try."""
        return Reply(response, self.check_time, self._tell if self._on_progress else None)

    def _tell(self, news: Queued | Progress) -> None:
        if self._on_progress is None:
            return
        try:
            self._on_progress(news)
        except HairMeshError as error:  # of another call, made by the caller's function
            self._raised_by_caller = error
            raise


def answer_of(call: Call[T], result: Envelope) -> Answer[T]:
    """A good envelope as an answer; raises `UnexpectedAnswerError`."""
    return Answer(decode(call.answer, result.data), result.data, result.request_id)


def removal_route(request_id: str) -> str:
    """Where the pictures of a request are removed."""
    return REMOVE_PICTURES_ROUTE.format(request_id=quote(request_id, safe=""))


def removed(response: httpx.Response) -> int:
    """How many pictures were removed; raises `RefusedError` or `TransportError` of some kind, `NotAnEnvelopeError`."""
    where = f"{response.request.method} /api/v1/requests/…/pictures"
    result = envelope_of(response.content, response.status_code, response.headers.get("retry-after"), where)
    if not result.ok:
        raise refusal(result)
    return decode(Removed, result.data).removed


def check_picture(response: httpx.Response) -> None:
    """Raises `PictureError` where there is none."""
    if response.status_code != httpx.codes.OK:
        raise PictureError(response.status_code, seconds(response.headers.get("retry-after")))
