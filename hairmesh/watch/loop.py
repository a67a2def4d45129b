"""The loop: looks at the server, feeds the pure watchdog, carries out what it decides, says so."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    BROKEN = 70
    """Something of our own; nothing is known of the server. As in `sysexits.h`."""


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


class Clock:
    """The monotonic clock, s."""

    def now_s(self) -> float:
        """What it shows."""
        return time.monotonic()

    async def sleep_until(self, moment_s: float) -> None:
        """Return then, or as soon after it as the machine allows."""
        await asyncio.sleep(moment_s - self.now_s())


class Loop:
    """One server, until SIGTERM or, with `once`, until it is known how it is."""

    def __init__(self, target: Target, limits: Limits, orders: Orders, clock: Clock | None = None) -> None:
        self._target = target
        self._limits = limits
        self._orders = orders
        self._clock = clock or Clock()
        self._watchdog = Watchdog(limits, canaries=target.canary is not None, begun_s=self._clock.now_s())
        self._canaries: set[asyncio.Task[None]] = set()
        self._told: tuple[object, ...] = ()
        self._told_s = 0.0

    async def run(self) -> Exit:
        """Watch; the exit status. SIGTERM and SIGINT end it in order; with `once` nothing is known then."""
        watching = asyncio.create_task(self._watch())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, watching.cancel)
        try:
            return await watching
        except asyncio.CancelledError:
            self._say("ends by a signal")
            return Exit.DEGRADED if self._orders.once else Exit.WELL
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
            await self._drop_canaries()

    async def _watch(self) -> Exit:
        clock = self._clock
        due_s = clock.now_s()
        while True:
            for canary in [canary for canary in self._canaries if canary.done()]:
                self._canaries.remove(canary)
                canary.result()
            began_s = clock.now_s()
            look = await self._target.look(began_s)
            decision = self._watchdog.see(replace(look, took_s=clock.now_s() - began_s))
            done = self._orders.once and decision.finding.conclusive
            self._tell(decision, now=done)
            good = await self._act(decision)
            if done:
                return EXITS[decision.finding.outcome] if good else Exit.RESTART_FAILED
            due_s = max(due_s + self._limits.interval_s, clock.now_s())
            await clock.sleep_until(due_s)

    async def _act(self, decision: Decision) -> bool:
        """Carry out; whether that went well."""
        match decision.action:
            case Action.CANARY:
                self._watchdog.canaries_sent(self._clock.now_s(), decision.finding.ask)
                self._canaries |= {asyncio.create_task(self._ask(engine)) for engine in decision.finding.ask}
            case Action.RESTART:
                return await self._restart()
        return True

    async def _ask(self, engine: str) -> None:
        assert self._target.canary is not None  # noqa: S101  (the watchdog wants none otherwise)
        result = await self._target.canary(engine, self._limits.canary_timeout_s)
        self._watchdog.canary_ended(self._clock.now_s(), engine, result)

    async def _restart(self) -> bool:
        """Whether it went well.

        A command once begun is waited for, however many signals: half a restart helps nobody.
        """
        await self._drop_canaries()
        good = True
        if self._orders.command is not None:
            running = asyncio.create_task(
                restart.run(self._orders.command, timeout_s=self._orders.timeout_s, without=self._orders.hidden)
            )
            signalled = None
            while not running.done():
                try:
                    await asyncio.wait([running])
                except asyncio.CancelledError as signal_:
                    signalled = signal_
            result = running.result()
            self._say(result.words, result.output)
            if signalled is not None:
                raise signalled
            good = result.good
        self._watchdog.restarted(self._clock.now_s())
        return good

    async def _drop_canaries(self) -> None:
        for canary in self._canaries:
            canary.cancel()
        if self._canaries:
            await asyncio.wait(self._canaries)
        self._canaries.clear()

    def _tell(self, decision: Decision, *, now: bool) -> None:
        """Programs are told every look; people what is news: another verdict, outcome or action, or a minute passed."""
        finding = decision.finding
        news = (finding.verdict, finding.outcome, decision.action, bool(decision.hold), bool(finding.why))
        now_s = self._clock.now_s()
        told = news == self._told and now_s - self._told_s < SAY_AGAIN_S
        if told and not now and not self._orders.as_json:
            return
        self._told, self._told_s = news, now_s
        line = decision_line(decision, self._target.name, as_json=self._orders.as_json, acts=self._orders.acts)
        print(line, flush=True)

    def _say(self, event: str, output: str = "") -> None:
        print(event_line(event, self._target.name, as_json=self._orders.as_json, output=output), flush=True)
