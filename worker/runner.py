"""Runs calls in the slot, one at a time, and decides whose fault a failure is.

An occupation is a task of its own: it lives as long as the compute thread works for it, whatever becomes of the RPC.
When it ends, all that the worker learned from the call has been weighed: the canary has spoken where it had to, before
the answer leaves and the slot is given back.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

import structlog

from hairmesh.wire import WorkerReason
from vision.errors import CancelledCallError, PhotoError
from worker import refusals
from worker.doubt import Doubt, canary_overdue
from worker.engine import Engine, canary_failure, is_accelerator_error
from worker.health.checks import ModelsCheck
from worker.progress import JobProgress, StageTime, stage_ms
from worker.refusals import CANCELLED, Refusal
from worker.service_times import ServiceTimes
from worker.slot import CallIdentity, Occupation, Slot, SlotState
from worker.thresholds import Thresholds

T = TypeVar("T")

log = structlog.stdlib.get_logger("worker.runner")


class End(StrEnum):
    """How the compute thread's part of a call ended."""

    OK = "ok"
    REFUSED = "refused"
    """The photo is at fault."""
    FAILED = "failed"
    """A stage raised: the input's fault or the worker's, as the reason says."""
    GIVEN_UP = "given_up"
    """Nobody waited any more; a stage saw the flag."""


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """The value a call was made for."""

    value: T


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """What came of a call."""

    end: End
    outcome: Answered[T] | Refusal
    stages: Sequence[StageTime] = ()
    """Those it was in, in order."""

    def answer(self) -> T:
        """The value; raises the `Refusal` when there is none."""
        if isinstance(self.outcome, Refusal):
            raise self.outcome
        return self.outcome.value


class Running(Generic[T]):
    """A call whose compute thread works. Await `result()` as often as you like; only the thread ends it."""

    def __init__(self, task: asyncio.Task[Ended[T]], occupation: Occupation, give_up: Callable[[], None]) -> None:
        self._task = task
        self._give_up = give_up
        self.occupation = occupation

    async def result(self) -> Ended[T]:
        """How it ended. Cancelling the one who waits does not touch the thread."""
        return await asyncio.shield(self._task)

    def when_ended(self, call: Callable[[], None]) -> None:
        """`call` once the slot is given back, whatever became of the call."""
        self._task.add_done_callback(lambda _task: call())

    def give_up(self) -> None:
        """Nobody waits any more: the slot is ABANDONED until the thread sees the flag, or ends by itself."""
        if not self._task.done():
            self._give_up()


