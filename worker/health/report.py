"""What the checks mean together: overall state, reasons, cause, and the status of every health name. Pure.

Names of the health service: `""` and `hair.analysis.v1.AnalyzeService` (takes calls now), `liveness` (restarting would
not help), `capability/growth` (growth calls can succeed), and each check alone: `disk`, `models`, `accelerator`,
`progress`, `dep/<name>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hairmesh.wire import ANALYZE_SERVICE
from worker.health.checks import CAPABILITY_PREFIX, DEPENDENCY_PREFIX, Cause, CheckResult, CheckState, dep_down

LIVENESS = "liveness"
OVERALL = ""
DRAINING = "draining"
STARTING = "starting"

MEASURE = "measure"

_GOOD = {CheckState.PASSING, CheckState.OFF}
_NOT_HELD_BACK_BY_START = ("disk", DEPENDENCY_PREFIX)
"""Beginnings of the names of checks that speak for themselves while models load."""


class ServingState(StrEnum):
    """As in `hair.worker.v1.ServingState`."""

    STARTING = "starting"
    SERVING = "serving"
    NOT_SERVING = "not_serving"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class Report:
    """The worker's health at one moment."""

    state: ServingState
    reasons: tuple[str, ...]
    """Why it does not serve; empty when serving."""
    cause: Cause | None
    """The gravest cause of a failing check, or STARTING; None when only draining keeps it out, or nothing does."""
    live: bool
    """Whether restarting the process would not help."""
    capabilities: tuple[str, ...]
    """What calls can succeed in now, such as `measure` and `growth`; none while it takes no calls."""
    checks: tuple[CheckResult, ...]
    why_not: Mapping[str, str]
    """Every health name, with the reason why it is NOT_SERVING; empty text for those that are SERVING."""

    @property
    def lacks(self) -> Mapping[str, str]:
        """Capabilities that a check of their own denies, each with its reason."""
        return {
            check.name.removeprefix(CAPABILITY_PREFIX): check.reason
            for check in self.checks
            if check.name.startswith(CAPABILITY_PREFIX) and check.state is CheckState.FAILING
        }


def report(checks: Sequence[CheckResult], *, warm: bool, draining: bool) -> Report:
    """Weigh all checks together.

    `warm`: the canary has given the known answer at least once in this process.
    """
    failing = [check for check in checks if check.required and check.state is CheckState.FAILING]
    undecided = [check for check in checks if check.required and check.state is CheckState.UNKNOWN]
    reasons = [check.reason for check in failing if check.cause is not Cause.DEPENDENCY]
    if down := dep_down(failing):
        reasons.append(down)
    causes = [check.cause for check in failing if check.cause]
    if not warm or undecided:
        causes.append(Cause.STARTING)
        if not any(cause in {Cause.MODELS, Cause.ACCELERATOR} for cause in causes):
            reasons.append(STARTING)
    if draining:
        reasons.insert(0, DRAINING)

    cause = min(causes, key=list(Cause).index) if causes else None
    if draining:
        state = ServingState.DRAINING
    elif cause is Cause.STARTING:
        state = ServingState.STARTING
    else:
        state = ServingState.NOT_SERVING if causes else ServingState.SERVING

    dead_for_good = {Cause.STALLED, Cause.ACCELERATOR}
    fatal = [check.reason for check in failing if check.cause in dead_for_good]
    why_not = {OVERALL: ",".join(reasons), ANALYZE_SERVICE: ",".join(reasons), LIVENESS: ",".join(fatal)}
    for check in checks:
        why_not[check.name] = _why_not(check, warm=warm)
    capabilities = () if causes else (MEASURE, *_capabilities(checks))
    return Report(state, tuple(reasons), cause, not fatal, capabilities, tuple(checks), why_not)


def _capabilities(checks: Sequence[CheckResult]) -> list[str]:
    return [
        check.name.removeprefix(CAPABILITY_PREFIX)
        for check in checks
        if check.name.startswith(CAPABILITY_PREFIX) and check.state in _GOOD
    ]


def _why_not(check: CheckResult, *, warm: bool) -> str:
    if check.state not in _GOOD and check.reason:
        return check.reason
    if check.state is CheckState.UNKNOWN or (not warm and not check.name.startswith(_NOT_HELD_BACK_BY_START)):
        return STARTING
    return ""


def one_line(text: str, characters: int) -> str:
    """`text` in printable ASCII, cut at so many: metadata carries nothing else, and a file name may hold anything."""
    ascii_text = text.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(letter if letter.isprintable() else " " for letter in ascii_text)[:characters]
