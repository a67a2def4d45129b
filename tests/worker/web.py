"""A small web server that can go and come back on the same port."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMFYUI = '{"queue_running": [], "queue_pending": []}'
VLLM = '{"object": "list", "data": [{"id": "m", "object": "model"}]}'
HTML = "<html>gateway</html>"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Web:
    """Answers every GET alike; remembers the paths it was asked for."""

    def __init__(self, body: str = COMFYUI, *, status: int = 200, wait_s: float = 0.0) -> None:
        self.body = body
        self.status = status
        self.wait_s = wait_s
        self.port = 0
        self.asked: list[str] = []
        self._left = threading.Event()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def come(self) -> None:
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path)
                web._left.wait(web.wait_s)
                self.send_response(web.status)
                self.end_headers()
                self.wfile.write(web.body.encode())

            def log_message(self, *_: object) -> None:
                """Not into the test's output."""

        self._left.clear()
        self._server = _Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def go(self) -> None:
        """Nobody listens any more; requests that wait are ended. Going twice is going once."""
        if self._server and self._thread:
            self._left.set()
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None


@contextmanager
def listening(*servers: Web) -> Iterator[None]:
    """All of them are there at the beginning and gone at the end."""
    for server in servers:
        server.come()
    try:
        yield
    finally:
        for server in servers:
            server.go()
