"""The client for programs without an event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar, Unpack

import httpx

from hairmesh.client import core
from hairmesh.client.answers import (
    DesignHairlinesResponse,
    FaceFeatures,
    GrownRegion,
    GrownStyles,
    MeasureResponse,
    SegmentFaceResponse,
    SpecialPoints,
)
from hairmesh.client.core import Answer, Call
from hairmesh.client.envelope import HairMeshError
from hairmesh.client.files import saved_whole
from hairmesh.client.headers import bearer
from hairmesh.client.options import (
    AnyCall,
    GrowCall,
    HairlinesCall,
    MasksCall,
    MeasureCall,
    OnWait,
    StylesCall,
)
from hairmesh.client.patience import UNREACHABLE_S
from hairmesh.client.photo import Photo
from hairmesh.client.transport import chunks, translated

T = TypeVar("T")
R = TypeVar("R")


class Client:
    """One edge. May be shared by threads, and should be: it keeps connections.

    `timeout_s` is the whole patience of a call, its waiting and its further tries included; default: 150 s, for slow
    calls 420 s. The service's own word that it took too long may come up to `GRACE_S` later. `api_key`: where the edge
    asks for one; it is sent with calls alone. `authority`: PEM file of whoever signed the edge's certificate, where the
    system does not know them (`hairmesh.trust` has who is known).

    A call is sent once more where that can do no harm (`docs/client.md`, "When it asks again"): one that no edge has
    begun for as long as `unreachable_s`, or as `Retry-After` says; one that was lost with its edge once, and never a
    slow one. `retries=False`: every call is sent once, whatever becomes of it.

    Every call takes a photo as bytes, path, or open file, `timeout_s` and `request_id` for this call alone, and the
    parameters of the contract; it gives an `Answer`, or raises `HairMeshError`.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float | None = None,
        api_key: str | None = None,
        authority: str | Path | None = None,
        retries: bool = True,
        unreachable_s: float = UNREACHABLE_S,
    ) -> None:
        self._settings = core.Settings(
            url,
            timeout_s=timeout_s,
            api_key=api_key,
            authority=authority,
            retries=retries,
            unreachable_s=unreachable_s,
        )
        self._http = httpx.Client(**self._settings.transport)

    @property
    def url(self) -> httpx.URL:
        """The edge's address."""
        return self._settings.url

    def measure(self, photo: Photo, **given: Unpack[MeasureCall]) -> Answer[MeasureResponse]:
        """Measure the face."""
        return self._call(core.MEASURE, photo, given)

    def styles(self, photo: Photo, **given: Unpack[StylesCall]) -> Answer[GrownStyles]:
        """Grow hair to several hairline styles. Slow: `on_progress` is told how far it is."""
        return self._call(core.STYLES, photo, given)

    def grow(self, photo: Photo, **given: Unpack[GrowCall]) -> Answer[GrownRegion]:
        """Grow hair in a marked region. Slow: `on_progress` is told how far it is."""
        return self._call(core.GROW, photo, given)

    def features(self, photo: Photo, **given: Unpack[AnyCall]) -> Answer[FaceFeatures]:
        """Describe face, brows, eyes, nose, lips, hair."""
        return self._call(core.FEATURES, photo, given)

    def hairlines(self, photo: Photo, **given: Unpack[HairlinesCall]) -> Answer[DesignHairlinesResponse]:
        """Draw hairline designs."""
        return self._call(core.HAIRLINES, photo, given)

    def masks(self, photo: Photo, **given: Unpack[MasksCall]) -> Answer[SegmentFaceResponse]:
        """Mask parts of head and face."""
        return self._call(core.MASKS, photo, given)

    def special_points(self, photo: Photo, **given: Unpack[AnyCall]) -> Answer[SpecialPoints]:
        """Name the anatomical points."""
        return self._call(core.SPECIAL_POINTS, photo, given)

    def picture(self, url: str, *, on_wait: OnWait | None = None) -> bytes:
        """The PNG at one of an answer's URLs. Raises `PictureError` when it is gone."""
        fetch = core.Fetch(self._settings, on_wait)
        return self._tried(fetch, partial(self._fetched, fetch, url))

    def save_picture(self, url: str, path: str | Path, *, on_wait: OnWait | None = None) -> Path:
        """The same into a file, which is there whole or not at all."""
        fetch = core.Fetch(self._settings, on_wait)
        return self._tried(fetch, partial(self._saved, fetch, url, Path(path)))

    def save_pictures(self, answer: Answer[T], folder: str | Path, prefix: str = "") -> Mapping[str, Path]:
        """Every picture of an answer as `folder/{prefix}{name}.png`; the files by name. The folder is made."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        return {
            name: self.save_picture(url, Path(folder) / f"{prefix}{name}.png") for name, url in answer.pictures.items()
        }

    def remove_pictures(self, request_id: str, *, admin_token: str) -> int:
        """Remove an answer's pictures from the service at once; how many there were."""
        with core.Fetch(self._settings).sending() as extensions:
            response = self._http.delete(
                core.removal_route(request_id), headers=bearer(admin_token), extensions=extensions
            )
        return core.removed(response)

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

    def __repr__(self) -> str:
        """With the edge's address, without the key."""
        return f"Client({str(self._settings)!r})"

    def _call(self, call: Call[T], photo: Photo, given: Mapping[str, object]) -> Answer[T]:
        request = core.Request(self._settings, call, photo, given)
        return self._tried(request, partial(self._once, call, request))

    @staticmethod
    def _tried(tries: core.Tries, once: Callable[[], R]) -> R:
        while True:
            try:
                return once()
            except HairMeshError as error:
                pause_s = tries.pause_s(error)
            time.sleep(pause_s)

    def _once(self, call: Call[T], request: core.Request) -> Answer[T]:
        with request.opened() as arguments:
            with translated():
                response = self._http.send(self._http.build_request(**arguments), stream=True)
            with closing(response), closing(chunks(response)) as body:
                reply = request.reply(response)
                for chunk in body:
                    reply.feed(chunk)
        return core.answer_of(call, reply.envelope())

    def _fetched(self, fetch: core.Fetch, url: str) -> bytes:
        file = BytesIO()
        self._load(fetch, url, file)
        return file.getvalue()

    def _saved(self, fetch: core.Fetch, url: str, path: Path) -> Path:
        with saved_whole(path) as file:
            self._load(fetch, url, file)
        return path

    def _load(self, fetch: core.Fetch, url: str, file: IO[bytes]) -> None:
        with fetch.sending() as extensions, self._http.stream("GET", url, extensions=extensions) as response:
            core.check_picture(response)
            for chunk in response.iter_bytes():
                fetch.check_time()
                file.write(chunk)
