"""The calls that run on workers, one handler each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from google.protobuf.message import Message
from hair.analysis.v1 import common_pb2
from starlette.requests import Request
from starlette.responses import Response

from edge import kinds
from edge.calls import Call, CallFailedError, Mesh, Outcome
from edge.errors import ApiError
from edge.exchange import ClientWatch, Exchange
from edge.images.store import ImageStore, RemovedError, StoreError, StoreFullError, TooLargeError, new_id
from edge.intake import take_in
from edge.kinds import Data, Kind
from edge.messages import Lang
from edge.parameters import Parameters
from edge.peers import client_address
from edge.reload import InForce
from edge.stream import News, StreamedAnswer, is_wanted

P = TypeVar("P", bound=Parameters)

_LANGUAGES = {Lang.ZH: common_pb2.LANGUAGE_ZH, Lang.EN: common_pb2.LANGUAGE_EN}


@dataclass(frozen=True, slots=True)
class Calls:
    """The handlers."""

    mesh: Mesh
    store: ImageStore
    in_force: InForce
    picture_url: str
    """What a picture's URL is before its id."""
    comment_every_s: float
    """Of streamed answers."""

    async def measure(self, request: Request) -> Response:
        """Facial measurement in px and mm with intervals, thirds and fifths, hairline curve."""
        return await self._serve(Exchange.of(request), kinds.MEASURE)

    async def styles(self, request: Request) -> Response:
        """Hair grown to several hairline styles."""
        return await self._serve(Exchange.of(request), kinds.STYLES)

    async def grow(self, request: Request) -> Response:
        """Hair grown in the region the user marked."""
        return await self._serve(Exchange.of(request), kinds.REGION)

    async def hairlines(self, request: Request) -> Response:
        """Hairline designs drawn on the photo."""
        return await self._serve(Exchange.of(request), kinds.HAIRLINES)

    async def masks(self, request: Request) -> Response:
        """Masks of hair and the parts of the face."""
        return await self._serve(Exchange.of(request), kinds.MASKS)

    async def _serve(self, exchange: Exchange, kind: Kind[P]) -> Response:
        """One request from its body to its answer, or to the answer that tells its progress first."""
        if kind.grows:
            exchange.vary = "Accept, Accept-Language"
        message, lang = await self._message(exchange, kind)
        if kind.grows and exchange.takes_chunks and is_wanted(exchange.headers.getlist("accept")):
            return StreamedAnswer(exchange, partial(self._run, exchange, kind, message, lang), self.comment_every_s)
        with ClientWatch(exchange):
            return exchange.answer(await self._run(exchange, kind, message, lang, None))

    async def _message(self, exchange: Exchange, kind: Kind[P]) -> tuple[Message, Lang]:
        """What the worker is asked, and the language of the answer's words; raises `ApiError`.

        Nothing else of the request stays: it may wait with many others.
        """
        limits = self.in_force.settings.limits
        given = await take_in(exchange, kind.parameters, limits)
        lang = Lang(given.parameters.lang or exchange.lang)
        options = common_pb2.CallOptions(lang=_LANGUAGES[lang], max_output_side_px=limits.max_output_side)
        return kind.ask(given, options), lang

    async def _run(self, exchange: Exchange, kind: Kind[P], message: Message, lang: Lang, news: News | None) -> Data:
        """Run the call on a worker; the answer's data, with pictures that can be read. Raises `ApiError`."""
        trusted = self.in_force.settings.trusted_proxies
        call = Call(
            kind.method,
            message,
            exchange.request_id,
            slow=kind.grows,
            capability="growth" if kind.grows else "",
            timeout_s=exchange.timeout_s(),
            client=client_address(exchange.peer, exchange.headers.getlist("x-forwarded-for"), trusted),
            on_queued=news.queued if news else None,
            on_progress=news.progress if news else None,
            trace=exchange.trace,
        )
        try:
            outcome = await self.mesh.call(call)
        except CallFailedError as error:
            exchange.queue_s = error.queue_s
            raise ApiError.of_call(error, exchange.timeout_ms()) from error
        exchange.queue_s = outcome.queue_s
        return await self._data(exchange, kind, outcome, lang)

    async def _data(self, exchange: Exchange, kind: Kind[P], outcome: Outcome, lang: Lang) -> Data:
        """The answer's data, its pictures stored: all of them, or in the end none."""
        pictures: dict[str, bytes] = {}

        def keep(picture: bytes) -> str:
            picture_id = new_id(exchange.request_id)
            pictures[picture_id] = picture
            return f"{self.picture_url}{picture_id}.png"

        data = kind.answer(outcome, keep, lang)
        if pictures:
            exchange.take_back = partial(self.store.remove, tuple(pictures))  # whatever of them is stored by then
            try:
                await self.store.put(pictures, began_s=exchange.started_s)
            except StoreError as error:
                raise _unkept(error) from error
        return data


def _unkept(error: StoreError) -> ApiError:
    """The refusal of an answer whose pictures could not be stored."""
    match error:
        case RemovedError():
            return ApiError("PICTURES_REMOVED")
        case TooLargeError():
            return ApiError("STORE_FULL", {"size_bytes": error.bytes, "max_bytes": error.max_bytes})
        case StoreFullError():
            return ApiError("STORE_FULL")
        case _:
            return ApiError("STORE_FAILED")
