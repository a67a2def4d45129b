"""The checks of a worker, each as a pure state with its evidence. Who feeds them brings readings and time.

`required` checks take the worker out of rotation when they fail; the others only cost a capability.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from worker.health.freshness import Freshness
from worker.health.verdict import Judgement, Verdict
from worker.thresholds import Thresholds

DEPENDENCY_PREFIX = "dep/"
CAPABILITY_PREFIX = "capability/"


class CheckState(StrEnum):
    """As in `hair.worker.v1.CheckState`."""

    UNKNOWN = "unknown"
    PASSING = "passing"
    FAILING = "failing"
    OFF = "off"


class Cause(StrEnum):
    """Typed cause for the edge's pool; the gravest first."""

    ACCELERATOR = "accelerator"
    STALLED = "stalled"
    MODELS = "models"
    DISK = "disk"
    DEPENDENCY = "dependency"
    STARTING = "starting"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check says now."""

    name: str
    state: CheckState
    cause: Cause | None = None
    """Cause that a failure has; None for a check that never takes the worker out."""
    reason: str = ""
    evidence: Mapping[str, float] = field(default_factory=dict)
    """Measured values by name, the unit at its end."""
    at_s: float | None = None
    """When the evidence was gathered, monotonic clock; None before the first."""

    @property
    def required(self) -> bool:
        """Whether a failure takes the worker out of rotation."""
        return self.cause is not None


def dep_down(checks: Iterable[CheckResult]) -> str:
    """One reason that names every failing dependency among `checks`; empty when none fails."""
    names = [
        check.name.removeprefix(DEPENDENCY_PREFIX)
        for check in checks
        if check.name.startswith(DEPENDENCY_PREFIX) and check.state is CheckState.FAILING
    ]
    return f"dep_down:{','.join(names)}" if names else ""


@dataclass(frozen=True, slots=True)
class DiskReading:
    """The last answers of the two disk threads. Empty errors mean that all went well."""

    free_gib: float | None = None
    """Least free space of the watched paths, GiB; None before the first answer."""
    free_error: str = ""
    free_at_s: float | None = None
    write_error: str = ""
    write_ms: float | None = None
    write_at_s: float | None = None
    free_gib_by_path: Mapping[str, float] = field(default_factory=dict)
    """Free space of each path that answered, GiB."""


class DiskCheck:
    """Free bytes with two watermarks, and a real write. Goes out at once, comes back after a calm time."""

    def __init__(self, *, min_free_gib: float, resume_free_gib: float, started_s: float, thresholds: Thresholds):
        self._min_free_gib = min_free_gib
        self._resume_free_gib = resume_free_gib
        self._thresholds = thresholds
        self._out_reason = ""
        self._ran_short = False
        """Whether space fell below the lower mark since the check went out: only then must it reach the upper one."""
        self._bad_at_s = started_s
        self._freshness = Freshness(started_s=started_s, late_after_s=thresholds.late_beat_s)
        self._reading = DiskReading()

    def update(self, reading: DiskReading, now_s: float) -> None:
        """Weigh `reading`. Called every beat."""
        self._freshness.beat(now_s)
        self._reading = reading
        self._ran_short |= self._is_below(self._min_free_gib)
        if reason := self._what_is_wrong(reading, now_s):
            self._out_reason = reason
            self._bad_at_s = now_s
        elif self._out_reason and now_s - self._bad_at_s >= self._thresholds.disk_out_min_s:
            self._out_reason, self._ran_short = "", False

    def result(self) -> CheckResult:
        """State with hysteresis, and the values behind it: the least free space, and that of each path."""
        reading = self._reading
        by_path = {f"{path}:free_gib": free_gib for path, free_gib in reading.free_gib_by_path.items()}
        values = {"free_gib": reading.free_gib, **by_path, "write_ms": reading.write_ms}
        evidence = {name: value for name, value in values.items() if value is not None}
        if self._min_free_gib == 0:
            state = CheckState.OFF
        elif self._out_reason:
            state = CheckState.FAILING
        elif reading.free_gib is None:
            state = CheckState.UNKNOWN
        else:
            state = CheckState.PASSING
        return CheckResult("disk", state, Cause.DISK, self._out_reason, evidence, reading.free_at_s)

    def _what_is_wrong(self, reading: DiskReading, now_s: float) -> str:
        """The first of these that holds; empty when all is well or the check is off."""
        if self._min_free_gib == 0:
            return ""
        t = self._thresholds
        coming_back = self._ran_short and not self._is_below(self._min_free_gib)
        limit_gib = self._resume_free_gib if coming_back else self._min_free_gib
        findings = (
            ("disk_does_not_answer", self._is_stale(reading.free_at_s, t.disk_free_period_s, now_s)),
            ("disk_write_hangs", self._is_stale(reading.write_at_s, t.disk_write_period_s, now_s)),
            (f"disk_unreadable:{reading.free_error}", bool(reading.free_error)),
            (f"disk_write_failed:{reading.write_error}", bool(reading.write_error)),
            (f"disk_free_below_{limit_gib:.1f}g", self._is_below(limit_gib)),
        )
        return next((reason for reason, holds in findings if holds), "")

    def _is_below(self, limit_gib: float) -> bool:
        return self._reading.free_gib is not None and self._reading.free_gib < limit_gib

    def _is_stale(self, at_s: float | None, interval_s: float, now_s: float) -> bool:
        return self._freshness.age_s(at_s, now_s) > max(3 * interval_s, self._thresholds.disk_stale_floor_s)


class ModelsCheck:
    """Model files, the canary's pinned answer, and the accelerator behind both."""

    def __init__(self) -> None:
        self._state = CheckState.UNKNOWN
        self._reason = ""
        self._device = ""
        self._accelerator_reason = ""
        self._last_good_s: float | None = None
        self._canary_ms: float | None = None

    @property
    def warm(self) -> bool:
        """Whether a canary has ever given the known answer in this process."""
        return self._last_good_s is not None

    @property
    def last_good_s(self) -> float | None:
        """When the last good canary ended, monotonic clock."""
        return self._last_good_s

    @property
    def good(self) -> bool:
        """Whether models and accelerator may be used now."""
        return self._state is CheckState.PASSING and not self._accelerator_reason

    @property
    def accelerator_lost(self) -> bool:
        """Whether the accelerator is gone until there is a new process."""
        return bool(self._accelerator_reason)

    def loaded(self, device: str) -> None:
        """The models lie on `device`; the canary has not spoken yet."""
        self._device = device

    def load_failed(self, what: str) -> None:
        """They could not be loaded; `what` names the file and what to do."""
        self._state = CheckState.FAILING
        self._reason = f"models:{what}"

    def canary_passed(self, now_s: float, duration_ms: float) -> None:
        """The canary gave the known answer."""
        self._state = CheckState.PASSING
        self._reason = ""
        self._last_good_s = now_s
        self._canary_ms = duration_ms

    def canary_failed(self, what: str) -> bool:
        """The canary gave another answer or none. True when that is news."""
        known = self._reason
        self._state = CheckState.FAILING
        self._reason = f"models:{what}"
        return self._reason != known

    def accelerator_failed(self, what: str) -> None:
        """An error that does not heal within a process: latched."""
        self._accelerator_reason = f"accelerator:{what}"

    def results(self) -> tuple[CheckResult, CheckResult]:
        """`models` and `accelerator`."""
        evidence = {} if self._canary_ms is None else {"canary_ms": self._canary_ms}
        if self._accelerator_reason:
            accelerator = CheckState.FAILING
        elif self._device == "cpu":
            accelerator = CheckState.OFF
        else:
            accelerator = CheckState.PASSING if self.warm else CheckState.UNKNOWN
        return (
            CheckResult("models", self._state, Cause.MODELS, self._reason, evidence, self._last_good_s),
            CheckResult("accelerator", accelerator, Cause.ACCELERATOR, self._accelerator_reason, {}, self._last_good_s),
        )


def progress_result(judgement: Judgement | None) -> CheckResult:
    """The `progress` check from the last verdict on the compute thread."""
    if judgement is None:
        return CheckResult("progress", CheckState.UNKNOWN, Cause.STALLED)
    reading = judgement.memory.reading
    stalled = judgement.verdict is Verdict.STALLED
    return CheckResult(
        "progress",
        CheckState.FAILING if stalled else CheckState.PASSING,
        Cause.STALLED,
        f"stalled:{reading.stage}" if stalled else "",
        {"still_s": judgement.still_s, "step_counter": float(reading.counter or 0)},
        reading.at_s,
    )
