"""The one thread in which local vision lives: jobs wait in line, and none of it is in the event loop's way.

Models are loaded by the first job: they take 0.5 GB and some seconds, and an edge that is never asked does without.

A thread cannot be ended from outside. One that hangs is left behind and another takes its place, with models of its
own; only one is left behind at a time. While two hang, calls are refused at once: nothing but a restart would help.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import structlog

from edge.errors import ApiError
from edge.local.findings import Engine, GivenUpError, NotLoadedError, Ticket
from edge.settings import LocalVision
from edge.upstream.fingerprints import Fingerprints

T = TypeVar("T")

NICENESS = 10
"""Of the thread and all that descend from it, the models' own included: answers of workers go first."""
CLOSE_TIMEOUT_S = 5.0
STILL_MAX_S = 30.0
"""A job that has not moved for so long hangs: the longest step, a pass of the parser, takes a second or two."""
LOADING_MAX_S = 300.0
"""The same while models are loaded, from a slow disk perhaps."""
LOOK_EVERY_S = 5.0
"""Whether it moves. It hangs when it is seen so twice: a machine that was asleep has not hung."""
REMEMBERED_S = 600.0
"""For so long a photo at which the engine hung or broke is refused."""

Load = Callable[[LocalVision], Engine]
Work = Callable[[Engine, bytes, Ticket], T]
"""What is done with a photo."""

log = structlog.get_logger()


def load_engine(settings: LocalVision) -> Engine:
    """The real engine; raises `NotLoadedError` where its packages or models are not there."""
    try:
        from edge.local import engine  # noqa: PLC0415  (mediapipe takes seconds, and may not be installed)
    except ImportError as error:
        problem = f"local vision takes packages that are not here ({error}); install hairmesh[edge-vision]"
        raise NotLoadedError("LOCAL_VISION_MISSING", problem) from error
    return engine.load(settings.models_dir, settings.parser_weights_sha256)


def _without_frames(error: Exception) -> Exception:
    """The same without the frames it came through: they hold the decoded photo, up to 120 MB, until the collector of
    cycles happens to come by.
    """
    for behind in (error.__cause__, error.__context__):
        if behind is not None:
            behind.__traceback__ = None
    return error.with_traceback(None)


class _Job:
    """Work in line. What it holds, a photo above all, goes when its caller does."""

    def __init__(self, work: Work[Any], photo: bytes, ticket: Ticket) -> None:
        self.work: Work[Any] | None = work
        self.photo: bytes | None = photo
        self.ticket = ticket
        self.context = contextvars.copy_context()
        """So that what the thread says carries the request's ids."""
        self.key = ""
        """Of the photo, once it is looked at."""
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def drop(self) -> None:
        """By the caller, which waits no longer."""
        self.ticket.give_up()
        self.work = self.photo = None

    def tell(self, result: object, failure: Exception | None) -> None:
        """By the thread: it is done."""
        with suppress(RuntimeError):  # the loop is closed: it hung for longer than the edge lived
            self.answer.get_loop().call_soon_threadsafe(self._tell, result, failure)

    def _tell(self, result: object, failure: Exception | None) -> None:
        if self.answer.done():
            return
        if failure is None:
            self.answer.set_result(result)
        else:
            self.answer.set_exception(failure)


@dataclass(frozen=True, slots=True)
class LocalState:
    """Local vision at one moment."""

    loaded: bool
    inside: int
    """Calls that run or wait."""
    hanging: int
    """Threads that hang: left behind, or not replaced any more."""
    stuck: bool
    """Calls are refused: a thread was left behind already when the next one hung."""


class LocalThread:
    """Runs jobs one after the other on the engine. Belongs to one event loop."""

    def __init__(self, settings: LocalVision, load: Load = load_engine) -> None:
        self._settings = settings
        self._load = load
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._inside = 0
        self._lane: _Lane | None = None
        self._left: _Lane | None = None
        """The last one that was left behind."""
        self._stuck = False
        self._watch: asyncio.Task[None] | None = None
        self._memory = _Memory()

    @property
    def state(self) -> LocalState:
        """As it is now; from memory."""
        left = self._left is not None and self._left.is_alive()
        loaded = self._lane is not None and self._lane.engine is not None
        return LocalState(loaded, self._inside, left + self._stuck, self._stuck)

    async def run(self, work: Work[T], photo: bytes, ticket: Ticket, timeout_s: float) -> T:
        """The result of `work`. Cancelling gives the job up: one in line is dropped, one that runs ends at
        its next step.

        Raises `TimeoutError` when `timeout_s` are over, `ApiError` BUSY where too many are in line, POISON_INPUT,
        INPUT_FAILED and EDGE_FAILED where the work breaks, by whose doing, LOCAL_VISION_MISSING, LOCAL_MODELS_MISSING,
        LOCAL_VISION_STUCK, and what `work` raises of these.
        """
        if not self._settings.enabled:
            raise ApiError("LOCAL_VISION_MISSING")
        if self._stuck:
            raise ApiError("LOCAL_VISION_STUCK")
        if self._inside > self._settings.max_waiting:
            raise ApiError("BUSY")
        if self._lane is None:
            self._lane = self._start()
            self._watch = asyncio.create_task(self._look_after())
        job = _Job(work, photo, ticket)
        self._inside += 1
        self._jobs.put(job)
        try:
            async with asyncio.timeout(timeout_s):
                result: T = await job.answer
                return result
        finally:
            self._inside -= 1
            job.drop()

    async def close(self) -> None:
        """Free the models; a thread that hangs is left behind."""
        if self._lane is None or self._watch is None:
            return
        self._watch.cancel()
        self._jobs.put(None)
        await asyncio.to_thread(self._lane.join, CLOSE_TIMEOUT_S)

    def _start(self) -> _Lane:
        lane = _Lane(self._jobs, lambda: self._load(self._settings), self._memory)
        lane.start()
        return lane

    async def _look_after(self) -> None:
        """See whether the thread moves, again and again."""
        before: tuple[_Job, float] | None = None
        while self._lane is not None:
            await asyncio.sleep(LOOK_EVERY_S)
            seen = self._lane.still()
            if seen is None and self._stuck:
                self._stuck = False
                log.info("local_vision_moves_again")
            if seen is not None and seen == before:
                self._replace(self._lane, seen[0])
            before = seen

    def _replace(self, lane: _Lane, job: _Job) -> None:
        """Another thread for one that hangs, if none is left behind already."""
        replaced = self._left is None or not self._left.is_alive()
        if replaced or not self._stuck:
            still_s = round(time.monotonic() - job.ticket.moved_s)
            log.error("local_vision_stuck", still_s=still_s, loading=lane.engine is None, replaced=replaced)
        if replaced:
            lane.leave_behind(job)
            self._left, self._lane, self._stuck = lane, self._start(), False
            return
        self._stuck = True
        with suppress(Empty):
            while (waiting := self._jobs.get_nowait()) is not None:
                waiting.tell(None, ApiError("LOCAL_VISION_STUCK"))


