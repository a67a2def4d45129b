"""What systemd is told, and when. Pure: every event carries `now_s`; `edge.notify` does the sending.

The watchdog's ping is tied to progress: whoever asks does so on the event loop, so that a stuck loop ends the pings,
and they end as well when the pool no longer probes its workers, whatever else the edge still answers. Neither workers
that are all gone nor a full picture store end them: no restart of the edge mends those.
"""

from __future__ import annotations

PROBES_LATE_MAX_S = 10.0
"""A probe that has neither begun nor ended so long after its time will not: the pool stands still. Busy machines are
late by a second or two."""


class Announcements:
    """Remembers what was said. Answers are assignments of `sd_notify(3)` by name, to be sent as one message."""

    def __init__(self, *, watchdog_s: float | None) -> None:
        """`watchdog_s`: after so long without a ping systemd ends the process; None: it does not watch."""
        # Sent at a third, so that at half of it one has gone out even when a beat comes late.
        self._ping_every_s = None if watchdog_s is None else watchdog_s / 3
        self._stopping = False
        self._status = ""
        self._pinged_s = -float("inf")

    def ready(self) -> dict[str, str]:
        """It serves: the port is open. After `reloading`: it goes on by what was read."""
        return {"READY": "1"}

    def reloading(self, now_s: float) -> dict[str, str]:
        """The configuration is looked at because somebody asked for it. `now_s`: of the monotonic clock."""
        return {"RELOADING": "1", "MONOTONIC_USEC": str(round(now_s * 1e6))}

    def stopping(self, requests_running: int) -> dict[str, str]:
        """The process begins to end; it finishes so many requests first. From now on the loop alone counts."""
        self._stopping = True
        self._status = f"finishes {requests_running} requests and leaves"
        return {"STOPPING": "1", "STATUS": self._status}

    def due(self, *, online: int, total: int, probes_late_s: float, now_s: float) -> dict[str, str]:
        """What is to be said on this beat; often nothing. So many workers of `total` are online; `probes_late_s`: how
        late the latest probe is.
        """
        said: dict[str, str] = {}
        stuck = probes_late_s > PROBES_LATE_MAX_S and not self._stopping
        if self._ping_every_s is not None and not stuck and now_s - self._pinged_s >= self._ping_every_s:
            self._pinged_s = now_s
            said["WATCHDOG"] = "1"
        status = "does not probe its workers" if stuck else f"serves: {online} of {total} workers online"
        if status != self._status and not self._stopping:
            self._status = said["STATUS"] = status
        return said
