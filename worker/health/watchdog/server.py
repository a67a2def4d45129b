"""What looks at a server prove. Engine by engine by `verdict.judge`, together by the gravest of them.

counters move                       BUSY, and nothing is sent
work in flight, still for a grace   a canary is sent; until it has spoken BUSY, or UNKNOWN where the counter is weak
the same after a second grace, the
canary waiting in it all that time  STALLED
the canary passed                   BUSY: the gauges were stale, as its own step shows. UNKNOWN of one of several
                                    engines that shows no step: another one may have answered
the canary got an error, or waits,
perhaps behind another engine's work  UNKNOWN: proves neither
in a dependency's queue             WAITING: that server's own counters tell
nothing in flight                   IDLE; a canary when the last sign of life is old, itself work in flight
no counters                         UNKNOWN: a canary tells whether it works, its silence proves nothing
slow                                SATURATED
refused                             UNKNOWN, from the fifth time in a row DEAD
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from worker.health.verdict import Judgement, Memory, Reading, Verdict, judge
from worker.health.watchdog.canary import ANYONE, Canaries
from worker.health.watchdog.limits import Limits
from worker.health.watchdog.looks import Answer, CanaryResult, Look


class Outcome(StrEnum):
    """What a verdict means to a script."""

    WELL = "well"
    DEGRADED = "degraded"
    """Not known to work, or working without being readable."""
    SICK = "sick"
    """Provably stuck or gone."""


OUTCOMES: Mapping[Verdict, Outcome] = {
    Verdict.BUSY: Outcome.WELL,
    Verdict.IDLE: Outcome.WELL,
    Verdict.WAITING: Outcome.WELL,
    Verdict.RESTARTED: Outcome.WELL,
    Verdict.UNKNOWN: Outcome.DEGRADED,
    Verdict.SATURATED: Outcome.DEGRADED,
    Verdict.STALLED: Outcome.SICK,
    Verdict.DEAD: Outcome.SICK,
}

GRAVEST_FIRST = (
    Verdict.STALLED,
    Verdict.RESTARTED,
    Verdict.UNKNOWN,
    Verdict.BUSY,
    Verdict.WAITING,
    Verdict.IDLE,
)
"""Of several engines the server gets the first of these that one has."""

CONDEMNED_TWICE = 2
"""Looks in a row in which a server says of itself that only a restart helps."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look proves, together with those before."""

    verdict: Verdict
    outcome: Outcome
    conclusive: bool
    """Whether one more look would not tell more: movement seen, a stall proven, a canary heard."""
    why: str
    """In words for a log; empty when the numbers say all."""
    ask: tuple[str, ...] = ()
    """Send a canary now to each engine of these names, `ANYONE` to none in particular; to what moves, none."""
    still_s: float = 0.0
    running: int | None = None
    waiting: int | None = None
    steps: int | None = None
    """None where they cannot be seen."""
    tokens_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Engine:
    """One engine in one look."""

    name: str
    reading: Reading
    judgement: Judgement
    verdict: Verdict
    suspicious: bool
    """Work in flight and still for more than a grace."""
    lost: bool
    """One of several, it shows no step although it was asked: perhaps another one got the question."""

    @property
    def works(self) -> bool:
        """Whether there is anything in flight or waiting."""
        return self.reading.in_flight > 0 or self.reading.waiting > 0


