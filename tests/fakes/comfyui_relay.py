"""A stretch of network in front of a server, which can break in the ways networks break."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

_CHUNK = 65536


class Relay:
    """Forwards TCP connections to `target_port` on loopback."""

    def __init__(self, target_port: int) -> None:
        self.cut_on = b""
        """A connection on which this is sent is cut in that moment; what was sent before has gone through."""
        self.swallow_answer_to = b""
        """… goes through, and is cut when the answer comes."""
        self._target_port = target_port
        self._frozen: set[socket.socket] = set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        """Forwarding."""
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Drop everything."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for pair in self._pairs:
            _cut(pair)

    def freeze(self) -> None:
        """On what is connected now nothing goes through any more, in either direction, and nobody is told."""
        self._frozen |= {end for pair in self._pairs for end in pair}

    def _accept(self) -> None:
        while True:
            try:
                near, _address = self._listening.accept()
            except OSError:  # closed
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target_port))
            except OSError:
                near.close()
                continue
            pair = (near, far)
            self._pairs.append(pair)
            swallowed = threading.Event()
            threading.Thread(target=self._send, args=(pair, swallowed), daemon=True).start()
            threading.Thread(target=self._answer, args=(pair, swallowed), daemon=True).start()

    def _send(self, pair: tuple[socket.socket, socket.socket], swallowed: threading.Event) -> None:
        near, far = pair
        with suppress(OSError):
            while data := near.recv(_CHUNK):
                if self.swallow_answer_to and self.swallow_answer_to in data:
                    swallowed.set()
                if self.cut_on and self.cut_on in data:
                    break
                if near not in self._frozen:
                    far.sendall(data)
        if near not in self._frozen:
            _cut(pair)

    def _answer(self, pair: tuple[socket.socket, socket.socket], swallowed: threading.Event) -> None:
        near, far = pair
        with suppress(OSError):
            while data := far.recv(_CHUNK):
                if swallowed.is_set():
                    break
                if far not in self._frozen:
                    near.sendall(data)
        if far not in self._frozen:
            _cut(pair)


def _cut(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
