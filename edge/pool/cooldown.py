"""How long an ejected worker stays out.

Nothing is added up in advance: the end is computed from what happened and from the configuration of now, so that a
change of the configuration holds for cooldowns that run.
"""

from __future__ import annotations

import math

from edge.pool import config as fixed
from edge.pool.config import HealthCheckConfig


class Cooldown:
    """The last ejection of one worker, and how many of late make the next one longer. Times in s."""

    def __init__(self) -> None:
        self.doublings = 0
        """That the next one gets."""
        self.short = False
        """Whatever caused it is shared by many: it lasts `BRAKE_COOLDOWN_S` at most."""
        self.began_s = -math.inf
        self._doublings = 0
        self._chance = 0.0
        self._counted = False
        """Whether the last ejection made the next cooldown longer."""
        self.pardoned = False
        """The reason for the last ejection has gone."""
        self._failed_s = -math.inf
        """When a call begun before last failed."""
        self._good_calls = 0

    def until_s(self, health: HealthCheckConfig) -> float:
        """When it ends. With `cooldown_seconds: 0`, the emergency switch, at once."""
        shortest_s = health.cooldown_seconds
        if shortest_s == 0:
            return self.began_s
        jittered_s = shortest_s * 2**self._doublings * (1 + fixed.COOLDOWN_JITTER * self._chance)
        lasts_s = 0.0 if self.pardoned else min(jittered_s, health.cooldown_max_seconds)
        if self.short:
            lasts_s, shortest_s = min(lasts_s, fixed.BRAKE_COOLDOWN_S), min(shortest_s, fixed.BRAKE_COOLDOWN_S)
        return max(self.began_s + lasts_s, self._failed_s + shortest_s)

    def begin(self, now_s: float, health: HealthCheckConfig, chance: float, *, short: bool) -> None:
        """The worker is ejected. `chance` in [0, 1) is the jitter. A short one makes no later one longer."""
        self.began_s, self._doublings, self._chance = now_s, self.doublings, chance
        self._failed_s, self.pardoned, self._good_calls = -math.inf, False, 0
        self.short = short
        promised_s = health.cooldown_seconds * 2**self.doublings
        self._counted = 0 < promised_s < health.cooldown_max_seconds and not short
        self.doublings += self._counted

    def lengthen(self, now_s: float) -> None:
        """A call begun before has failed as well: at least one `cooldown_seconds` from now."""
        self._failed_s = now_s

    def uncount(self) -> None:
        """The last ejection was not its fault: it makes no later one longer."""
        self.doublings -= self._counted
        self._counted = False

    def pardon(self) -> None:
        """Nor is there a reason to wait."""
        self.uncount()
        self.pardoned, self._failed_s = True, -math.inf

    def call_good(self) -> None:
        """A call was answered: enough of them take one doubling off."""
        if self.doublings == 0:
            return
        self._good_calls += 1
        if self._good_calls >= fixed.DECAY_GOOD_CALLS:
            self._good_calls = 0
            self.doublings -= 1
            self._counted = False
