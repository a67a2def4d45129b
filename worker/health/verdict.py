"""Does it move? A pure function of readings: no clock, no I/O.

A check never uses what it guards: work in flight moves a monotonic counter, and the verdict compares readings of that
counter. Nothing is sent to what moves. The same function serves for this worker's own compute thread and for each
engine of any other server that can be read this way (`worker.health.watchdog`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What the readings prove."""

    BUSY = "busy"
    """Work in flight or waiting, and the counter moved, or has not been still for too long."""
    IDLE = "idle"
    """Nothing in flight."""
    STALLED = "stalled"
    """Work in flight or waiting, the counter still for longer than the stage allows, seen in two readings."""
    WAITING = "waiting"
    """Waiting in the queue of a dependency: that server's own counters judge."""
    RESTARTED = "restarted"
    """Another process answers: new baseline, nothing compared across processes."""
    UNKNOWN = "unknown"
    """Counters are missing: the canary decides."""
    SATURATED = "saturated"
    """Slow to answer, as the busiest server is: never a proof of anything. Only of a server asked over the network."""
    DEAD = "dead"
    """Refused connections so many times in a row that nothing listens. Only of a server asked over the network."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read at one moment."""

    at_s: float
    """Monotonic clock of the reader, when it asked."""
    boot_id: str
    """Name of the process that was read; empty where it has none."""
    start_time_s: float | None
    """Start of the process that was read, in seconds since the epoch; None where it does not say. Then a counter that
    falls is the only sign of another process."""
    counter: int | None
    """Monotonic progress counter; None when it could not be read."""
    in_flight: int
    waiting: int
    stage: str
    stall_after_s: float
    """How long the present stage may be still."""
    waiting_for: str = ""
    """Name of the dependency in whose queue the work waits, if it does."""
    signs: tuple[str | float, ...] = ()
    """What else only work changes, such as the fill of a cache. Another value is movement, the same says nothing."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the next reading is compared with."""

    reading: Reading
    still_since_s: float
    """When the counter was first seen at its present value, or since when stillness counts."""
    over_limit: bool
    """Whether this reading found the counter still for too long."""
    excused: bool
    """Whether this stillness has begun anew once because a reading came late."""
    due_s: float
    """When the next reading is due. Who asked in vain meanwhile, or had to wait for an answer, was awake, and moves
    it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one reading, and what to remember for the next."""

    verdict: Verdict
    still_s: float
    """How long the counter has provably been still; 0 when nothing is in flight."""
    moved: bool
    """Whether two readings of one process prove movement."""
    canary_wanted: bool
    """Whether only a canary can tell more: idle, or counters missing."""
    memory: Memory


def judge(before: Memory | None, reading: Reading, *, period_s: float) -> Judgement:
    """Judge `reading`; readings are asked for every `period_s`.

    One that is asked for more than half a period after it was due (suspended machine) starts the stillness anew. Of the
    same stillness that is believed once more only of a sleep longer than the stage may be still: who is late by less
    again and again is not suspended but slow, and would never see a stall. His readings count as if they were on time.
    """
    last = before.reading if before else None
    restarted = last is not None and _other_process(last, reading)
    late_s = reading.at_s - before.due_s if before is not None else 0.0
    late = late_s > period_s / 2
    working = reading.in_flight > 0 or reading.waiting > 0
    changed = last is not None and (reading.counter, reading.signs) != (last.counter, last.signs)
    # Time spent idle, or in a dependency's queue, is not stillness of the work that follows.
    was_working = last is not None and (last.in_flight > 0 or last.waiting > 0) and not last.waiting_for
    slept = late and before is not None and (not before.excused or late_s > reading.stall_after_s)
    other = restarted or changed or not (working and was_working)
    excused = not other and before is not None and (slept or before.excused)
    fresh = other or slept
    still_since_s = reading.at_s if fresh or before is None else before.still_since_s + (late_s if late else 0.0)
    still_s = reading.at_s - still_since_s
    guarded = working and reading.counter is not None and not reading.waiting_for
    over_limit = guarded and still_s > reading.stall_after_s

    if restarted:
        verdict = Verdict.RESTARTED
    elif reading.counter is None:
        verdict = Verdict.UNKNOWN
    elif not working:
        verdict = Verdict.IDLE
    elif reading.waiting_for:
        verdict = Verdict.WAITING
    elif over_limit and before is not None and before.over_limit:
        verdict = Verdict.STALLED
    else:
        verdict = Verdict.BUSY
    return Judgement(
        verdict=verdict,
        still_s=still_s,
        moved=changed and not restarted and last is not None and None not in {last.counter, reading.counter},
        canary_wanted=verdict in {Verdict.IDLE, Verdict.UNKNOWN},
        memory=Memory(reading, still_since_s, over_limit, excused, due_s=reading.at_s + period_s),
    )


def _other_process(last: Reading, reading: Reading) -> bool:
    """Whether the two readings come from different processes: another boot id or start time, or a counter that fell."""
    started_s = (reading.start_time_s, last.start_time_s)
    if reading.boot_id != last.boot_id or (None not in started_s and started_s[0] != started_s[1]):
        return True
    return last.counter is not None and reading.counter is not None and reading.counter < last.counter
