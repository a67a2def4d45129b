"""Canaries and what their answers, or their silence, are worth.

A canary is the smallest real request. Of several engines each gets its own, asked for by name. A server that does not
heed names hands it to whichever engine has the least work, so that a silent one may wait anywhere, and an answered one
says nothing of the engine it was meant for. Whether names are heeded shows in a canary for an engine that there cannot
be: it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import CanaryResult

Counters = Mapping[str, int | None]
"""Of each engine by name."""
ANYONE = ""
"""Who is asked where nobody can be asked by name, or where there is only one."""


class Canary:
    """The last one that asked one engine, or anyone. Pure memory."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.result: CanaryResult | None = None
        """None before the first and while it waits for its answer."""
        self._sent_s: float | None = None
        self._ended_s: float | None = None
        self._counters: Counters = {}

    def sent(self, at_s: float, counters: Counters) -> None:
        """It is on its way; `counters` are the last that were read."""
        self.result, self._ended_s = None, None
        self._sent_s, self._counters = at_s, dict(counters)

    def ended(self, at_s: float, result: CanaryResult) -> None:
        """Nothing when none is on its way."""
        if self.waits:
            self.result, self._ended_s = result, at_s

    @property
    def waits(self) -> bool:
        """Whether one is on its way."""
        return self._sent_s is not None and self._ended_s is None

    @property
    def is_silent(self) -> bool:
        """Whether one was sent and has not been answered, waited for or given up."""
        return self.waits or self.result is CanaryResult.TIMED_OUT

    @property
    def has_failed(self) -> bool:
        """Whether it got something else than an answer, which proves nothing."""
        return self.result in {CanaryResult.ERROR, CanaryResult.REFUSED}

    def may_ask(self, now_s: float) -> bool:
        """Whether another could be sent, if there is a reason."""
        return not self.waits and (self._ended_s is None or now_s - self._ended_s >= self._limits.canary_retry_s)

    def is_still(self, name: str, counter: int | None) -> bool:
        """Whether engine `name` has not moved since it was sent."""
        return name in self._counters and counter is not None and self._counters[name] == counter

    def waited_s(self, now_s: float) -> float:
        """Since it was sent."""
        return 0.0 if self._sent_s is None else now_s - self._sent_s

    def words(self, now_s: float, *, since_s: float = -math.inf) -> str:
        """How it stands, for a log; empty when none was sent after `since_s`."""
        if self._sent_s is None or self._sent_s < since_s:
            return ""
        match self.result:
            case None:
                return f"canary unanswered for {self.waited_s(now_s):.0f} s"
            case CanaryResult.PASSED:
                return "canary answered"
            case CanaryResult.TIMED_OUT:
                return "canary never answered"
            case CanaryResult.ERROR | CanaryResult.REFUSED:
                return "canary got an error, which proves nothing"


class Canaries:
    """All of one server. `possible`: whether there is a harmless question that it could be asked."""

    def __init__(self, limits: Limits, *, possible: bool) -> None:
        self._limits = limits
        self.possible = possible
        self._by_name: dict[str, Canary] = {}
        self._nobody = ""
        self._names_are_heeded = False

    def see(self, *, nobody: str) -> None:
        """`Look.nobody` of the present look."""
        self._nobody = nobody

    def forget_names(self) -> None:
        """Another process answers: perhaps of a version that does not heed names."""
        self._names_are_heeded = False

    def sent(self, at_s: float, names: Iterable[str], counters: Counters) -> None:
        """They are on their way to `names`; `counters` are the last that were read."""
        for name in names:
            self._by_name.setdefault(name, Canary(self._limits)).sent(at_s, counters)

    def ended(self, at_s: float, name: str, result: CanaryResult) -> None:
        """That for `name` has ended. Nothing when none is on its way."""
        if name in self._by_name:
            self._by_name[name].ended(at_s, result)
        if name and name == self._nobody and result is CanaryResult.REFUSED:
            self._names_are_heeded = True

    def of(self, engine: str) -> Canary:
        """The one that asked `engine`, by name or with all others."""
        return self._by_name.get(self._asked_as(engine)) or Canary(self._limits)

    def anyone(self) -> Canary:
        """The one that asked nobody in particular."""
        return self._by_name.get(ANYONE) or Canary(self._limits)

    @property
    def wait(self) -> bool:
        """Whether any is on its way."""
        return any(canary.waits for canary in self._by_name.values())

    @property
    def have_answered(self) -> bool:
        """Whether any were sent and all have ended, however."""
        return bool(self._by_name) and not self.wait

    @property
    def have_failed(self) -> bool:
        """Whether one that could have been answered got an error."""
        return any(canary.has_failed for name, canary in self._by_name.items() if not name or name != self._nobody)

    def to_ask(self, engines: Iterable[str], now_s: float) -> tuple[str, ...]:
        """Names for which canaries could be sent to find out about `engines`."""
        if not self.possible:
            return ()
        names = sorted({self._asked_as(engine) for engine in engines})
        wanted = [name for name in names if self._may_ask(name, now_s)]
        if wanted and self._nobody and not self._names_are_heeded and self._may_ask(self._nobody, now_s):
            wanted.append(self._nobody)
        return tuple(wanted)

    def are_work_in(self, engine: str, counters: Counters) -> bool:
        """Whether a silent one must be in `engine`, which has not moved since it was sent.

        Of several engines, only when the server heeds names or when no other engine has moved either: else it may wait
        its turn there.
        """
        canary = self.of(engine)
        others = () if self._names_are_heeded else counters
        return canary.is_silent and all(canary.is_still(name, counters[name]) for name in (engine, *others))

    def confirm(self, engine: str, counters: Counters, now_s: float) -> bool:
        """Whether one shows that `engine` is stuck: silent in it for a grace. An answer never does, nor an error."""
        return self.are_work_in(engine, counters) and self.of(engine).waited_s(now_s) >= self._limits.grace_s

    def _asked_as(self, engine: str) -> str:
        return engine if self._nobody else ANYONE

    def _may_ask(self, name: str, now_s: float) -> bool:
        return name not in self._by_name or self._by_name[name].may_ask(now_s)
