"""The last canary of a server and what its answer, or its silence, is worth.

A canary is the smallest real request. Where there are several engines so many go out at once, since a server hands each
to its emptiest engine; together they count as one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import CanaryResult

Counters = Mapping[str, int | None]
"""Of each engine by name."""


class Canary:
    """Pure memory. `possible`: whether there is a harmless question that the server could be asked."""

    def __init__(self, limits: Limits, *, possible: bool) -> None:
        self._limits = limits
        self.possible = possible
        self.result: CanaryResult | None = None
        """Of the last one; None before the first and while it waits for its answer."""
        self._sent_s: float | None = None
        self._ended_s: float | None = None
        self._counters: Counters = {}

    def sent(self, at_s: float, counters: Counters) -> None:
        """It is on its way; `counters` are the last that were read."""
        self.result, self._ended_s = None, None
        self._sent_s, self._counters = at_s, dict(counters)

    def ended(self, at_s: float, result: CanaryResult) -> None:
        """All of one sending have ended; `result` is the worst of them. Nothing when none is on its way."""
        if self.waits:
            self.result, self._ended_s = result, at_s

    @property
    def waits(self) -> bool:
        """Whether one is on its way."""
        return self._sent_s is not None and self._ended_s is None

    @property
    def has_answered(self) -> bool:
        """Whether the last one has ended, however."""
        return self._ended_s is not None

    def may_ask(self, now_s: float) -> bool:
        """Whether another could be sent, if there is a reason."""
        if not self.possible or self.waits:
            return False
        return self._ended_s is None or now_s - self._ended_s >= self._limits.canary_retry_s

    def is_unanswered(self, counters: Counters) -> bool:
        """Whether it is work in flight: without an answer, and not one engine has moved since it was sent."""
        silent = self.waits or self.result is CanaryResult.TIMED_OUT
        return silent and all(self._is_still(name, counter) for name, counter in counters.items())

    def has_asked(self, name: str, counter: int | None, *, alone: bool) -> bool:
        """Whether it asked after the last movement of engine `name` and can still speak for a stall, or does.

        One that passed refutes it when the engine is `alone`; otherwise it only shows where it did not run. An error
        says nothing.
        """
        speaks = self.waits or self.result is CanaryResult.TIMED_OUT
        return self._is_still(name, counter) and (speaks or (self.result is CanaryResult.PASSED and not alone))

    def confirms(self, name: str, counter: int | None, now_s: float, *, alone: bool) -> bool:
        """Whether it shows that engine `name` is stuck: a grace has passed since it was sent, without a step."""
        asked = self.has_asked(name, counter, alone=alone)
        return asked and self._sent_s is not None and now_s - self._sent_s >= self._limits.grace_s

    def words(self, now_s: float, *, since_s: float = -math.inf) -> str:
        """How it stands, for a log; empty when none was sent after `since_s`."""
        if self._sent_s is None or self._sent_s < since_s:
            return ""
        match self.result:
            case None:
                return f"canary unanswered for {now_s - self._sent_s:.0f} s"
            case CanaryResult.PASSED:
                return "canary answered"
            case CanaryResult.TIMED_OUT:
                return "canary never answered"
            case CanaryResult.ERROR:
                return "canary got an error, which proves nothing"

    def _is_still(self, name: str, counter: int | None) -> bool:
        return name in self._counters and counter is not None and self._counters[name] == counter
