"""One request under `/api/`, from its first byte to its line in the request log.

Pure ASGI: whatever happens inside, the client gets exactly one envelope with its request id, or has gone away.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from urllib.parse import unquote_plus

import orjson
import structlog
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge.calls import CallTrace
from edge.errors import ApiError, invalid
from edge.images.store import StoreError
from edge.messages import OK, preferred_language
from edge.recent_errors import RecentErrors
from edge.request_log import RequestLog
from edge.room import Room
from edge.stats import NO_ROUTE, Outcome, Stats
from edge.upload import ClientGoneError, declared_bytes, public_name
from hairmesh.trace_context import TraceContext

PREFIX = "/api/"
MAX_PATIENCE_MS = 3_600_000
WATCH_AFTER_S = 0.05
"""Calls that end sooner are not watched for a client that leaves: watching costs as much as a small call."""
SMALL_BODY_BYTES = 65_536
"""An unread body up to this is read and dropped by the server, and the connection stays open."""
LINGERS = "lingers"
"""In the state of a request's scope: its refusal is out, and its connection stays for what is still being sent."""
LINGER_S = 2.0
LINGER_BYTES = 8 * 1024 * 1024
"""How much of a larger one is still taken and dropped, so that a client that sends before it reads sees its refusal:
enough for the photos of most phones."""

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TIMEOUT_MS = re.compile(r"[0-9]{1,9}")

log = structlog.get_logger()


