"""The answers of slow calls as server-sent events: how far they are, then the envelope.

`queued` and `progress` events, a comment line now and then, one `result` at the end. Nothing is sent before the pool
has taken the call: what goes wrong until then is an ordinary answer. A client that reads slowly costs no memory: of
what there is to tell, only the newest is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import orjson
from google.protobuf.message import Message
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from edge.exchange import ClientWatch, Exchange, refusal_of
from edge.messages import MAX_HEADER_CHARACTERS, quality
from edge.translate import to_json
from edge.upload import ClientGoneError

COMMENT_EVERY_S = 10.0
"""Proxies take a connection for dead when nothing comes over it for a minute or less."""
MEDIA_TYPE = "text/event-stream"

_COMMENT = b":\n\n"


def is_wanted(accept: Iterable[str]) -> bool:
    """Whether the values of `Accept` name events, and do not put JSON before them or name it as well."""
    return _prefers_events(",".join(accept)[:MAX_HEADER_CHARACTERS])


@lru_cache(maxsize=256)
def _prefers_events(accept: str) -> bool:
    events, json = _wanted(accept, MEDIA_TYPE), _wanted(accept, "application/json")
    return events > json and events[1] == _EXACTLY and events[0] > 0


_EXACTLY = 2


def _wanted(accept: str, media_type: str) -> tuple[float, int]:
    """How much a type is wanted, 0 to 1, by the range that names it most exactly; and how exactly that is."""
    ranges = ["*/*", f"{media_type.partition('/')[0]}/*", media_type]
    best = (-1, 0.0)
    for item in accept.split(","):
        name, _, parameters = item.partition(";")
        if (name := name.strip().lower()) in ranges:
            best = max(best, (ranges.index(name), quality(parameters)))
    return best[1], best[0]


def event(name: str, data: bytes) -> bytes:
    """One event; `data` is JSON in one line."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


class News:
    """What there is to tell of a call: the newest event, until it is taken. Called by the mesh while the call runs."""

    def __init__(self) -> None:
        self._newest: bytes | None = None
        self._come = asyncio.Event()

    def queued(self, ahead: int, attempt: int) -> None:
        """An attempt is due, and so many calls are to get a worker before it."""
        self._tell("queued", {"position": ahead, "attempt": attempt})

    def progress(self, message: Message, attempt: int) -> None:
        """A worker tells how far it is; the number of the attempt is the edge's."""
        told: Message = getattr(message, "progress")  # noqa: B009  (every stream has one; their common type has not)
        self._tell("progress", to_json(told, _no_picture) | {"attempt": attempt})

    def take(self) -> bytes | None:
        """The newest event that was not taken yet."""
        newest, self._newest = self._newest, None
        return newest

    def wake(self, *_: object) -> None:
        """Have whoever waits look: there is news, or there will be no more."""
        self._come.set()

    async def wait(self) -> None:
        """Until there is a reason to look."""
        await self._come.wait()
        self._come.clear()

    def _tell(self, name: str, data: Mapping[str, Any]) -> None:
        self._newest = event(name, orjson.dumps(data))
        self.wake()


def _no_picture(_data: bytes) -> str:
    raise TypeError("progress holds no pictures")


Work = Callable[[News], Coroutine[Any, Any, object]]
"""The call: gives the answer's data, raises `ApiError`."""


class StreamedAnswer(Response):
    """Runs a call while it is sent, and tells of it."""

    media_type = MEDIA_TYPE

    def __init__(self, exchange: Exchange, work: Work, comment_every_s: float) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(exchange.common_headers() | {"X-Accel-Buffering": "no"})
        self._exchange = exchange
        self._work = work
        self._comment_every_s = comment_every_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run it. Raises what went wrong before the first event, and `ClientGoneError`."""
        exchange, news = self._exchange, News()
        running = asyncio.create_task(self._work(news))
        running.add_done_callback(news.wake)
        try:
            await news.wait()
            first = news.take()
            if first is None:
                await running
            exchange.http_status = self.status_code
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            refusal = await refusal_of(self._tell(running, first, news, send))
        finally:
            await _end(running)
        if exchange.client_gone:
            raise ClientGoneError
        envelope = exchange.refusal_envelope(refusal) if refusal else exchange.envelope(running.result())
        await self._send(send, event("result", envelope), more=False)

    async def _tell(self, running: asyncio.Task[object], first: bytes | None, news: News, send: Send) -> None:
        """Send what there is to tell until the call has ended; raises as it does."""
        loop = asyncio.get_running_loop()
        newest, comment_s = first, loop.time() + self._comment_every_s
        with ClientWatch(self._exchange):
            while newest is not None or not running.done():
                if newest is not None:
                    await self._send(send, newest)
                else:
                    with suppress(TimeoutError):
                        async with asyncio.timeout_at(comment_s):
                            await news.wait()
                if loop.time() >= comment_s:
                    await self._send(send, _COMMENT)
                    comment_s = loop.time() + self._comment_every_s
                newest = news.take()
        await running

    async def _send(self, send: Send, chunk: bytes, *, more: bool = True) -> None:
        self._exchange.bytes_out += len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": more})


async def _end(running: asyncio.Task[object]) -> None:
    """Whatever happens, nobody works for a request that is over."""
    running.cancel()
    await asyncio.wait([running])
    if not running.cancelled():
        running.exception()  # it was told, or nobody is left to hear it
