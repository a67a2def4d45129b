"""Tells systemd (`Type=notify`, `WatchdogSec=`) how the worker is; see `worker.announcements` for what and when."""

from __future__ import annotations

from typing import Self

from hairmesh.notify import Notifier
from worker.announcements import Announcements
from worker.health.report import Report
from worker.thresholds import Thresholds


class SystemdNotify:
    """What is to be said, and to whom."""

    def __init__(self, notifier: Notifier, thresholds: Thresholds) -> None:
        self._notifier = notifier
        self._announcements = Announcements(watchdog_s=notifier.watchdog_s, thresholds=thresholds)

    @classmethod
    def from_environment(cls, thresholds: Thresholds) -> Self | None:
        """None where nobody listens."""
        notifier = Notifier.from_environment()
        return None if notifier is None else cls(notifier, thresholds)

    def beat(self, report: Report, now_s: float) -> None:
        """Say what is due."""
        self._notifier.say(self._announcements.due(report, now_s))

    def stopping(self) -> None:
        """Say that the process begins to end."""
        self._notifier.say(self._announcements.stopping())

    def close(self) -> None:
        """Nothing is said any more."""
        self._notifier.close()
