"""The calls: what each one asks of a worker, and what comes of it. Handlers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message
from hair.analysis.v1 import common_pb2, measure_pb2
from starlette.requests import Request
from starlette.responses import Response

from edge import translate, upload
from edge.calls import Call, CallFailedError, Mesh
from edge.errors import ApiError
from edge.exchange import ClientWatch, Exchange
from edge.images.store import ImageStore, StoreError, StoreFullError, new_id
from edge.messages import Lang
from edge.parameters import MeasureParameters, Parameters, validate
from edge.peers import client_address
from edge.photo import MEDIA_TYPES, Photo, inspect
from edge.reload import InForce

P = TypeVar("P", bound=Parameters)

_LANGUAGES = {Lang.ZH: common_pb2.LANGUAGE_ZH, Lang.EN: common_pb2.LANGUAGE_EN}


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls that run on workers."""

    mesh: Mesh
    store: ImageStore
    in_force: InForce
    picture_url: str
    """What a picture's URL is before its id."""

    async def measure(self, request: Request) -> Response:
        """Facial measurement in px and mm with intervals, thirds and fifths, hairline curve."""
        exchange = Exchange.of(request)
        photo, parameters = await self._take_in(exchange, MeasureParameters)
        message = measure_pb2.MeasureRequest(
            pupillary_distance_mm=parameters.pupillary_distance_mm,
            annotate=parameters.annotate,
            options=self._options(exchange, parameters),
        )
        _put_photo(message.photo, photo)
        del photo  # the message has its own copy, and may wait in a queue with many others
        return await self._ask(exchange, "Measure", message)

    async def _take_in(self, exchange: Exchange, kind: type[P]) -> tuple[Photo, P]:
        """Photo and parameters of a request; raises `ApiError` for the first thing that is wrong."""
        content_type = exchange.headers.get("content-type", "")
        if not upload.is_supported(content_type):
            raise ApiError("UNSUPPORTED_MEDIA_TYPE")
        exchange.timeout_s()  # a wrong header is refused before the body is read
        limits = self.in_force.settings.limits
        body = await upload.read_body(exchange.receive, exchange.headers, limits.max_body_bytes)
        given = await upload.parse(content_type, body)
        parameters = validate(kind, given.parameters)
        if given.photo is None:
            raise ApiError("MISSING_PARAMETER", {"field": "image", "in_json": "image_base64"})
        return inspect(given.photo, limits), parameters

    def _options(self, exchange: Exchange, parameters: Parameters) -> common_pb2.CallOptions:
        lang = Lang(parameters.lang) if parameters.lang else exchange.lang
        max_side_px = self.in_force.settings.limits.max_output_side
        return common_pb2.CallOptions(lang=_LANGUAGES[lang], max_output_side_px=max_side_px)

    async def _ask(self, exchange: Exchange, method: str, message: Message) -> Response:
        """Run one call on a worker and turn its answer into JSON, the pictures in it into URLs that can be read."""
        trusted = self.in_force.settings.trusted_proxies
        client = client_address(exchange.peer, exchange.headers.getlist("x-forwarded-for"), trusted)
        call = Call(
            method, message, exchange.request_id, timeout_s=exchange.timeout_s(), client=client, trace=exchange.trace
        )
        with ClientWatch(exchange):
            try:
                outcome = await self.mesh.call(call)
            except CallFailedError as error:
                exchange.queue_s = error.queue_s
                raise ApiError.of_call(error, exchange.timeout_ms()) from error
            exchange.queue_s = outcome.queue_s
            return await self._answer(exchange, outcome.response)

    async def _answer(self, exchange: Exchange, message: Message) -> Response:
        pictures: dict[str, bytes] = {}

        def keep(picture: bytes) -> str:
            picture_id = new_id()
            pictures[picture_id] = picture
            return f"{self.picture_url}{picture_id}.png"

        data = translate.to_json(message, keep)
        try:
            for picture_id, picture in pictures.items():
                await self.store.put(picture_id, picture)
        except StoreError as error:
            raise ApiError("STORE_FULL" if isinstance(error, StoreFullError) else "STORE_FAILED") from error
        return exchange.answer(data)


def _put_photo(image: common_pb2.Image, photo: Photo) -> None:
    """Fill a request's picture in place: handing over a finished one would copy the photo once more."""
    image.data = photo.data
    image.media_type = MEDIA_TYPES[photo.format]
    image.width_px = photo.width_px
    image.height_px = photo.height_px