class Runner:
    """Owns the slot; everything here runs on the event loop."""

    def __init__(
        self,
        engine: Engine,
        models: ModelsCheck,
        *,
        thresholds: Thresholds,
        canary_max_age_s: float,
        clock: Callable[[], float],
        on_change: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._models = models
        self._thresholds = thresholds
        self._canary_max_age_s = canary_max_age_s
        self._clock = clock
        self._on_change = on_change
        self._doubt = Doubt(thresholds)
        self._suspected = False
        self._free = asyncio.Event()
        self._free.set()
        self._tasks: set[asyncio.Task[object]] = set()
        self.slot = Slot()
        self.service_times = ServiceTimes(thresholds.service_time_window_s)

    def busy_for_s(self) -> float:
        """How long the call in the slot will probably still take, by measured service times."""
        occupation = self.slot.occupation
        if occupation is None:
            return 0.0
        now_s = self._clock()
        age_s = now_s - occupation.since_s
        medians = self.service_times.medians_s(now_s)
        method = occupation.call.method
        expected_s = medians.get(method) or self._thresholds.default_growth_times_s.get(
            method, self._thresholds.default_service_time_s
        )
        overdue_s = age_s * self._thresholds.overdue_retry_share
        return max(expected_s - age_s, overdue_s, self._thresholds.min_retry_s)

    async def wait_free(self) -> None:
        """Until no compute thread works for a call."""
        await self._free.wait()

    def suspect(self) -> None:
        """Something in the running call broke that no photo should break: the canary speaks before it is answered."""
        self._suspected = True

    def start(self, call: CallIdentity, data: bytes, work: Callable[[JobProgress], Awaitable[T]]) -> Running[T]:
        """Take the slot, which must be free, and let `work` run. `data` is the input, to tell inputs apart."""
        occupation = self.slot.occupy(call, self._clock())
        self._free.clear()
        progress = self._engine.new_progress()
        task = asyncio.create_task(self._occupy(occupation, data, work, progress))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._on_change()

        def give_up() -> None:
            progress.cancel()
            if self.slot.state is SlotState.BUSY and self.slot.epoch == occupation.epoch:
                self.slot.abandon(occupation.epoch)
                self._on_change()

        return Running(task, occupation, give_up)

    async def check_canary(self) -> bool:
        """Ask the canary and remember what it said. True when models and accelerator may be used."""
        began_s = self._clock()
        try:
            await self._engine.canary()
        except Exception as error:  # whatever it is, the models cannot be trusted now
            if is_accelerator_error(error):
                self._models.accelerator_failed(type(error).__name__)
                log.exception("accelerator_lost", advice="restart this process; nothing else brings it back")
            elif self._models.canary_failed(canary_failure(error)):  # asked again every few seconds, told once
                log.exception("canary_failed")
        else:
            now_s = self._clock()
            self._models.canary_passed(now_s, (now_s - began_s) * 1000.0)
        self._on_change()
        return self._models.good

    async def _occupy(
        self, occupation: Occupation, data: bytes, work: Callable[[JobProgress], Awaitable[T]], progress: JobProgress
    ) -> Ended[T]:
        try:
            ended, canary_forced = await self._compute(work, progress, data)
            ended_s = self._clock()
            overdue = canary_overdue(self._models.last_good_s, ended_s, self._canary_max_age_s)
            in_doubt = canary_forced or overdue or self._suspected or not self._models.good
            self._suspected = False
            if in_doubt and ended.end is not End.FAILED and not await self.check_canary():
                # Whatever the call found, it found it with models or an accelerator that answer wrongly.
                ended = Ended(End.FAILED, self._out_of_order())
        finally:
            abandoned = self.slot.state is SlotState.ABANDONED
            self.slot.release(occupation.epoch)
            self._free.set()
            self._on_change()
        if ended.end is End.OK:
            self.service_times.add(occupation.call.method, ended_s - occupation.since_s, ended_s)
        stages = progress.stages(ended_s)
        if abandoned:  # its RPC was logged when it ended; this is when its thread did
            duration_ms = round((ended_s - occupation.since_s) * 1000.0, 1)
            log.info("abandoned_call_ended", end=ended.end, duration_ms=duration_ms, stage_ms=stage_ms(stages))
        return replace(ended, stages=stages)

    async def _compute(
        self, work: Callable[[JobProgress], Awaitable[T]], progress: JobProgress, data: bytes
    ) -> tuple[Ended[T], bool]:
        """How the call ended, and whether a canary has to confirm it."""
        try:
            value = await work(progress)
        except CancelledCallError:
            return Ended(End.GIVEN_UP, Refusal(CANCELLED)), False
        except PhotoError as error:
            return Ended(End.REFUSED, refusals.of_photo(error)), self._doubt.refused()
        except Exception as error:  # a stage may raise anything; the canary tells whose fault it is
            log.exception("stage_raised", error=type(error).__name__)
            return Ended(End.FAILED, await self._blame(data)), False
        self._doubt.answered(self._clock())
        return Ended(End.OK, Answered(value)), False

    async def _blame(self, data: bytes) -> Refusal:
        if not await self.check_canary():
            return self._out_of_order()
        digest = hashlib.sha256(data).digest()
        if self._doubt.input_failed(digest, self._clock()):
            log.error("different_inputs_failed", advice="the canary passes, yet many inputs break a stage: a bug here")
            return Refusal(WorkerReason.WORKER_FAILED)
        return Refusal(WorkerReason.INPUT_FAILED)

    def _out_of_order(self) -> Refusal:
        lost = self._models.accelerator_lost
        return Refusal(WorkerReason.ACCELERATOR if lost else WorkerReason.MODELS)
