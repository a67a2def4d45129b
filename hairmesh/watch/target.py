"""What can be watched, as the loop sees it."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Answer, CanaryResult, Look

LOOK_TIMEOUT_S = Limits().look_s
_OWN_ADDRESSES: Mapping[int, str] = MappingProxyType({socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"})
"""What every machine has that has the family."""


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


def place(kind: str, host: str, port: int) -> Place:
    """The place of this name; raises `TargetError` where there can be none."""
    if not 0 < port < 2**16:  # the resolver would take the rest of a division by that
        raise TargetError(f"the target's port is 1 to {2**16 - 1}")
    try:
        host.encode("idna")  # as the resolver does
    except UnicodeError:
        raise TargetError("the target's host is no name: a part is empty, or longer than 63 characters") from None
    return Place(kind, host, port)


async def failed_to_connect(host: str, port: int, at_s: float) -> Look:
    """The look, begun at `at_s`, at a server to which no connection came about: refused, or for another reason."""
    problem = f"cannot connect to {host}:{port}"
    try:
        async with asyncio.timeout(LOOK_TIMEOUT_S):
            answer = Answer.REFUSED if await _is_refused(host, port) else Answer.UNREACHABLE
    except TimeoutError:
        return Look(at_s, Answer.SLOW, problem=problem)
    except OSError:
        return Look(at_s, Answer.UNREACHABLE, problem=f"{problem}: the name has no address")
    return Look(at_s, answer, problem=problem)


async def _is_refused(host: str, port: int) -> bool:
    """Whether every address of the name refuses, those of a family left out that nobody on this machine can ask.

    Raises `TimeoutError`, and another `OSError` for a name without address.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [address for address in found if _is_spoken(address[0])]
    refusals = 0
    for family, kind, protocol, _name, address in addresses:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.settimeout(0)
                await loop.sock_connect(probe, address)
        except ConnectionRefusedError:
            refusals += 1
        except TimeoutError:
            raise
        except OSError:  # no route, no descriptor left: says nothing of the server
            continue
    return 0 < refusals == len(addresses)


def _is_spoken(family: int) -> bool:
    """Whether this machine has the family: names have addresses of IPv6 on machines that are without it, too."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((_OWN_ADDRESSES[family], 0))
    except OSError as error:
        # Unknown to the kernel, or switched off. A lost route is neither: somebody else may have one.
        return error.errno not in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}
    return True
