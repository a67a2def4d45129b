"""Tells systemd (`Type=notify`, `WatchdogSec=`) how the worker is; see `worker.announcements` for what and when."""

from __future__ import annotations

import os
from typing import Self

import structlog
from sdnotify import SystemdNotifier

from worker.announcements import Announcements
from worker.health.report import Report
from worker.thresholds import Thresholds

log = structlog.stdlib.get_logger("worker.notify")


class SystemdNotify:
    """The socket. What could not be sent is sent with the next message, and never waited for."""

    def __init__(self, announcements: Announcements) -> None:
        """Raises `OSError` when there is no such socket."""
        self._announcements = announcements
        self._notifier = SystemdNotifier(debug=True)  # else it would swallow every error
        self._notifier.socket.settimeout(0)  # a manager that reads nothing must not stop the event loop
        self._unsent: dict[str, str] = {}
        self._told_problem = False

    @classmethod
    def from_environment(cls, thresholds: Thresholds) -> Self | None:
        """By NOTIFY_SOCKET and WATCHDOG_USEC; None where nobody listens, which is said when somebody should."""
        if not os.environ.get("NOTIFY_SOCKET"):
            return None
        try:
            return cls(Announcements(watchdog_s=_watchdog_s(), thresholds=thresholds))
        except OSError as error:
            log.warning("notify_socket_unusable", error=type(error).__name__, advice="systemd hears nothing")
            return None

    def beat(self, report: Report, now_s: float) -> None:
        """Say what is due."""
        self._say(self._announcements.due(report, now_s))

    def stopping(self) -> None:
        """Say that the process begins to end."""
        self._say(self._announcements.stopping())

    def close(self) -> None:
        """Nothing is said any more."""
        self._notifier.socket.close()

    def _say(self, assignments: dict[str, str]) -> None:
        self._unsent |= assignments
        if not self._unsent:
            return
        try:
            self._notifier.notify("\n".join(f"{name}={value}" for name, value in self._unsent.items()))
        except OSError as error:
            if not self._told_problem:
                log.warning("notify_failed", error=type(error).__name__, advice="tried again with the next message")
            self._told_problem = True
            self._unsent.pop("WATCHDOG", None)  # a ping is worth nothing later
        else:
            self._unsent.clear()
            self._told_problem = False


def _watchdog_s() -> float | None:
    """Patience of systemd's watchdog; None when it does not watch this process."""
    watched_pid = os.environ.get("WATCHDOG_PID", str(os.getpid()))
    text = os.environ.get("WATCHDOG_USEC", "")
    if not text.isdecimal() or int(text) == 0 or watched_pid != str(os.getpid()):
        return None
    return int(text) / 1e6
