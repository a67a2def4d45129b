"""One connection of a client: uvicorn's, with limits on what may come before a request is one, and how slowly.

Neither uvicorn nor its parser bounds the head of a request, and neither waits for it with a clock: a header without an
end filled memory and held the loop. Nothing of this costs a request whose head arrives in one piece more than 2 µs.

One request at a time: uvicorn would queue whatever is sent behind one without end, and know only the last of them when
its client leaves. Here nothing behind a request is taken before its answer is out, so that its queue stays empty and
`cycle` is the one that runs. A server may do so (RFC 9112, 9.3.2), and no client of today sends ahead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import httptools
from typing_extensions import override
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from edge.errors import ApiError, Details
from edge.exchange import LINGER_BYTES, LINGER_S, LINGERS
from edge.room import Room
from edge.server.crowd import Closed, Crowd
from edge.server.pieces import PIECE_BYTES, Pieces
from edge.server.refusal import whole_answer

MAX_HEAD_BYTES = 32_768
"""Request line and headers, as sent: four times what common proxies allow."""
MAX_HEADERS = 100
HEAD_TIMEOUT_S = 15.0
"""For a head to arrive: from the connection on, or where one is kept alive, from the head's first byte on."""
MAX_FRAMING_BYTES = 65_536
"""What a chunked body may have around its chunks and behind them, and as much again as the body itself."""
NOT_READING_S = 30.0
"""A client that took less than `NOT_READING_BYTES` of a waiting answer for so long is gone."""
NOT_READING_BYTES = 65_536

_REASONS: Mapping[Closed, tuple[str, Details]] = {
    Closed.BAD_REQUEST: ("BAD_REQUEST", {}),
    Closed.HEAD_TOO_LARGE: ("HEAD_TOO_LARGE", {"max_bytes": MAX_HEAD_BYTES, "max_headers": MAX_HEADERS}),
    Closed.HEAD_LATE: ("HEAD_LATE", {"timeout_s": HEAD_TIMEOUT_S}),
}
"""What the client is told; one that does not read, or has to go for others, is told nothing."""


_LOG = logging.getLogger("uvicorn.error.connection")
_LOG.setLevel(logging.ERROR)
"""uvicorn warns of every request that is none, and strangers would fill the log. They are counted instead: `Closed`."""


class NotTakenError(Exception):
    """Carried through the parser: what it is fed goes no further."""


