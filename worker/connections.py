"""A caller's connection, which gRPC tells by its peer's address alone: shut, it ends every RPC on it.

A servicer has no way to reset its stream. Cancelling its task ends the task alone: the core keeps the answer, and its
memory, until the caller takes it or is gone.
"""

from __future__ import annotations

import os
import socket
import stat
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from urllib.parse import unquote

_DESCRIPTORS = Path("/dev/fd")
"""Of this process, on Linux and macOS."""


def address_of(peer: str) -> str:
    """Who calls, without the port, which is another one each time; `peer` as gRPC writes it: `ipv4:10.0.0.5:41234`."""
    return unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]") or peer


def shut(peer: str) -> bool:
    """Shut the connection of `peer`, as gRPC writes it; False where there is none."""
    _, _, port = peer.rpartition(":")
    if not port.isdecimal():
        return False
    wanted = _plain(address_of(peer)), int(port)
    return any(_shut_if(int(each.name), wanted) for each in _DESCRIPTORS.iterdir())


def _shut_if(descriptor: int, wanted: tuple[IPv4Address | IPv6Address, int]) -> bool:
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        # A copy: what is asked for its peer is what is shut, whatever becomes of the number meanwhile.
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            if copy.family not in {socket.AF_INET, socket.AF_INET6}:
                return False
            host, port, *_ = copy.getpeername()
            if (_plain(host), port) != wanted:
                return False
            copy.shutdown(socket.SHUT_RDWR)
            return True
    except OSError:  # it listens, or is closed by now
        return False


def _plain(host: str) -> IPv4Address | IPv6Address:
    """Without its zone; an IPv4 address on a port for both kinds as what it is."""
    address = ip_address(host.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
