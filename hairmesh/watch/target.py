"""What can be watched, as the loop sees it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import NamedTuple, Protocol

from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Answer, CanaryResult, Look

LOOK_TIMEOUT_S = Limits().look_s


class TargetError(Exception):
    """This cannot be watched as asked. The message says why and names no secret."""


SendCanary = Callable[[str, float], Coroutine[None, None, CanaryResult]]
"""To the engine of this name, or to any one; given up after so many seconds."""


class Place(NamedTuple):
    """What is watched and where: a server, whatever it is called."""

    kind: str
    host: str
    port: int


class Target(Protocol):
    """One server."""

    name: str
    """Kind and address, for log lines."""
    place: Place
    """For the lock."""

    async def look(self, at_s: float) -> Look:
        """Look once, now, which is `at_s`. Whatever goes wrong with the server is in the look, and no exception."""
        ...

    @property
    def canary(self) -> SendCanary | None:
        """Send a smallest request; None where there is no harmless question that the server could be asked."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


async def failed_to_connect(host: str, port: int, at_s: float) -> Look:
    """The look, begun at `at_s`, at a server to which no connection came about: refused, or for another reason."""
    loop = asyncio.get_running_loop()
    problem = f"cannot connect to {host}:{port}"
    try:
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return Look(at_s, Answer.UNREACHABLE, problem=f"{problem}: the name has no address")
    refusals = 0
    for family, kind, protocol, _name, address in addresses:
        with socket.socket(family, kind, protocol) as probe:
            probe.settimeout(0)
            try:
                await asyncio.wait_for(loop.sock_connect(probe, address), LOOK_TIMEOUT_S)
            except ConnectionRefusedError:
                refusals += 1
            except TimeoutError:
                return Look(at_s, Answer.SLOW, problem=problem)
            except OSError:
                continue
    answer = Answer.REFUSED if refusals == len(addresses) else Answer.UNREACHABLE
    return Look(at_s, answer, problem=problem)
