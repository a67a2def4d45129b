"""Tells systemd (`Type=notify`, `WatchdogSec=`) how the edge is; see `edge.announcements` for what and when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, Self

from edge.announcements import Announcements
from edge.calls import OnlineCounts
from hairmesh.notify import Notifier

BEAT_S = 1.0
"""How often it is looked whether there is anything to say; with a thousand workers a look costs 0.2 ms."""


class Probing(Protocol):
    """A mesh that probes its workers."""

    def online(self) -> OnlineCounts:
        """Who is online."""

    def probes_late_s(self) -> float:
        """By how much the latest probe is late, in s."""


class SystemdNotify:
    """Speaks from `ready` to `close`; everything on the event loop whose life it tells of."""

    def __init__(self, notifier: Notifier, mesh: Probing) -> None:
        self._notifier = notifier
        self._mesh = mesh
        self._announcements = Announcements(watchdog_s=notifier.watchdog_s)
        self._beating: asyncio.Task[None] | None = None

    @classmethod
    def from_environment(cls, mesh: Probing) -> Self | None:
        """None where nobody listens."""
        notifier = Notifier.from_environment()
        return None if notifier is None else cls(notifier, mesh)

    def ready(self) -> None:
        """The port is open."""
        self._notifier.say(self._announcements.ready())
        self._beating = asyncio.create_task(self._beat())

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Inside, the configuration is looked at because somebody asked for it."""
        self._notifier.say(self._announcements.reloading(time.monotonic()))
        yield
        self._notifier.say(self._announcements.ready())

    def stopping(self, requests_running: int) -> None:
        """The process begins to end."""
        self._notifier.say(self._announcements.stopping(requests_running))

    def close(self) -> None:
        """Nothing is said any more."""
        if self._beating is not None:
            self._beating.cancel()
        self._notifier.close()

    async def _beat(self) -> None:
        while True:
            online, late_s = self._mesh.online(), self._mesh.probes_late_s()
            due = self._announcements.due(
                online=online.healthy, total=online.total, probes_late_s=late_s, now_s=time.monotonic()
            )
            self._notifier.say(due)
            await asyncio.sleep(BEAT_S)
