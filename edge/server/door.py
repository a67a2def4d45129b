"""The door: connections are let in here, and counted before TLS is agreed on.

The server's own door counts those that speak HTTP. Of HTTPS it hears when the handshake is done, which may be a minute
later or never, and where descriptors are short it turns everybody away without a word.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import cast

import structlog
from typing_extensions import override

from edge.server.crowd import Closed, Crowd

HANDSHAKE_S = 5.0
"""For TLS to be agreed on: from the connection on."""
AT_ONCE = 16
"""Let in before the event loop goes on to something else."""
NOT_NOW_S = 0.1
"""Until another try, where the system has nothing left to let anybody in with."""
MAKE_ROOM = 16
"""Connections that go then: descriptors for who comes, and for the files of others."""
SAY_AGAIN_S = 60.0

log = structlog.get_logger()


class Entering(asyncio.Protocol):
    """A connection until it can speak HTTP: a guest that waits, like others, and goes like them."""

    is_refused = False
    unread_bytes = 0

    def __init__(self, crowd: Crowd, make: Callable[[], asyncio.Protocol]) -> None:
        self._crowd = crowd
        self._make = make
        self._has_to_go = False
        self.task: asyncio.Task[None] | None = None
        """In which it enters."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is in, and another takes over."""
        if self._has_to_go:  # decided in the same round of the loop
            cast(asyncio.Transport, transport).abort()
            return
        self._crowd.left(self)
        connection = self._make()
        cast(asyncio.Transport, transport).set_protocol(connection)
        connection.connection_made(transport)

    def give_way(self) -> None:
        """Be gone at once."""
        self._has_to_go = True
        if self.task is not None:
            self.task.cancel()


class Door:
    """Lets in who comes to `listener`, which listens already. What the server wants of a server of asyncio's."""

    def __init__(
        self,
        listener: socket.socket,
        crowd: Crowd,
        make: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext | None,
    ) -> None:
        """`make`: a protocol for a connection that can speak HTTP. `context`: of HTTPS."""
        listener.settimeout(0.0)
        self._listener = listener
        self._crowd = crowd
        self._make = make
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._entering: set[asyncio.Task[None]] = set()
        self._again: asyncio.TimerHandle | None = None
        self._silent_until_s = 0.0

    def open(self) -> None:
        """From now on."""
        self._again = None
        self._loop.add_reader(self._listener, self._let_in)

    def close(self) -> None:
        """Nobody comes any more; who is entering still gets in."""
        if self._listener.fileno() < 0:
            return
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    async def wait_closed(self) -> None:
        """Let go of who is still entering."""
        for task in self._entering:
            task.cancel()
        if self._entering:
            await asyncio.wait(self._entering)

    def _let_in(self) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # nobody, or gone again
                return
            except OSError as error:
                self._make_room(error)
                return
            entering = Entering(self._crowd, self._make)
            self._crowd.came(entering)
            entering.task = self._loop.create_task(self._enter(entering, accepted))
            self._entering.add(entering.task)
            entering.task.add_done_callback(partial(self._entered, accepted))

    async def _enter(self, entering: Entering, accepted: socket.socket) -> None:
        timeout_s = None if self._context is None else HANDSHAKE_S
        try:
            await self._loop.connect_accepted_socket(
                lambda: entering, accepted, ssl=self._context, ssl_handshake_timeout=timeout_s
            )
        except (ConnectionAbortedError, ssl.SSLError):  # late, or no TLS at all
            self._crowd.closed[Closed.NO_TLS] += 1
        except OSError:  # its client has left meanwhile: nobody is there to be told
            pass
        finally:
            self._crowd.left(entering)

    def _entered(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._entering.discard(task)
        if task.cancelled():  # perhaps in the round in which it came, before it began: nothing else would close it
            accepted.close()

    def _make_room(self, error: OSError) -> None:
        """The system lets nobody in, mostly for want of descriptors: some have to go, and then we look again."""
        now_s = self._loop.time()
        if now_s >= self._silent_until_s:
            self._silent_until_s = now_s + SAY_AGAIN_S
            log.error(
                "connections_not_accepted",
                problem=error.strerror,
                open=len(self._crowd),
                advice="give the process more descriptors (LimitNOFILE), or lower limits.max_connections",
            )
        self._crowd.make_room(MAKE_ROOM)
        self._loop.remove_reader(self._listener)
        self._again = self._loop.call_later(NOT_NOW_S, self.open)
