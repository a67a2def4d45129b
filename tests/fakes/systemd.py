"""The service manager's end of `sd_notify(3)`: a datagram socket that hears what a process says."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

EVENT_TIMEOUT_S = 120.0
"""Until the next message: a busy machine is no reason to fail."""


class Systemd:
    """The manager's end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.setblocking(False)

    async def heard(self) -> tuple[float, dict[str, str]]:
        """The next message, and when it came."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(EVENT_TIMEOUT_S):
            text = (await loop.sock_recv(self.socket, 65_536)).decode()
        return loop.time(), dict(line.split("=", 1) for line in text.splitlines())

    async def until(self, name: str) -> dict[str, str]:
        """The first message with that assignment."""
        while True:
            _at_s, said = await self.heard()
            if name in said:
                return said

    async def pings(self) -> AsyncGenerator[float, None]:
        while True:
            at_s, said = await self.heard()
            if "WATCHDOG" in said:
                yield at_s

    async def silence(self, name: str, for_s: float) -> None:
        """Until no message had that assignment for so long."""
        while True:
            try:
                async with asyncio.timeout(for_s):
                    await self.until(name)
            except TimeoutError:
                return
