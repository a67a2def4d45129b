"""Speaks to the service manager that started the process: systemd's `sd_notify(3)`, `Type=notify` and `WatchdogSec=`.

What is said and when is decided by `edge.announcements` and `worker.announcements`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Self

import structlog
from sdnotify import SystemdNotifier

log = structlog.stdlib.get_logger("hairmesh.notify")


class Notifier:
    """The socket. What could not be sent is sent with the next message, and never waited for."""

    def __init__(self, watchdog_s: float | None) -> None:
        """Raises `OSError` when there is no such socket."""
        self.watchdog_s = watchdog_s
        """After so long without a ping the manager ends the process; None where it does not watch."""
        self._notifier = SystemdNotifier(debug=True)  # else it would swallow every error
        self._notifier.socket.settimeout(0)  # a manager that reads nothing must not stop the event loop
        self._unsent: dict[str, str] = {}
        self._told_problem = False

    @classmethod
    def from_environment(cls) -> Self | None:
        """By NOTIFY_SOCKET and WATCHDOG_USEC; None where nobody listens, which is said when somebody should."""
        if not os.environ.get("NOTIFY_SOCKET"):
            return None
        try:
            return cls(_watchdog_s())
        except OSError as error:
            log.warning("notify_socket_unusable", error=type(error).__name__, advice="systemd hears nothing")
            return None

    def say(self, assignments: Mapping[str, str]) -> None:
        """Send them as one message, with what could not be sent before. Nothing is sent where there is nothing."""
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

    def close(self) -> None:
        """Nothing is said any more."""
        self._notifier.socket.close()


def _watchdog_s() -> float | None:
    """Patience of systemd's watchdog; None when it does not watch this process."""
    watched_pid = os.environ.get("WATCHDOG_PID", str(os.getpid()))
    text = os.environ.get("WATCHDOG_USEC", "")
    if not text.isdecimal() or int(text) == 0 or watched_pid != str(os.getpid()):
        return None
    return int(text) / 1e6
