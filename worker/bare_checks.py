"""Health checks without a password: anybody may ask, nobody may fill the memory by it.

gRPC takes up to 64 MiB of a message as soon as it is to be read, and keeps what came for as long as the rest is
missing. The message of a check is twenty bytes and comes with its head: one that does not is given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import grpc
from grpc import aio

from worker.refusals import DEADLINE, Refusal, to_status

TURNS = 4
"""In which a message is waited for: an event loop that stood still has used up one of them, not the sender's time."""

Context = aio.ServicerContext[Any, Any]
Check = Callable[[Any, Context], Awaitable[Any]]


class BareChecks:
    """Every message may take `prompt_s`; one at a time may be late, and take `late_s`.

    So what half-sent ones hold is bounded by one message, and by what the line carries in `prompt_s`. None is made to
    wait for another: who sends five bytes and stops would shut out all probes.
    """

    def __init__(self, *, prompt_s: float, late_s: float) -> None:
        self._prompt_s = prompt_s
        self._late_s = late_s
        self._one_is_late = False

    def guard(
        self, handler: grpc.RpcMethodHandler[Any, Any], note: Callable[[Context], None]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """`handler`, of one request and one answer, behind a stream: that alone leaves the reading to us.

        `note` hears of each that is given up.
        """
        check: Any = handler.unary_unary  # the stubs know synchronous ones only
        return grpc.stream_stream_rpc_method_handler(
            partial(self._answer, check, note), handler.request_deserializer, handler.response_serializer
        )

    async def _answer(self, check: Check, note: Callable[[Context], None], _requests: object, context: Context) -> None:
        reading = asyncio.ensure_future(context.read())
        try:
            if not await self._came(reading) or reading.result() is aio.EOF:
                note(context)
                await context.abort_with_status(to_status(Refusal(DEADLINE)))
        finally:
            reading.cancel()
        await context.write(await check(reading.result(), context))

    async def _came(self, reading: asyncio.Future[Any]) -> bool:
        for _ in range(TURNS):
            await asyncio.wait({reading}, timeout=self._prompt_s / TURNS)
            if reading.done():
                return True
        if self._one_is_late:
            return False
        self._one_is_late = True
        try:
            await asyncio.wait({reading}, timeout=self._late_s)
        finally:
            self._one_is_late = False
        return reading.done()