class Connection(HttpToolsProtocol):
    """Made for every connection by the server."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        room: Room,
        crowd: Crowd,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = _LOG
        self._pieces = Pieces()
        self._room = room
        self._crowd = crowd
        self._in_body = False
        """Whether the parser stands between a request's head and its end."""
        self._spent = 0
        """Bytes that came since it last went on from head to body, or to the next head, less those of the body."""
        self._unwanted = 0
        """Bytes of a body that came after its answer."""
        self._verdict = Closed.BAD_REQUEST
        """What a fault of the parser means."""
        self._refused = False
        self._deaf = False
        """Whether what still comes is dropped."""
        self._keeps_alive = True
        """Whether the connection stays once the body that was announced has come."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None
        self.url = b""
        self.headers = []

    @property
    def is_refused(self) -> bool:
        """Whether its client has its refusal and is merely given time to read it."""
        return self._refused or (self._is_serving and LINGERS in self.cycle.scope["state"])

    @property
    def unread_bytes(self) -> int:
        """Of its answers, that the system's buffers have not taken."""
        return self.transport.get_write_buffer_size() + self._pieces.waiting_bytes

    @property
    def _is_serving(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # What uvicorn calls.

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.scheme == "https":
            transport.set_write_buffer_limits(high=PIECE_BYTES)
            self.app = self._pieces.of(self.app)
        self._crowd.came(self)
        self._await_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._crowd.left(self)
        for timer in (self._head_timer, self._reading_timer):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()

    @override
    def data_received(self, data: bytes) -> None:
        self._spent += len(data)
        if self._deaf:
            if self._spent > LINGER_BYTES:
                self.transport.abort()
            return
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._reject(self._verdict)
            return
        if self._spent > (MAX_FRAMING_BYTES if self._in_body else MAX_HEAD_BYTES):
            self._reject(Closed.BAD_REQUEST if self._in_body else Closed.HEAD_TOO_LARGE)
        elif self._head_timer is None and not self._is_serving:
            self._await_head()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        if self._reading_timer is None:
            self._await_reading()
        self._crowd.fills(self)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._crowd.drained(self)
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    @override
    def shutdown(self) -> None:
        self._keeps_alive = False
        super().shutdown()

    # What the parser calls.

    @override
    def on_message_begin(self) -> None:
        if self._is_serving:
            raise NotTakenError
        super().on_message_begin()

    @override
    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._verdict = Closed.HEAD_TOO_LARGE
            raise NotTakenError
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":  # an upgrade to the parser, and nobody's proxy here
                raise NotTakenError
            return
        self._in_body, self._spent, self._unwanted = True, 0, 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self._crowd.serves(self)
        super().on_headers_complete()
        if self.expect_100_continue:  # refused, it may send its body or not: what came next could be either
            self._keeps_alive, self.cycle.keep_alive = self.cycle.keep_alive, False

    @override
    def on_body(self, body: bytes) -> None:
        self._spent -= 2 * len(body)
        if not self._is_serving:  # its answer is out, and did not wait for this
            self._unwanted += len(body)
            if self._unwanted > LINGER_BYTES:
                self.transport.abort()
        super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._in_body, self._spent = False, 0
        super().on_message_complete()
        if self.expect_100_continue:
            self.cycle.keep_alive = self._keeps_alive

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._crowd.waits(self)
        if self._deaf and not self.transport.is_closing():
            self._linger()

    # Our own.

    def give_way(self) -> None:
        """Be gone at once."""
        self.transport.abort()

    def _feed(self, data: bytes) -> None:
        """Feed the parser; raises `HttpParserError`.

        Who would like to go on in another protocol is served in this one (RFC 9110, 7.8): Java's client and curl ask so
        for HTTP/2. The parser takes the body for that protocol and cannot be told otherwise, so a fresh one is fed the
        same head without the wish.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            (body_at,) = upgrade.args
            version = self.parser.get_http_version().encode()
            lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
            lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
            self.parser.feed_data(b"\r\n".join([*lines, b"", b""]) + data[body_at:])

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._head_is_late)

    def _head_is_late(self) -> None:
        if self._in_body or not self._spent:  # nothing to answer: its answer is out, or it never asked
            self._crowd.closed[Closed.HEAD_LATE] += 1
            self.transport.abort()
        else:
            self._refuse(Closed.HEAD_LATE)

    def _await_reading(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._reading_timer = self.loop.call_later(NOT_READING_S, self._look_at_reading, left)

    def _look_at_reading(self, before: int) -> None:
        if self.transport.get_write_buffer_size() > before - NOT_READING_BYTES:
            self._crowd.closed[Closed.NOT_READING] += 1
            self.transport.abort()
        else:
            self._await_reading()

    def _reject(self, why: Closed) -> None:
        """What came is not taken. Where it stands behind a request that is being served, its answer is not touched:
        it is given to its end, and then the connection closes.
        """
        if self._in_body or not self._is_serving:
            self._refuse(why)
            return
        self._deaf, self._spent = True, 0
        self._crowd.closed[Closed.SENT_AHEAD] += 1

    def _refuse(self, why: Closed) -> None:
        """Answer, take what is still being sent, so that the answer is seen, and close."""
        if self._refused:
            return
        self._refused = self._deaf = True
        self._crowd.closed[why] += 1
        began = self._is_serving and self.cycle.response_started
        if self._is_serving:  # what it asked for before is not to be answered any more
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if began:  # a second answer inside the first would be none
            self.transport.close()
            return
        self.flow.resume_reading()
        self._spent = 0
        error = ApiError(*_REASONS[why])
        self.transport.write(whole_answer(error, self.url, self.headers[:MAX_HEADERS], self._room))
        self._linger()

    def _linger(self) -> None:
        """Close, but not in the face of a client that still sends: the system would reset the connection, and the
        client may never see its answer.
        """
        self._unset_keepalive_if_required()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(LINGER_S, self._leave)

    def _leave(self) -> None:
        if self.transport.get_write_buffer_size():  # it still reads; whether fast enough, another timer sees to
            self._head_timer = self.loop.call_later(LINGER_S, self._leave)
        else:
            self.transport.abort()