class Server:
    """Judge of one server, from the first look to its replacement (`forget`)."""

    def __init__(self, limits: Limits, *, canaries: bool) -> None:
        self._limits = limits
        self._possible = canaries
        self.forget()

    def forget(self) -> None:
        """Another process will answer: nothing is compared across."""
        self._canaries = Canaries(self._limits, possible=self._possible)
        self._memories: dict[str, Memory] = {}
        self._last: Look | None = None
        self._alive_s: float | None = None
        self._refusals = 0
        self._condemnations = 0
        self._processes: set[tuple[str, float]] = set()

    def canaries_sent(self, at_s: float, names: Iterable[str]) -> None:
        """Those that were wanted are on their way."""
        self._canaries.sent(at_s, names, {name: memory.reading.counter for name, memory in self._memories.items()})

    def canary_ended(self, at_s: float, name: str, result: CanaryResult) -> None:
        """The one for `name` has ended."""
        self._canaries.ended(at_s, name, result)
        if result is CanaryResult.PASSED:
            self._alive_s = at_s

    def see(self, look: Look) -> Finding:
        """Judge one more look."""
        finding = self._weigh(look)
        # Whoever waited for an answer, or got none that could be read, did not sleep. No look takes longer than it may.
        limits = self._limits
        due_s = look.at_s + max(limits.interval_s, min(look.took_s, limits.look_s))
        self._memories = {name: replace(memory, due_s=due_s) for name, memory in self._memories.items()}
        return finding

    def _weigh(self, look: Look) -> Finding:
        self._refusals = self._refusals + 1 if look.answer is Answer.REFUSED else 0
        match look.answer:
            case Answer.READ:
                return self._read(look)
            case Answer.UNREADABLE:
                return self._unreadable(look)
            case Answer.LISTED:
                return Finding(Verdict.UNKNOWN, Outcome.WELL, conclusive=True, why=look.problem)
            case Answer.SLOW:
                return _finding(Verdict.SATURATED, look.problem)
            case Answer.UNREACHABLE:
                return _finding(Verdict.UNKNOWN, look.problem)
            case Answer.REFUSED:
                dead = self._refusals >= self._limits.refused_limit
                why = f"connection refused, {self._refusals} in a row"
                return _finding(Verdict.DEAD if dead else Verdict.UNKNOWN, why, conclusive=dead)

    def _unreadable(self, look: Look) -> Finding:
        self._canaries.see(nobody="")
        why = _joined(look.problem, self._canaries.anyone().words(look.at_s))
        conclusive = self._canaries.have_answered or not self._possible
        finding = _finding(Verdict.UNKNOWN, why, conclusive=conclusive)
        doubted = [] if self._is_alive(look.at_s) else [ANYONE]
        return replace(finding, ask=self._canaries.to_ask(doubted, look.at_s))

    def _read(self, look: Look) -> Finding:
        self._canaries.see(nobody=look.nobody)
        engines = [self._engine(name, reading, look) for name, reading in look.engines.items()]
        self._memories = {engine.name: engine.judgement.memory for engine in engines}
        if any(engine.judgement.moved for engine in engines):
            self._alive_s = look.at_s
        self._condemnations = self._condemnations + 1 if look.condemned else 0

        verdicts = {engine.verdict for engine in engines}
        verdict = next(verdict for verdict in GRAVEST_FIRST if verdict in verdicts)
        if self._condemnations >= CONDEMNED_TWICE:
            verdict = Verdict.STALLED
        if verdict is Verdict.RESTARTED:
            self._canaries.forget_names()
        finding = Finding(
            verdict=verdict,
            outcome=self._outcome(verdict, look),
            conclusive=self._is_conclusive(verdict, engines, look.at_s),
            why=self._why(verdict, engines, look),
            ask=self._canaries.to_ask(self._doubted(verdict, engines, look.at_s), look.at_s),
            still_s=max((engine.judgement.still_s for engine in engines if engine.verdict is verdict), default=0.0),
            running=sum(reading.in_flight for reading in look.engines.values()),
            waiting=sum(reading.waiting for reading in look.engines.values()),
            steps=_sum(reading.counter for reading in look.engines.values()) if look.counts else None,
            tokens_per_s=None if verdict is Verdict.RESTARTED else _tokens_per_s(self._last, look),
        )
        self._last = look
        return finding

    def _engine(self, name: str, reading: Reading, look: Look) -> _Engine:
        counters = {other: read.counter for other, read in look.engines.items()}
        canary = self._canaries.of(name)
        asked = self._canaries.are_work_in(name, counters)
        if asked:
            reading = replace(reading, in_flight=max(reading.in_flight, 1))
        judgement = judge(self._memories.get(name), reading, period_s=self._limits.interval_s)
        guarded = judgement.verdict in {Verdict.BUSY, Verdict.STALLED}
        suspicious = guarded and judgement.still_s > self._limits.grace_s
        verdict = judgement.verdict
        if verdict is Verdict.STALLED and not (
            judgement.still_s >= 2 * reading.stall_after_s
            and (not self._possible or self._canaries.confirm(name, counters, look.at_s))
        ):
            verdict = Verdict.BUSY
        lost = len(counters) > 1 and canary.is_still(name, reading.counter) and not asked
        if verdict is Verdict.BUSY and suspicious and (name in look.weak or canary.has_failed or lost):
            verdict = Verdict.UNKNOWN
        return _Engine(name, reading, judgement, verdict, suspicious, lost)

    def _is_alive(self, now_s: float) -> bool:
        """Whether the last sign of life is young enough to send nothing to an idle server."""
        return self._alive_s is not None and now_s - self._alive_s <= self._limits.canary_max_age_s

    def _outcome(self, verdict: Verdict, look: Look) -> Outcome:
        doubtful = verdict is Verdict.IDLE and self._canaries.have_failed and not self._is_alive(look.at_s)
        if OUTCOMES[verdict] is Outcome.WELL and (doubtful or not look.serves):
            return Outcome.DEGRADED
        return OUTCOMES[verdict]

    def _doubted(self, verdict: Verdict, engines: list[_Engine], now_s: float) -> list[str]:
        """Engines about which only a canary would tell more, and none asks."""
        if verdict is Verdict.STALLED:
            return []
        nothing_tells = verdict is Verdict.IDLE or any(engine.reading.counter is None for engine in engines)
        if nothing_tells and not self._is_alive(now_s):
            return [engine.name for engine in engines]
        return [engine.name for engine in engines if engine.suspicious and not self._is_asked(engine)]

    def _is_answered(self, engine: _Engine) -> bool:
        return engine.suspicious and self._canaries.of(engine.name).result is CanaryResult.PASSED

    def _is_asked(self, engine: _Engine) -> bool:
        canary = self._canaries.of(engine.name)
        return canary.is_silent and canary.is_still(engine.name, engine.reading.counter)

    def _is_conclusive(self, verdict: Verdict, engines: list[_Engine], now_s: float) -> bool:
        match verdict:
            case Verdict.BUSY:
                return all(engine.judgement.moved or self._is_answered(engine) for engine in engines if engine.works)
            case Verdict.IDLE | Verdict.UNKNOWN:
                if not self._possible or self._canaries.have_answered:
                    return True
                return self._is_alive(now_s) and not self._canaries.wait
            case Verdict.RESTARTED:
                return False
            case _:
                return True

    def _why(self, verdict: Verdict, engines: list[_Engine], look: Look) -> str:
        """What the numbers do not say."""
        words = [look.condemned, look.problem]
        for engine in engines:
            if engine.suspicious:
                which = f"engine {engine.name}" if engine.name else "work in flight"
                words.append(f"{which} still for {engine.judgement.still_s:.0f} s")
                # One that found it idle was answered before. One that waits in it tells, though a look came late since.
                begun_s = look.at_s - engine.judgement.still_s - 2 * self._limits.interval_s
                asked_s = -math.inf if self._is_asked(engine) else begun_s
                said = self._canaries.of(engine.name).words(look.at_s, since_s=asked_s)
                words.append(f"{said}, perhaps by another engine" if engine.lost else said)
            elif engine.verdict is Verdict.WAITING:
                words.append(f"in the queue of {engine.reading.waiting_for}")
            elif engine.verdict is Verdict.UNKNOWN or (verdict is Verdict.IDLE and self._canaries.have_failed):
                words.append(self._canaries.of(engine.name).words(look.at_s))
        if self._has_met_before(verdict, engines):
            words.append("several servers answer in turn: behind a proxy use --proxy and watch the backends one by one")
        return _joined(*words)

    def _has_met_before(self, verdict: Verdict, engines: list[_Engine]) -> bool:
        """Whether this process was here before the last one, as only several servers behind one address can be."""
        present = {
            (engine.reading.boot_id, engine.reading.start_time_s)
            for engine in engines
            if engine.reading.start_time_s is not None
        }
        known = verdict is Verdict.RESTARTED and bool(present & self._processes)
        self._processes |= present
        return known


def _finding(verdict: Verdict, why: str, *, conclusive: bool = True) -> Finding:
    return Finding(verdict, OUTCOMES[verdict], conclusive, why)


def _joined(*words: str) -> str:
    return "; ".join(dict.fromkeys(word for word in words if word))


def _sum(counters: Iterable[int | None]) -> int | None:
    known = [counter for counter in counters if counter is not None]
    return sum(known) if known else None


def _tokens_per_s(last: Look | None, look: Look) -> float | None:
    if last is None or last.tokens is None or look.tokens is None or look.tokens < last.tokens:
        return None
    return (look.tokens - last.tokens) / (look.at_s - last.at_s)
