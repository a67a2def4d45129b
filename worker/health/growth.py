"""`capability/growth`: whether growth calls can succeed. Pure. Costs the capability, never the worker."""

from __future__ import annotations

from collections.abc import Iterable

from worker.health.checks import CAPABILITY_PREFIX, CheckResult, CheckState, dep_down
from worker.thresholds import Thresholds

GROWTH = "growth"


class GrowthCheck:
    """Follows the worker's dependencies, and what its own growth calls met."""

    def __init__(self, *, configured: bool, thresholds: Thresholds) -> None:
        self._configured = configured
        self._memory_s = thresholds.growth_failure_memory_s
        self._patience_s = thresholds.growth_queue_patience_s
        self._reason = ""
        self._failure = ""
        self._failed_at_s: float | None = None
        self._waits_for = ""
        self._waits_since_s = 0.0

    def failed(self, reason: str, now_s: float) -> None:
        """A growth call went without its picture, for `reason`. Believed until one succeeds or some time passed."""
        self._failure, self._failed_at_s = reason, now_s

    def succeeded(self) -> None:
        """A growth call had its picture: whatever was wrong is over."""
        self._failed_at_s = None

    def waits(self, server: str, now_s: float) -> None:
        """A call waits in that server's queue; empty: none does."""
        if server != self._waits_for:
            self._waits_for, self._waits_since_s = server, now_s

    def update(self, dependencies: Iterable[CheckResult], now_s: float) -> None:
        """Weigh it anew; called every beat."""
        failed_lately = self._failed_at_s is not None and now_s - self._failed_at_s < self._memory_s
        waits_long = bool(self._waits_for) and now_s - self._waits_since_s >= self._patience_s
        findings = (
            ("backend_none", not self._configured),
            (down := dep_down(dependencies), bool(down)),
            (f"failed:{self._failure}", failed_lately),
            (f"waiting_for:{self._waits_for}", waits_long),
        )
        self._reason = next((reason for reason, holds in findings if holds), "")

    def result(self) -> CheckResult:
        """As a check of no cause."""
        state = CheckState.FAILING if self._reason else CheckState.PASSING
        return CheckResult(CAPABILITY_PREFIX + GROWTH, state, None, self._reason, {}, self._failed_at_s)