class Exchange:
    """What is known of one request; filled in as it goes, written down at its end."""

    def __init__(self, scope: Scope, receive: Receive, *, room: Room, traced: bool = False) -> None:
        """`room`: what all bodies share. `traced`: whether spans are wanted of requests whose clients have nothing
        against it.
        """
        self.room = room
        self.headers = Headers(scope=scope)
        self.method: str = scope["method"]
        self.peer: str = (scope["client"] or ("",))[0]
        """Address of the other end of the connection; in no log, unless a wrong token came from there."""
        self.route: str | None = None
        """Path as declared, never as sent: a path that no route has may hold anything."""
        given = self.headers.getlist("x-request-id")
        self.request_id = given[0] if len(given) == 1 and REQUEST_ID.fullmatch(given[0]) else secrets.token_hex(16)
        self.lang = preferred_language(self.headers.get("accept-language", ""))
        self.vary = "Accept-Language"
        self.takes_chunks: bool = scope["http_version"] != "1.0"
        """Whether an answer may be sent whose length is not known at its beginning."""
        self.started_s = time.monotonic()
        self.answered_s: float | None = None
        self.code: int | None = None
        self.reason = ""
        self.http_status: int | None = None
        self.queue_s = 0.0
        sent = TraceContext.read(self.headers.getlist("traceparent"))
        recorded = traced and (sent is None or sent.sampled)
        own = TraceContext.new(sampled=recorded) if sent is None else sent.child() if recorded else sent
        self.trace = CallTrace(context=own, recorded=recorded)
        """Its place in the client's trace, or in one of its own; and its call on a worker, if it has one."""
        self.trace_parent_id = sent.span_id if sent else ""
        self.api_key = ""
        """Name of the API key it came with, where there are any."""
        self.more_headers: Mapping[str, str] = {}
        """Of its answer, whatever that is."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.body_read = False
        self.client_gone = False
        self.take_back: Callable[[], Awaitable[None]] | None = None
        """Undoes what is of use to nobody unless the client gets a good answer; raises `StoreError`."""
        self._receive = receive

    @classmethod
    def of(cls, request: Request) -> Exchange:
        """The exchange that a handler's request belongs to."""
        exchange: Exchange = request.state.exchange
        return exchange

    async def receive(self) -> Message:
        """The server's `receive`, noting what came."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.client_gone = True
        else:
            self.bytes_in += len(message.get("body", b""))
            self.body_read = not message.get("more_body", False)
        return message

    def timeout_ms(self) -> int | None:
        """The client's patience as stated (`X-Request-Timeout-Ms`); None where it states none.

        Raises `ApiError` INVALID_PARAMETER for anything but whole milliseconds.
        """
        stated = self.headers.get("x-request-timeout-ms")
        if stated is None:
            return None
        if _TIMEOUT_MS.fullmatch(stated) is None or not 1 <= int(stated) <= MAX_PATIENCE_MS:
            raise invalid("X-Request-Timeout-Ms", min=1, max=MAX_PATIENCE_MS)
        return int(stated)

    def timeout_s(self) -> float | None:
        """What is left of the client's patience; raises `ApiError` as `timeout_ms` does, DEADLINE when nothing is."""
        stated_ms = self.timeout_ms()
        if stated_ms is None:
            return None
        left_s = stated_ms / 1000 - (time.monotonic() - self.started_s)
        if left_s <= 0:
            raise ApiError("DEADLINE", {"timeout_ms": stated_ms})
        return left_s

    def answer(self, data: object) -> Response:
        """A good answer."""
        return self._respond(self.envelope(data), 200, {})

    def refuse(self, error: ApiError) -> Response:
        """A refusal."""
        headers = dict(error.headers)
        if error.retry_after_s is not None:
            headers["Retry-After"] = str(error.retry_after_s)
        return self._respond(self.refusal_envelope(error), error.row.http_status, headers)

    def envelope(self, data: object) -> bytes:
        """The envelope of a good answer, as JSON: the end of the request."""
        return self._envelope(0, OK.of(self.lang), data)

    def refusal_envelope(self, error: ApiError) -> bytes:
        """The envelope of a refusal, as JSON: the end of the request."""
        self.reason = error.reason
        advice = error.advice
        later = {} if error.retry_after_s is None else {"retry_after_s": error.retry_after_s}
        data = {
            "reason": error.reason,
            "details": {**error.details, **later},
            "advice": advice.of(self.lang) if advice else None,
        }
        return self._envelope(error.row.code, error.message.of(self.lang), data)

    def _envelope(self, code: int, message: str, data: object) -> bytes:
        body = orjson.dumps({"code": code, "message": message, "request_id": self.request_id, "data": data})
        self.code, self.answered_s = code, time.monotonic()
        return body

    def common_headers(self) -> dict[str, str]:
        """What every answer says."""
        return {
            "X-Request-ID": self.request_id,
            "Cache-Control": "no-store",
            "Content-Language": self.lang,
            "Vary": self.vary,
            **self.more_headers,
        }

    def _respond(self, body: bytes, http_status: int, headers: Mapping[str, str]) -> Response:
        self.http_status, self.bytes_out = http_status, len(body)
        kind = _LingeringResponse if self._much_is_unread() else Response
        return kind(body, http_status, {**self.common_headers(), **headers}, "application/json")

    def _much_is_unread(self) -> bool:
        if self.body_read or self.client_gone:
            return False
        return "transfer-encoding" in self.headers or declared_bytes(self.headers) > SMALL_BODY_BYTES

    def duration_s(self) -> float:
        """From its beginning to its answer, or to now where there is none."""
        return (self.answered_s or time.monotonic()) - self.started_s

    def outcome(self) -> Outcome:
        """As it is counted."""
        return Outcome.of(self.route, self.method, self.http_status, self.code, self.reason)

    def line(self) -> dict[str, object]:
        """What the request log keeps of it."""
        workers = self.trace.workers
        return {
            "request_id": self.request_id,
            "trace_id": self.trace.context.trace_id,
            "method": self.method,
            "route": self.route,
            "http_status": self.http_status,
            "code": self.code,
            "reason": self.reason,
            "duration_ms": round(self.duration_s() * 1000, 1),
            "queue_ms": round(self.queue_s * 1000, 1),
            "call_id": self.trace.call_id,
            "worker": workers[-1] if workers else "",
            "workers": workers,
            "attempts": len(workers),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "api_key": self.api_key,
            "client": "client_closed" if self.code is None else "answered",
        }


async def _taken_back(take_back: Callable[[], Awaitable[None]]) -> None:
    try:
        await take_back()
    except StoreError as error:
        log.error("pictures_not_removed", problem=str(error))  # noqa: TRY400  (no trace: it is no fault of ours)


def _refuse_query(query: bytes) -> None:
    """Calls take nothing from the query, least of all a token: the whole of it stands in the logs of every proxy."""
    name, is_named, _ = query.partition(b"&")[0].partition(b"=")
    field = public_name(unquote_plus(name.decode("latin-1"))) if is_named else "?"  # one without a value is a value
    raise invalid(field, problem="is no parameter of this call: parameters stand in the body, not in the query")


