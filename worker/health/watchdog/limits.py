"""Times and counts that decide what a watchdog concludes and does. One table; `hairmesh watch` sets the first ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Units stand in the names: `_s` seconds."""

    interval_s: float = 10.0
    """Between two looks at a server."""

    look_s: float = 10.0
    """How long a server may take to answer one look; one that takes longer is saturated."""

    grace_s: float = 60.0
    """Work in flight that is still for so long is suspicious: a canary is sent. A second grace with the canary waiting
    and everything still proves the stall. A probe may give an engine more (`Reading.stall_after_s`)."""

    start_grace_s: float = 900.0
    """No restart so soon after any start, whoever started it: loading 19 GB takes minutes, and so does a first request
    that compiles kernels."""

    dead_grace_s: float = 900.0
    """No restart of a server that refuses before so long after its first refusal: its supervisor or a person may be
    starting it, and the port opens only when it has loaded. 0 where nothing else ever starts it."""

    refused_limit: int = 5
    """So many refused connections in a row: nothing listens."""

    canary_max_age_s: float = 300.0
    """An idle server gets a canary when the last sign of life is older."""

    canary_retry_s: float = 60.0
    """Between the end of one canary and the next that asks the same thing."""

    canary_graces: float = 4.0
    """A canary is given up after so many graces: later than the stall that it proves, so that it still waits then."""

    backoff_s: float = 900.0
    backoff_max_s: float = 14_400.0
    """Between two restarts; doubled for each further one up to the maximum."""

    calm_s: float = 21_600.0
    """So long after the last restart the next one counts as the first."""

    @property
    def canary_timeout_s(self) -> float:
        """When a canary is given up."""
        return self.canary_graces * self.grace_s
