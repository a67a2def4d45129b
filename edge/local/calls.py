"""The handlers of the two calls that the edge computes itself. They need no worker, and take none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import structlog
from starlette.requests import Request
from starlette.responses import Response

from edge.errors import ApiError
from edge.exchange import ClientWatch, Exchange
from edge.intake import take_in
from edge.local.answers import features_data, points_data
from edge.local.claims import Claims
from edge.local.findings import Described, Ticket
from edge.local.llm import LLM_TIMEOUT, LlmError, VisionLlm
from edge.local.thread import LocalThread, Work
from edge.messages import Lang
from edge.parameters import Parameters
from edge.reload import InForce

T = TypeVar("T")

ANSWER_S = 0.25
"""What is kept of a client's patience to answer without the LLM when that is late."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LocalCalls:
    """The handlers."""

    vision: LocalThread
    llm: VisionLlm
    in_force: InForce

    async def special_points(self, request: Request) -> Response:
        """Named anatomical points."""
        exchange = Exchange.of(request)
        limits = self.in_force.settings.limits
        given = await take_in(exchange, Parameters, limits)
        with ClientWatch(exchange):
            found = await self._compute(
                exchange,
                lambda engine, photo, ticket: engine.special_points(photo, limits.max_pixels, ticket),
                given.photo.data,
            )
            return exchange.answer(points_data(found))

    async def features(self, request: Request) -> Response:
        """Face, brows, eyes, nose, lips, jaw and hair in words."""
        exchange = Exchange.of(request)
        settings = self.in_force.settings
        max_pixels, asks = settings.limits.max_pixels, settings.features.base_url is not None
        given = await take_in(exchange, Parameters, settings.limits)
        lang = Lang(given.parameters.lang or exchange.lang)
        computing = self._compute(
            exchange,
            lambda engine, photo, ticket: engine.describe(photo, max_pixels, ticket, with_jpeg=asks),
            given.photo.data,
        )
        del given  # the LLM takes its time: nobody is to hold a photo meanwhile that is of no more use
        with ClientWatch(exchange):
            found = await computing
            claims, llm_reason = await self._claims(exchange, found, lang)
            return exchange.answer(features_data(found, claims, llm_reason, lang))

    async def close(self) -> None:
        """Free models and connections."""
        await self.llm.close()
        await self.vision.close()

    async def _compute(self, exchange: Exchange, work: Work[T], photo: bytes) -> T:
        """In line for the local thread, for no longer than the client waits."""
        timeout_s = self.in_force.settings.local_vision.timeout_seconds
        limit_ms = round(timeout_s * 1000)
        left_s, stated_ms = exchange.timeout_s(), exchange.timeout_ms()
        if left_s is not None and stated_ms is not None and left_s < timeout_s:
            timeout_s, limit_ms = left_s, stated_ms
        ticket = Ticket()
        try:
            return await self.vision.run(work, photo, ticket, timeout_s)
        except TimeoutError:
            raise ApiError("DEADLINE", {"timeout_ms": limit_ms}) from None
        finally:
            exchange.queue_s = ticket.queue_s

    async def _claims(self, exchange: Exchange, found: Described, lang: Lang) -> tuple[Claims | None, str | None]:
        """What the LLM says of the photo, or why it says nothing; neither where none is configured."""
        features = self.in_force.settings.features
        if found.jpeg is None or features.base_url is None:  # the latter: switched off meanwhile
            return None, None
        try:
            left_s = exchange.timeout_s()
            patience_s = (
                features.timeout_seconds if left_s is None else min(left_s - ANSWER_S, features.timeout_seconds)
            )
            if patience_s <= 0:
                raise LlmError(LLM_TIMEOUT)  # noqa: TRY301  (as if it had been asked)
            return await self.llm.ask(features, found.jpeg, lang, patience_s), None
        except LlmError as error:
            log.warning("features_llm_failed", reason=error.reason, http_status=error.http_status)
            return None, error.reason
