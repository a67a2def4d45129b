"""The loop: looks at the server, feeds the pure watchdog, carries out what it decides, says so."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

from hairmesh.usage import USAGE_STATUS
from hairmesh.watch import restart
from hairmesh.watch.lines import decision_line, event_line
from hairmesh.watch.target import Target
from worker.health.watchdog.limits import Limits
from worker.health.watchdog.policy import Action, Decision, Watchdog
from worker.health.watchdog.server import Outcome

SAY_AGAIN_S = 60.0
"""A line at least so often, and whenever there is something new to say."""


class Exit(IntEnum):
    """Exit status for scripts."""

    WELL = 0
    SICK = 1
    DEGRADED = 2
    LOCK_HELD = 3
    RESTART_FAILED = 4
    USAGE = USAGE_STATUS


EXITS = {Outcome.WELL: Exit.WELL, Outcome.SICK: Exit.SICK, Outcome.DEGRADED: Exit.DEGRADED}


@dataclass(frozen=True, slots=True)
class Orders:
    """What to do beside looking."""

    once: bool
    """End with the first decision that one more look would not change."""
    as_json: bool
    command: Sequence[str] | None
    """What restarts the server; None: only say so."""
    timeout_s: float
    """How long the command may take, seconds."""
    hidden: frozenset[str]
    """Names of variables that the command does not get."""

    @property
    def acts(self) -> bool:
        """Whether a restart is carried out."""
        return self.command is not None


class Loop:
    """One server, until SIGTERM or, with `once`, until it is known how it is."""

    def __init__(self, target: Target, limits: Limits, orders: Orders) -> None:
        self._target = target
        self._limits = limits
        self._orders = orders
        self._watchdog = Watchdog(limits, canaries=target.canary is not None, begun_s=time.monotonic())
        self._canary: asyncio.Task[None] | None = None
        self._told: tuple[object, ...] = ()
        self._told_s = 0.0

    async def run(self) -> Exit:
        """Watch; the exit status. SIGTERM and SIGINT end it in order."""
        watching = asyncio.create_task(self._watch())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, watching.cancel)
        try:
            return await watching
        except asyncio.CancelledError:
            self._say("ends by a signal")
            return Exit.WELL
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
            await self._drop_canary()
            await self._target.close()

    async def _watch(self) -> Exit:
        due_s = time.monotonic()
        while True:
            if self._canary is not None and self._canary.done():
                self._canary.result()
            decision = self._watchdog.see(await self._target.look())
            done = self._orders.once and decision.finding.conclusive
            self._tell(decision, now=done)
            good = await self._act(decision)
            if done:
                return EXITS[decision.finding.outcome] if good else Exit.RESTART_FAILED
            due_s = max(due_s + self._limits.interval_s, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())

    async def _act(self, decision: Decision) -> bool:
        """Carry out; whether that went well."""
        match decision.action:
            case Action.CANARY:
                self._watchdog.canary_sent(time.monotonic())
                self._canary = asyncio.create_task(self._ask(decision.finding.canaries_wanted))
            case Action.RESTART:
                return await self._restart()
        return True

    async def _ask(self, count: int) -> None:
        assert self._target.canary is not None  # noqa: S101  (the watchdog wants none otherwise)
        result = await self._target.canary(count, self._limits.canary_timeout_s)
        self._watchdog.canary_ended(time.monotonic(), result)

    async def _restart(self) -> bool:
        """Whether it went well. A command once begun is waited for, signal or not: half a restart helps nobody."""
        await self._drop_canary()
        good = True
        if self._orders.command is not None:
            running = asyncio.create_task(
                restart.run(self._orders.command, timeout_s=self._orders.timeout_s, without=self._orders.hidden)
            )
            try:
                result = await asyncio.shield(running)
            except asyncio.CancelledError:
                result = await running
                self._say(result.words, result.output)
                raise
            self._say(result.words, result.output)
            good = result.good
        self._watchdog.restarted(time.monotonic())
        return good

    async def _drop_canary(self) -> None:
        if self._canary is not None:
            self._canary.cancel()
            with suppress(asyncio.CancelledError):
                await self._canary
            self._canary = None

    def _tell(self, decision: Decision, *, now: bool) -> None:
        """Programs are told every look; people what is news: another verdict, outcome or action, or a minute passed."""
        finding = decision.finding
        news = (finding.verdict, finding.outcome, decision.action, bool(decision.hold), bool(finding.why))
        now_s = time.monotonic()
        told = news == self._told and now_s - self._told_s < SAY_AGAIN_S
        if told and not now and not self._orders.as_json:
            return
        self._told, self._told_s = news, now_s
        line = decision_line(decision, self._target.name, as_json=self._orders.as_json, acts=self._orders.acts)
        print(line, flush=True)

    def _say(self, event: str, output: str = "") -> None:
        print(event_line(event, self._target.name, as_json=self._orders.as_json, output=output), flush=True)
