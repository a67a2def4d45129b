"""A server that answers what it is told to, in turn, and remembers what came."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    """One answer; `breaks`: the connection ends without one; `stalls`: its last byte never comes."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""
    breaks: bool = False
    stalls: bool = False


@dataclass
class Seen:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def envelope(code: int, reason: str = "", **data: object) -> bytes:
    """An envelope's bytes."""
    inside = {"reason": reason, "advice": "Later.", "details": {}, **data} if reason else data
    return json.dumps({"code": code, "message": "words", "request_id": "r-1", "data": inside}).encode()


def refused(code: int, reason: str, status: int = 503, retry_after_s: float | None = None) -> Reply:
    """A refusal."""
    headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
    return Reply(status, headers, envelope(code, reason))


SPECIAL = Reply(
    200,
    {},
    envelope(
        0,
        photo={"width_px": 1, "height_px": 1, "format": "JPEG", "exif_orientation": 1},
        face={"box": None, "yaw_deg": 0, "pitch_deg": 0, "roll_deg": 0, "faces_found": 1},
        points={"menton": {"x_px": 1, "y_px": 2.5}},
    ),
)
"""Of `special_points`, the smallest answer."""


class Server(ThreadingHTTPServer):
    """Answers with `replies` in turn; the last one stays."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies: list[Reply] = []
        self.seen: list[Seen] = []
        self.connections = 0
        self.stalled = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def verify_request(self, request: object, client_address: object) -> bool:
        """Counts connections."""
        self.connections += 1
        return True

    def next_reply(self) -> Reply:
        """The next of them."""
        with self.lock:
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append(Seen(self.command, self.path, headers, body))
        reply = self.server.next_reply()
        if reply.breaks:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(reply.content) + reply.stalls))
        self.end_headers()
        self.wfile.write(reply.content)
        if reply.stalls:
            self.server.stalled.set()
            self.rfile.read(1)  # until the client has gone
            self.close_connection = True

    do_GET = do_POST  # noqa: N815
    do_DELETE = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def scripted() -> Iterator[Server]:
    """A running one."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
