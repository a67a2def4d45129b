"""`/monitor` asked on a fixed schedule, as alerting asks it, whatever became of the last one.

Who waits for one answer before asking again counts a stall of a second once; here it is found by all who would have
come meanwhile. So each answer's time counts from the moment at which it was to be asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hairmesh.stack import LOOPBACK

EVERY_S = 0.05
PATIENCE_S = 60.0
_REQUEST = b"GET /monitor HTTP/1.1\r\nHost: edge\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answers:
    """Of one edge."""

    port: int
    taken_s: list[float] = field(default_factory=list)
    """From the moment of the schedule to the whole answer, or to the end of patience."""
    statuses: set[int] = field(default_factory=set)
    """0 where there was no answer."""

    async def ask(self, at_s: float) -> None:
        """Once, on a connection of its own, at that moment of the monotonic clock."""
        await asyncio.sleep(at_s - time.monotonic())
        try:
            async with asyncio.timeout(PATIENCE_S):
                self.statuses.add(await _status(self.port))
        except (OSError, EOFError, TimeoutError):
            self.statuses.add(0)
        self.taken_s.append(time.monotonic() - at_s)


async def _status(port: int) -> int:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        writer.write(_REQUEST)
        status = int((await reader.readuntil(b"\r\n")).split()[1])
        await reader.read()
    finally:
        writer.close()
    return status


async def ask_for(seconds: float, all_answers: list[Answers], look: Callable[[], None]) -> None:
    """Ask each of them for so long, and wait for the last; `look` is called as often."""
    begun_s = time.monotonic()  # the loop's own clock may tick in milliseconds
    async with asyncio.TaskGroup() as asking:
        for number in range(int(seconds / EVERY_S)):
            at_s = begun_s + number * EVERY_S
            await asyncio.sleep(at_s - time.monotonic())
            look()
            for answers in all_answers:
                asking.create_task(answers.ask(at_s))
