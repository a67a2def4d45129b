"""The least of an HTTP/1.1 server: one request per connection, a port that can be closed, answers that never come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """What came in. `gone` is done when the client has left."""

    method: str
    path: str
    """Without the query."""
    query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    gone: asyncio.Future[bytes]


@dataclass(frozen=True, slots=True)
class Response:
    """What goes out."""

    status: int = 200
    body: bytes = b""
    kind: str = JSON
    headers: tuple[str, ...] = ()
    """More lines of the head, such as `location: …`."""

    @classmethod
    def json(cls, value: object, status: int = 200) -> Response:
        """`value` as JSON."""
        return cls(status, json.dumps(value).encode())


Handler = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Serves `handler` on a loopback port, which it keeps when it is closed and opened again."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}"

    async def open(self, port: int = 0) -> None:
        """Listen; 0 takes any free port, or the one it had."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port or self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Stop listening; what is being answered goes on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        self.refuse()
        tasks = tuple(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answer(reader, writer)
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _version = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        gone = asyncio.ensure_future(reader.read(1))
        path, _, query = target.partition("?")
        try:
            response = await self._handler(Request(method, path, query, headers, body, gone))
        finally:
            gone.cancel()
        reason = HTTPStatus(response.status).phrase
        lines = (
            f"HTTP/1.1 {response.status} {reason}",
            f"content-type: {response.kind}",
            f"content-length: {len(response.body)}",
            "connection: close",
            *response.headers,
        )
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + response.body)
        await writer.drain()
