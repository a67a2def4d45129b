"""What systemd is told, and when. Pure: every event carries `now_s`; `worker.notify` does the sending.

READY only when the worker serves for the first time. While it starts and while it stops: more time. The watchdog's ping
is tied to progress, not to readiness: a full disk goes on pinging, a compute thread that is stuck does not, whatever
other threads answer. Who calls this does so on the event loop, so that a stuck loop ends the pings too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from worker.health.checks import Cause, CheckState
from worker.health.report import Report, ServingState, one_line
from worker.thresholds import Thresholds

_WORDS: Mapping[ServingState, str] = MappingProxyType(
    {
        ServingState.STARTING: "loads models",
        ServingState.SERVING: "serves",
        ServingState.NOT_SERVING: "takes no calls",
        ServingState.DRAINING: "finishes and leaves",
    }
)
_STATUS_CHARACTERS = 512


class Announcements:
    """Remembers what was said. Answers are assignments of `sd_notify(3)` by name, to be sent as one message."""

    def __init__(self, *, watchdog_s: float | None, thresholds: Thresholds) -> None:
        """`watchdog_s`: after so long without a ping systemd ends the process; None: it does not watch."""
        # Sent at a third, so that at half of it one has gone out even when a beat comes late.
        self._ping_every_s = None if watchdog_s is None else watchdog_s / 3
        self._thresholds = thresholds
        self._ready = False
        self._stopping = False
        self._status = ""
        self._pinged_s = -float("inf")
        self._extended_s = -float("inf")

    def due(self, report: Report, now_s: float) -> dict[str, str]:
        """What is to be said on this beat; often nothing."""
        said: dict[str, str] = {}
        if not self._ready and report.state is ServingState.SERVING:
            self._ready = True
            said["READY"] = "1"
        stalled = any(check.cause is Cause.STALLED and check.state is CheckState.FAILING for check in report.checks)
        if not stalled:
            said |= self._signs_of_life(now_s)
        status = _in_words(report)
        if status != self._status:
            self._status = said["STATUS"] = status
        return said

    def stopping(self) -> dict[str, str]:
        """The process begins to end. Said once; `due` goes on asking for time until it has ended."""
        if self._stopping:
            return {}
        self._stopping = True
        self._extended_s = -float("inf")
        return {"STOPPING": "1"}

    def _signs_of_life(self, now_s: float) -> dict[str, str]:
        said = {}
        t = self._thresholds
        if (self._stopping or not self._ready) and now_s - self._extended_s >= t.notify_extend_every_s:
            self._extended_s = now_s
            said["EXTEND_TIMEOUT_USEC"] = str(round(t.notify_extend_s * 1e6))
        if self._ping_every_s is not None and now_s - self._pinged_s >= self._ping_every_s:
            self._pinged_s = now_s
            said["WATCHDOG"] = "1"
        return said


def _in_words(report: Report) -> str:
    """One line: a line break would begin another assignment."""
    words = ": ".join(part for part in (_WORDS[report.state], ", ".join(report.reasons)) if part)
    return one_line(words, _STATUS_CHARACTERS)
