"""The client for programs with an event loop: `Client` with `await`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
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
from hairmesh.client.transport import async_chunks, translated

T = TypeVar("T")
R = TypeVar("R")


class AsyncClient:
    """One edge, as `Client`, which says what the parameters are. May be shared by the tasks of one loop.

    Cancelling a task ends its call: the connection is closed, and the service stops working on it. `on_progress` is an
    ordinary function. Photos on a disk are read on the loop, piece by piece: that is quick.
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
        self._http = httpx.AsyncClient(**self._settings.transport)

    @property
    def url(self) -> httpx.URL:
        """The edge's address."""
        return self._settings.url

    async def measure(self, photo: Photo, **given: Unpack[MeasureCall]) -> Answer[MeasureResponse]:
        """Measure the face."""
        return await self._call(core.MEASURE, photo, given)

    async def styles(self, photo: Photo, **given: Unpack[StylesCall]) -> Answer[GrownStyles]:
        """Grow hair to several hairline styles. Slow: `on_progress` is told how far it is."""
        return await self._call(core.STYLES, photo, given)

    async def grow(self, photo: Photo, **given: Unpack[GrowCall]) -> Answer[GrownRegion]:
        """Grow hair in a marked region. Slow: `on_progress` is told how far it is."""
        return await self._call(core.GROW, photo, given)

    async def features(self, photo: Photo, **given: Unpack[AnyCall]) -> Answer[FaceFeatures]:
        """Describe face, brows, eyes, nose, lips, hair."""
        return await self._call(core.FEATURES, photo, given)

    async def hairlines(self, photo: Photo, **given: Unpack[HairlinesCall]) -> Answer[DesignHairlinesResponse]:
        """Draw hairline designs."""
        return await self._call(core.HAIRLINES, photo, given)

    async def masks(self, photo: Photo, **given: Unpack[MasksCall]) -> Answer[SegmentFaceResponse]:
        """Mask parts of head and face."""
        return await self._call(core.MASKS, photo, given)

    async def special_points(self, photo: Photo, **given: Unpack[AnyCall]) -> Answer[SpecialPoints]:
        """Name the anatomical points."""
        return await self._call(core.SPECIAL_POINTS, photo, given)

    async def picture(self, url: str, *, on_wait: OnWait | None = None) -> bytes:
        """The PNG at one of an answer's URLs. Raises `PictureError` when it is gone."""
        fetch = core.Fetch(self._settings, on_wait)
        return await self._tried(fetch, partial(self._fetched, fetch, url))

    async def save_picture(self, url: str, path: str | Path, *, on_wait: OnWait | None = None) -> Path:
        """The same into a file, which is there whole or not at all."""
        fetch = core.Fetch(self._settings, on_wait)
        return await self._tried(fetch, partial(self._saved, fetch, url, Path(path)))

    async def save_pictures(self, answer: Answer[T], folder: str | Path, prefix: str = "") -> Mapping[str, Path]:
        """Every picture of an answer as `folder/{prefix}{name}.png`; the files by name. The folder is made."""
        Path(folder).mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  (takes microseconds)
        return {
            name: await self.save_picture(url, Path(folder) / f"{prefix}{name}.png")
            for name, url in answer.pictures.items()
        }

    async def remove_pictures(self, request_id: str, *, admin_token: str) -> int:
        """Remove an answer's pictures from the service at once; how many there were."""
        with core.Fetch(self._settings).sending() as extensions:
            response = await self._http.delete(
                core.removal_route(request_id), headers=bearer(admin_token), extensions=extensions
            )
        return core.removed(response)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """This client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self.aclose()

    def __repr__(self) -> str:
        """With the edge's address, without the key."""
        return f"AsyncClient({str(self._settings)!r})"

    async def _call(self, call: Call[T], photo: Photo, given: Mapping[str, object]) -> Answer[T]:
        request = core.Request(self._settings, call, photo, given)
        return await self._tried(request, partial(self._once, call, request))

    @staticmethod
    async def _tried(tries: core.Tries, once: Callable[[], Awaitable[R]]) -> R:
        while True:
            try:
                return await once()
            except HairMeshError as error:
                pause_s = tries.pause_s(error)
            await asyncio.sleep(pause_s)

    async def _once(self, call: Call[T], request: core.Request) -> Answer[T]:
        with request.opened() as arguments:
            with translated():
                response = await self._http.send(self._http.build_request(**arguments), stream=True)
            async with aclosing(response), aclosing(async_chunks(response)) as body:
                reply = request.reply(response)
                async for chunk in body:
                    reply.feed(chunk)
        return core.answer_of(call, reply.envelope())

    async def _fetched(self, fetch: core.Fetch, url: str) -> bytes:
        file = BytesIO()
        await self._load(fetch, url, file)
        return file.getvalue()

    async def _saved(self, fetch: core.Fetch, url: str, path: Path) -> Path:
        with saved_whole(path) as file:
            await self._load(fetch, url, file)
        return path

    async def _load(self, fetch: core.Fetch, url: str, file: IO[bytes]) -> None:
        with fetch.sending() as extensions:
            async with self._http.stream("GET", url, extensions=extensions) as response:
                core.check_picture(response)
                async for chunk in response.aiter_bytes():
                    fetch.check_time()
                    file.write(chunk)
