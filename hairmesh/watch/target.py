"""What can be watched, as the loop sees it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Protocol

from worker.health.watchdog.looks import Answer, CanaryResult, Look

LOOK_TIMEOUT_S = 10.0
"""How long a server may take to answer one look, in seconds; one that takes longer is saturated."""


class TargetError(Exception):
    """This cannot be watched as asked. The message says why and names no secret."""


SendCanaries = Callable[[int, float], Coroutine[None, None, CanaryResult]]
"""So many at once, given up after so many seconds; the worst of their results."""


class Target(Protocol):
    """One server."""

    name: str
    """Kind and address, for log lines and for the lock."""

    async def look(self) -> Look:
        """Look once. Whatever goes wrong with the server is in the look, and no exception."""
        ...

    @property
    def canary(self) -> SendCanaries | None:
        """Send smallest requests; None where there is no harmless question that the server could be asked."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


async def failed_to_connect(host: str, port: int) -> Look:
    """The look at a server to which no connection came about: refused, or for another reason."""
    loop = asyncio.get_running_loop()
    problem = f"cannot connect to {host}:{port}"
    try:
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return Look(time.monotonic(), Answer.UNREACHABLE, problem=f"{problem}: the name has no address")
    refusals = 0
    for family, kind, protocol, _name, address in addresses:
        with socket.socket(family, kind, protocol) as probe:
            probe.settimeout(0)
            try:
                await asyncio.wait_for(loop.sock_connect(probe, address), LOOK_TIMEOUT_S)
            except ConnectionRefusedError:
                refusals += 1
            except TimeoutError:
                return Look(time.monotonic(), Answer.SLOW, problem=problem)
            except OSError:
                continue
    answer = Answer.REFUSED if refusals == len(addresses) else Answer.UNREACHABLE
    return Look(time.monotonic(), answer, problem=problem)