class _Lane(threading.Thread):
    """One thread with an engine of its own; it takes jobs in order until it is told to end."""

    def __init__(self, jobs: SimpleQueue[_Job | None], load: Callable[[], Engine], memory: _Memory) -> None:
        super().__init__(name="local-vision", daemon=True)
        self.engine: Engine | None = None
        self._jobs = jobs
        self._load = load
        self._memory = memory
        self._job: _Job | None = None
        self._left_behind = False

    def still(self) -> tuple[_Job, float] | None:
        """The job that has not moved for too long, and since when; None where there is none."""
        job, limit_s = self._job, STILL_MAX_S if self.engine is not None else LOADING_MAX_S
        if job is None:
            return None
        moved_s = job.ticket.moved_s
        return (job, moved_s) if time.monotonic() - moved_s > limit_s else None

    def leave_behind(self, job: _Job) -> None:
        """It hangs in a job: another one takes what waits. The photo is not to hang that one as well."""
        self._left_behind = True
        if job.key:
            self._memory.add(job.key)

    def run(self) -> None:
        """In the thread."""
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while not self._left_behind and (job := self._jobs.get()) is not None:
            self._job = job
            result, failure = None, None
            try:
                result = job.context.run(self._do, job)
            except Exception as error:  # noqa: BLE001  (carried to the one who waits)
                failure = _without_frames(error)
            self._job = None
            job.tell(result, failure)
            del job, result, failure  # nothing of it is kept while the next one is waited for
        self._drop_engine()

    def _do(self, job: _Job) -> object:
        work, photo = job.work, job.photo
        if work is None or photo is None:
            raise GivenUpError
        job.ticket.start()
        engine = self._loaded()
        job.ticket.step()
        job.key = self._memory.key_of(photo)
        if job.key in self._memory:
            raise ApiError("POISON_INPUT")
        try:
            return work(engine, photo, job.ticket)
        except (ApiError, GivenUpError):
            raise
        except Exception:
            log.exception("local_vision_failed")
            job.ticket.moved_s = time.monotonic()
            if self._is_intact(engine):
                raise ApiError("INPUT_FAILED") from None
            self._memory.add(job.key)
            self._drop_engine()  # the next job gets a new one
            raise ApiError("EDGE_FAILED") from None

    def _is_intact(self, engine: Engine) -> bool:
        """Whether the engine still knows its known answer: it was the photo then."""
        try:
            engine.check()
        except Exception:
            log.exception("local_vision_broken")
            return False
        return True

    def _loaded(self) -> Engine:
        if self.engine is not None:
            return self.engine
        begun_s = time.monotonic()
        try:
            engine = self._load()
        except NotLoadedError as error:
            self._memory.not_loaded(error)
            raise ApiError(error.reason) from None
        except Exception:
            log.exception("local_vision_failed")
            raise ApiError("EDGE_FAILED") from None
        self._memory.problem = ""
        self.engine = engine
        duration_ms = round((time.monotonic() - begun_s) * 1000)
        log.info("local_vision_loaded", sees_hair=engine.sees_hair, duration_ms=duration_ms)
        return engine

    def _drop_engine(self) -> None:
        engine, self.engine = self.engine, None
        if engine is not None:
            engine.close()


class _Memory:
    """What outlives a thread: photos that broke one, by keyed hash; why there are no models, as said last."""

    def __init__(self) -> None:
        self._fingerprints = Fingerprints()
        self._until_s: dict[str, float] = {}
        self.problem = ""

    def key_of(self, photo: bytes) -> str:
        """By which a photo is known again; about 1 ms per MB."""
        return self._fingerprints.of_photo(photo)

    def add(self, key: str) -> None:
        """Refuse the photo for a while. Few ever come here: each costs an engine."""
        now_s = time.monotonic()
        self._until_s = {each: until_s for each, until_s in self._until_s.items() if until_s > now_s}
        self._until_s[key] = now_s + REMEMBERED_S

    def __contains__(self, key: str) -> bool:
        """Whether the photo is refused."""
        return self._until_s.get(key, 0.0) > time.monotonic()

    def not_loaded(self, error: NotLoadedError) -> None:
        """Say why, once and not with every call."""
        if str(error) != self.problem:
            self.problem = str(error)
            log.error("local_vision_not_loaded", reason=error.reason, problem=self.problem)
