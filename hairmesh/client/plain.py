"""The plain client: one request, one envelope. It sends nothing again, and a refusal is an answer, not an exception.

The demonstration, benches and tests use it, to see every answer of the service. Programs use `hairmesh.client`.

    with Client("http://127.0.0.1:8080") as client:
        answer = client.measure(Path("portrait.jpg").read_bytes(), lang="en")
        print(answer.reason, answer.message)

Transport failures raise `httpx.HTTPError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

import httpx

from hairmesh.client.envelope import EVENT_STREAM, Envelope, Events, Told, envelope, told
from hairmesh.client.headers import key_header
from hairmesh.client.options import GrowOptions, HairlineOptions, StyleOptions, form_fields, language_header
from hairmesh.client.routes import (
    FEATURES_ROUTE,
    GROW_ROUTE,
    HAIRLINES_ROUTE,
    MASKS_ROUTE,
    MEASURE_ROUTE,
    SPECIAL_POINTS_ROUTE,
    STYLES_ROUTE,
    TIMEOUT_S,
    check_timeout,
    timeout_of,
)
from hairmesh.client.transport import transport, unlogged

ON_THE_WAY_S = 10.0
"""It waits this much longer than the edge is told that it may take, so that the edge's own 1007 arrives, however busy
the machine of both is."""


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
        the system does not know them. Raises `ValueError` for a `timeout_s` that the edge would refuse, and for a key
        that no header can carry.
        """
        self._timeout_s = None if timeout_s is None else check_timeout(timeout_s)
        self._http = httpx.Client(**transport(url, authority), timeout=(timeout_s or TIMEOUT_S) + ON_THE_WAY_S)
        self._key = key_header(api_key)

    def measure(
        self,
        photo: bytes,
        *,
        pupillary_distance_mm: float | None = None,
        annotate: bool = True,
        lang: str | None = None,
    ) -> Envelope:
        """Measure the face."""
        wanted = {"pupillary_distance_mm": pupillary_distance_mm, "annotate": annotate, "lang": lang}
        return self._call(MEASURE_ROUTE, photo, wanted)

    def styles(self, photo: bytes, **wanted: Unpack[StyleOptions]) -> Envelope:
        """Grow hair to several hairline styles (slow)."""
        return self._call(STYLES_ROUTE, photo, wanted)

    def follow_styles(self, photo: bytes, **wanted: Unpack[StyleOptions]) -> Iterator[Told]:
        """The same, told as it goes. Closing the iterator ends the call."""
        return self._follow(STYLES_ROUTE, photo, wanted)

    def grow(self, photo: bytes, **wanted: Unpack[GrowOptions]) -> Envelope:
        """Grow hair in a marked region (slow)."""
        return self._call(GROW_ROUTE, photo, wanted)

    def follow_grow(self, photo: bytes, **wanted: Unpack[GrowOptions]) -> Iterator[Told]:
        """The same, told as it goes. Closing the iterator ends the call."""
        return self._follow(GROW_ROUTE, photo, wanted)

    def features(self, photo: bytes, *, lang: str | None = None) -> Envelope:
        """Describe face, brows, eyes, nose, lips, hair."""
        return self._call(FEATURES_ROUTE, photo, {"lang": lang})

    def hairlines(self, photo: bytes, **wanted: Unpack[HairlineOptions]) -> Envelope:
        """Draw hairline designs."""
        return self._call(HAIRLINES_ROUTE, photo, wanted)

    def masks(self, photo: bytes, *, parts: Sequence[str] | None = None, lang: str | None = None) -> Envelope:
        """Mask parts of head and face; None: all."""
        return self._call(MASKS_ROUTE, photo, {"parts": parts, "lang": lang})

    def special_points(self, photo: bytes, *, lang: str | None = None) -> Envelope:
        """Name the anatomical points."""
        return self._call(SPECIAL_POINTS_ROUTE, photo, {"lang": lang})

    def send(self, method: str, route: str, **request: Any) -> Envelope:
        """Any request under `/api/`, with httpx's keyword arguments; raises `NotAnEnvelopeError`."""
        response = self._http.request(method, route, **request)
        return _answer(response, response.content)

    def picture(self, url: str) -> bytes:
        """The picture at one of an answer's URLs; raises `httpx.HTTPStatusError` when it is gone."""
        with unlogged():
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

    def _call(self, route: str, photo: bytes, wanted: Mapping[str, object]) -> Envelope:
        return self.send("POST", route, **self._form(route, photo, wanted))

    def _follow(self, route: str, photo: bytes, wanted: Mapping[str, object]) -> Iterator[Told]:
        form = self._form(route, photo, wanted)
        form["headers"]["accept"] = EVENT_STREAM
        with self._http.stream("POST", route, **form) as response:
            if not response.headers.get("content-type", "").startswith(EVENT_STREAM):
                yield _answer(response, response.read())
                return
            events = Events()
            for name, data in (event for chunk in response.iter_bytes() for event in events.feed(chunk)):
                each = told(name, data, response.status_code, _where(response))
                if each is not None:
                    yield each
                if isinstance(each, Envelope):
                    return
        raise httpx.RemoteProtocolError("the stream ended before its result")

    def _form(self, route: str, photo: bytes, wanted: Mapping[str, object]) -> dict[str, Any]:
        """httpx's arguments for a photo with what is wanted, and how long it may take."""
        timeout_s = self._timeout_s or timeout_of(route)
        form = _form(photo, wanted)
        form["headers"] |= {**self._key, "x-request-timeout-ms": str(round(timeout_s * 1000))}
        return {**form, "timeout": timeout_s + ON_THE_WAY_S}


def _form(photo: bytes, wanted: Mapping[str, object]) -> dict[str, Any]:
    """httpx's arguments for a photo with what is wanted."""
    fields, files = form_fields(wanted)
    parts = {name: (name, content) for name, content in files.items()}
    return {"files": {"image": ("photo", bytes(photo)), **parts}, "data": fields, "headers": language_header(fields)}


def _answer(response: httpx.Response, content: bytes) -> Envelope:
    return envelope(content, response.status_code, response.headers.get("retry-after"), _where(response))


def _where(response: httpx.Response) -> str:
    return f"{response.request.method} {response.request.url.path}"
