"""Who sends a request, where proxies stand in between."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
MAX_HOPS = 32
"""More proxies than stand before anybody; so many are read, from the right."""


def client_address(peer: str, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """The address of the client: `peer`'s own, or where that is a trusted proxy, the nearest one that is none.

    `forwarded_for` are the values of `X-Forwarded-For`. Each proxy appends whom it saw, so it is read from the right;
    what stands left of the first address that is not trusted may be invented.
    """
    if not trusted or (address := _parsed(peer)) is None:
        return peer
    hops = ",".join(forwarded_for).rsplit(",", MAX_HOPS)[-MAX_HOPS:]
    while hops and _is_in(address, trusted):
        before = _parsed(hops.pop())
        if before is None:  # no header, or a proxy that does not say: then it is the last one we know of
            break
        address = before
    return str(address)


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _parsed(text: str) -> Address | None:
    """An address as it stands in the header, with or without a port; None for anything else."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
