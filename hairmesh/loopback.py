"""Whether what is sent to a host stays on this machine."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """By what is written, IPv6 without brackets: names other than localhost may come to mean another machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
