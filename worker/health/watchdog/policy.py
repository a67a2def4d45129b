"""What to do about a finding: nothing, ask by a canary, or restart. Pure; every moment is an argument.

Only STALLED and DEAD ever restart, and then only when no start may be under way: starts take minutes, and whoever
restarts a server that loads makes them longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from worker.health.verdict import Verdict
from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Answer, CanaryResult, Look
from worker.health.watchdog.server import Finding, Server


class Action(StrEnum):
    """What the shell has to do now."""

    NOTHING = "nothing"
    CANARY = "canary"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Decision:
    """What one look leads to."""

    finding: Finding
    action: Action
    hold: str
    """Why a sick server is not restarted now; empty when it is, or when it is not sick."""


@dataclass(frozen=True, slots=True)
class _Process:
    """Who says when it started."""

    names: frozenset[tuple[str, float | None]]
    """Boot id and start time in its own words, which are compared and never calculated with."""
    started_s: float
    """On the clock of the reader."""
    seen_s: float
    """Last."""


def _process(last: _Process | None, look: Look, age_s: float) -> _Process:
    """The process that was read. Its age counts once, when it is first met: clocks are set and differ.

    Whoever was not there yet when another was seen started after that; nobody starts in the future.
    """
    names = frozenset((reading.boot_id, reading.start_time_s) for reading in look.engines.values())
    if last is not None and last.names == names:
        return replace(last, seen_s=look.at_s)
    seen_s = -math.inf if last is None else last.seen_s
    return _Process(names, max(look.at_s - max(age_s, 0.0), seen_s), look.at_s)


class Watchdog:
    """Follows one server. The shell tells what it saw and did; `begun_s` is when it began to look."""

    def __init__(self, limits: Limits, *, canaries: bool, begun_s: float) -> None:
        self._limits = limits
        self._server = Server(limits, canaries=canaries)
        self._started_s = begun_s
        """When the server may have started last; until it says so, when we began to look."""
        self._process: _Process | None = None
        self._refused_s: float | None = None
        """When the present refusals began."""
        self._restarts = 0
        self._restarted_s: float | None = None

    def see(self, look: Look) -> Decision:
        """Judge one look and decide."""
        self._note_starts(look)
        finding = self._server.see(look)
        if finding.verdict is Verdict.RESTARTED and look.age_s is None:
            self._started_s = look.at_s
        if finding.verdict in {Verdict.STALLED, Verdict.DEAD}:
            hold = self._hold(finding.verdict, look.at_s)
            return Decision(finding, Action.NOTHING if hold else Action.RESTART, hold)
        return Decision(finding, Action.CANARY if finding.ask else Action.NOTHING, "")

    def canaries_sent(self, at_s: float, names: Iterable[str]) -> None:
        """Those that were wanted are on their way."""
        self._server.canaries_sent(at_s, names)

    def canary_ended(self, at_s: float, name: str, result: CanaryResult) -> None:
        """The one for `name` has ended."""
        self._server.canary_ended(at_s, name, result)

    def restarted(self, at_s: float) -> None:
        """The restart was carried out, or tried, or said in a dry run. A new process has its grace from now on."""
        calm = self._restarted_s is not None and at_s - self._restarted_s > self._limits.calm_s
        self._restarts = 1 if calm else self._restarts + 1
        self._restarted_s = self._started_s = at_s
        self._refused_s = None
        self._server.forget()

    def _note_starts(self, look: Look) -> None:
        if look.answer is Answer.REFUSED:
            if self._refused_s is None:
                self._refused_s = look.at_s
            return
        if look.answer is Answer.READ and look.age_s is not None:
            self._process = _process(self._process, look, look.age_s)
            self._started_s = self._process.started_s
        elif self._refused_s is not None:
            self._started_s = look.at_s  # whatever listens now was started meanwhile
        self._refused_s = None

    def _hold(self, verdict: Verdict, now_s: float) -> str:
        """Why not now; empty when nothing speaks against it."""
        limits = self._limits
        free_s = {"it may still be starting": self._started_s + limits.start_grace_s}
        if verdict is Verdict.DEAD and self._refused_s is not None:
            free_s["someone may be starting it"] = self._refused_s + limits.dead_grace_s
        if self._restarted_s is not None:
            backoff_s = min(limits.backoff_s * 2 ** (self._restarts - 1), limits.backoff_max_s)
            free_s[f"restarted {self._restarts} times already"] = self._restarted_s + backoff_s
        reason = max(free_s, key=lambda name: free_s[name])
        left_s = free_s[reason] - now_s
        return f"{reason}, no restart for {left_s:.0f} s more" if left_s > 0 else ""