class _LingeringResponse(Response):
    """An answer given before the body was read: closes the connection, but not in the face of a client still sending.

    Closing with unread bytes makes the system reset the connection, and the client may never see the answer.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw_headers = [*self.raw_headers, (b"connection", b"close")]
        scope.setdefault("state", {})[LINGERS] = True
        await send({"type": "http.response.start", "status": self.status_code, "headers": raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        dropped = 0
        try:
            async with asyncio.timeout(LINGER_S):
                while dropped <= LINGER_BYTES:
                    message = await receive()
                    dropped += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            log.debug("refused_body_not_drained")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class ClientWatch:
    """Cancels the current task when its client goes away; leaving the block then raises `ClientGoneError`.

    To be entered once the body has been read.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._watcher: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        """Begin to watch, a little later."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("ClientWatch needs a task to cancel")
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(WATCH_AFTER_S, self._start)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if self._exchange.client_gone:
            self._task.uncancel()
            raise ClientGoneError from None

    def _start(self) -> None:
        self._watcher = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        while not self._exchange.client_gone:
            await self._exchange.receive()
        self._task.cancel()


Endpoint = Callable[[Request], Awaitable[Response]]
Admit = Callable[[Exchange], None]
"""Raises `ApiError` for a request that may not be made, before anything of its body is read."""
Trace = Callable[[Exchange, Outcome, float], None]
"""Tells the spans of a request that is recorded, once it is over; the last is that moment, monotonic clock."""


class ApiExchanges:
    """ASGI middleware: an `Exchange` around every request under `/api/`; everything else passes untouched.

    `calls` are the routes without path parameters, by method and path. They are called from here and from nowhere else:
    the framework's way to a handler takes 5 % of a fast call. Refusals still go through the framework. `trace` is there
    where spans are wanted.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        request_log: RequestLog,
        recent: RecentErrors,
        stats: Stats,
        room: Room,
        admit: Admit,
        calls: Mapping[tuple[str, str], Endpoint],
        trace: Trace | None = None,
    ) -> None:
        self._app = app
        self._request_log = request_log
        self._recent = recent
        self._stats = stats
        self._room = room
        self._admit = admit
        self._calls = calls
        self._routes = frozenset(path for _method, path in calls)
        self._trace = trace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run one request."""
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, room=self._room, traced=self._trace is not None)
        scope.setdefault("state", {})["exchange"] = exchange
        structlog.contextvars.bind_contextvars(request_id=exchange.request_id, trace_id=exchange.trace.context.trace_id)
        in_flight = scope["path"] if scope["path"] in self._routes else NO_ROUTE
        self._stats.began(in_flight)
        try:
            refusal = await refusal_of(self._run(exchange, scope, send))
            if refusal is not None and exchange.http_status is None:
                await exchange.refuse(refusal)(scope, exchange.receive, send)
        finally:
            exchange.route = exchange.route or getattr(scope.get("route"), "path", None)
            line = exchange.line()
            self._request_log.write(line)
            self._recent.note(line)
            outcome, now_s = exchange.outcome(), time.monotonic()
            self._stats.ended(in_flight, outcome, exchange.duration_s(), now_s)
            if self._trace is not None and exchange.trace.recorded:
                self._trace(exchange, outcome, now_s)
            if exchange.take_back is not None and (exchange.code != 0 or exchange.client_gone):
                await asyncio.shield(_taken_back(exchange.take_back))  # last: a sick disk delays no refusal
            structlog.contextvars.unbind_contextvars("request_id", "trace_id")

    async def _run(self, exchange: Exchange, scope: Scope, send: Send) -> None:
        """Run the application inside; raises what it did not answer by itself."""
        endpoint = self._calls.get((scope["method"], scope["path"]))
        if endpoint is None:
            await self._app(scope, exchange.receive, send)
            return
        exchange.route = scope["path"]
        self._admit(exchange)
        self._room.enter()
        try:
            if scope["query_string"]:
                _refuse_query(scope["query_string"])
            response = await endpoint(Request(scope, exchange.receive, send))
            await response(scope, exchange.receive, send)
        finally:
            self._room.leave()


async def refusal_of(work: Awaitable[None]) -> ApiError | None:
    """Await `work`; what to tell the client where it fails, None where it does not or the client is gone."""
    try:
        await work
    except ApiError as error:
        return error
    except ClientGoneError:
        return None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or not task.cancelling():  # nobody cancelled us: something inside let its own escape
            log.exception("cancellation_escaped")
            return ApiError("EDGE_FAILED")
        task.uncancel()
        return ApiError("SHUTTING_DOWN")
    except Exception:  # the last line of defence: a fault of ours is logged here, and answered without its words
        log.exception("request_failed_inside")
        return ApiError("EDGE_FAILED")
    return None
