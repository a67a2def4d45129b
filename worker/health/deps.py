"""Servers this worker relies on, each as a pure state with its evidence. Who probes them brings results and time.

Saturated is not dead: a server that refuses or answers wrongly is down after two such probes in a row, one that lets
probes run out of time only after three. Two good ones in a row bring it back, and so does the very first good one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from worker.health.checks import DEPENDENCY_PREFIX, Cause, CheckResult, CheckState
from worker.health.freshness import Freshness
from worker.thresholds import Thresholds


class DependencyKind(StrEnum):
    """How a server is asked, and what counts as good."""

    TCP = "tcp"
    """It accepts a connection."""
    HTTP = "http"
    """`GET` of the target answers below 500."""
    COMFYUI = "comfyui"
    """`GET /queue` answers a JSON object."""
    VLLM = "vllm"
    """`GET /v1/models` answers a list with a model in it."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of one probe."""

    at_s: float
    """When it ended, monotonic clock."""
    duration_ms: float
    problem: str = ""
    """Short word for what was wrong, such as `ECONNREFUSED`, `http_502`; empty when all was well."""
    timed_out: bool = False
    """Whether the problem is only that no answer came in time."""


class DependencyCheck:
    """Whether one server can be relied on."""

    def __init__(
        self,
        name: str,
        *,
        required: bool,
        checked: bool,
        interval_s: float,
        started_s: float,
        thresholds: Thresholds,
    ) -> None:
        self.name = name
        self._required = required
        self._checked = checked
        self._thresholds = thresholds
        # Two results can be an interval and a timeout apart without any fault.
        self._stale_after_s = max(3 * interval_s, 2 * thresholds.dep_timeout_s)
        self._freshness = Freshness(started_s=started_s, late_after_s=thresholds.late_beat_s)
        self._last: ProbeResult | None = None
        self._state = CheckState.UNKNOWN if checked else CheckState.OFF
        self._problem = ""
        self._bad_in_a_row = 0
        self._wrong_in_a_row = 0
        """Those of them that did not only run out of time."""
        self._good_in_a_row = 0

    def observe(self, result: ProbeResult) -> None:
        """One probe ended."""
        self._last = result
        if not result.problem:
            self._bad_in_a_row = self._wrong_in_a_row = 0
            self._good_in_a_row += 1
            if self._state is not CheckState.FAILING or self._good_in_a_row >= self._thresholds.dep_goods_to_return:
                self._state, self._problem = CheckState.PASSING, ""
            return
        self._good_in_a_row = 0
        self._bad_in_a_row += 1
        self._wrong_in_a_row += not result.timed_out
        t = self._thresholds
        if self._wrong_in_a_row >= t.dep_failures_to_leave or self._bad_in_a_row >= t.dep_timeouts_to_leave:
            self._state = CheckState.FAILING
        if self._state is CheckState.FAILING:
            self._problem = result.problem

    def update(self, now_s: float) -> None:
        """Called every beat: evidence that is too old counts as failed."""
        self._freshness.beat(now_s)
        at_s = self._last.at_s if self._last else None
        if self._checked and self._freshness.age_s(at_s, now_s) > self._stale_after_s:
            self._state, self._problem, self._good_in_a_row = CheckState.FAILING, "probe_hangs", 0

    def result(self) -> CheckResult:
        """State with hysteresis, and the last probe behind it."""
        last = self._last
        evidence = {"answer_ms": last.duration_ms, "bad_in_a_row": float(self._bad_in_a_row)} if last else {}
        return CheckResult(
            DEPENDENCY_PREFIX + self.name,
            self._state,
            Cause.DEPENDENCY if self._required else None,
            self._problem,
            evidence,
            last.at_s if last else None,
        )
