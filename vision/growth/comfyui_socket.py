"""The socket on which a ComfyUI server tells what it does. It may fall silent, break or be half dead at any moment:
then it is renewed, and whoever listens hears nothing meanwhile.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

from vision.growth.comfyui_client import base_url

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Previews are pictures."""
AGAIN_AFTER_S = 1.0
"""Between a connection that broke, or did not come about, and the next."""
_MOST_AT_ONCE = 256
"""Messages taken without looking at anything else."""

_wire = logging.getLogger(f"{__name__}.wire")
_wire.setLevel(logging.CRITICAL)  # a broken connection is expected here, and frames are nobody's business


class Listener:
    """One client's socket, kept open. Used by one thread; connections are made and closed in `threads`."""

    def __init__(self, url: str, client_id: str, threads: Executor, *, connect_s: float, ping_s: float) -> None:
        address = base_url(url).replace("http", "ws", 1)
        self._url = f"{address}/ws?{urlencode({'clientId': client_id})}"
        self._threads = threads
        self._connect_s = connect_s
        self._ping_s = ping_s
        self._connection: ClientConnection | None = None
        self._connecting: Future[ClientConnection] | None = None
        self._not_before_s = 0.0

    def receive(self, timeout_s: float) -> Iterator[Any]:
        """Messages as they come, decoded; returns when none has come for `timeout_s`."""
        connection = self._connected(timeout_s)
        if connection is None:
            return
        for _ in range(_MOST_AT_ONCE):
            try:
                message = connection.recv(timeout=timeout_s)
            except TimeoutError:
                return
            except ConnectionClosed:
                self.renew()
                return
            if isinstance(message, str):  # bytes are previews
                try:
                    yield json.loads(message)
                except (ValueError, RecursionError):
                    continue
            timeout_s = 0.0

    def wait_open(self, timeout_s: float) -> bool:
        """Whether it is open, after at most `timeout_s`."""
        return self._connected(timeout_s) is not None

    def renew(self) -> None:
        """Let go of the connection, if there is one; `receive` opens another one under the same client id."""
        if self._connection is not None:
            self._let_go()
            self._not_before_s = time.monotonic() + AGAIN_AFTER_S

    def close(self) -> None:
        """Close it, in the background."""
        self._let_go()
        if self._connecting is not None:
            self._connecting.add_done_callback(_close_made)
            self._connecting = None

    def _let_go(self) -> None:
        if self._connection is not None:
            self._threads.submit(self._connection.close)
            self._connection = None

    def _connected(self, timeout_s: float) -> ClientConnection | None:
        if self._connection is not None:
            return self._connection
        if self._connecting is None:
            pause_s = self._not_before_s - time.monotonic()
            if pause_s > 0:
                time.sleep(min(pause_s, timeout_s))
                return None
            self._connecting = self._threads.submit(self._connect)
        wait([self._connecting], timeout_s)
        if self._connecting.done():
            made, self._connecting = self._connecting, None
            try:
                self._connection = made.result()
            except (OSError, WebSocketException):  # a proxy that knows no sockets; the history tells as well
                self._not_before_s = time.monotonic() + AGAIN_AFTER_S
        return self._connection

    def _connect(self) -> ClientConnection:
        # It is closed by `_let_go`, often in another thread, and never by leaving a block.
        opening = connect(
            self._url,
            proxy=None,
            compression=None,
            open_timeout=self._connect_s,
            close_timeout=1.0,
            ping_interval=self._ping_s,
            ping_timeout=self._ping_s,
            max_size=MAX_MESSAGE_BYTES,
            logger=_wire,
        )
        return ExitStack().enter_context(opening)


def _close_made(made: Future[ClientConnection]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()
