"""The one thread in which local vision lives: jobs wait in line, and none of it is in the event loop's way.

Models are loaded by the first job: they take 0.5 GB and some seconds, and an edge that is never asked does without.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import structlog

from edge.errors import ApiError
from edge.local.findings import Engine, GivenUpError, NotLoadedError, Ticket
from edge.settings import LocalVision
from edge.threads import Threads

T = TypeVar("T")

NICENESS = 10
"""Of the thread and all that descend from it, the models' own included: answers of workers go first."""
CLOSE_TIMEOUT_S = 5.0

Load = Callable[[Path | None], Engine]
Work = Callable[[Engine, Ticket], T]

log = structlog.get_logger()


@dataclass(slots=True)
class _Job(Generic[T]):
    """Work in line. What it holds, a photo above all, goes with `work`."""

    work: Work[T] | None
    ticket: Ticket
    started_s: float | None = None


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What a job gave, and how long it stood in line."""

    result: T
    queue_s: float


def load_engine(models_dir: Path | None) -> Engine:
    """The real engine; raises `NotLoadedError` where its packages or models are not there."""
    try:
        from edge.local import engine  # noqa: PLC0415  (mediapipe takes seconds, and may not be installed)
    except ImportError as error:
        problem = f"local vision takes packages that are not here ({error}); install hairmesh[edge-vision]"
        raise NotLoadedError("LOCAL_VISION_MISSING", problem) from error
    return engine.load(models_dir)


class LocalThread:
    """Runs jobs one after the other on the engine."""

    def __init__(self, settings: LocalVision, load: Load = load_engine) -> None:
        self._settings = settings
        self._load = load
        self._threads = Threads(1, "local-vision")
        self._inside = 0
        self._engine: Engine | None = None
        self._problem = ""
        """Why there is no engine, as said last."""

    async def run(self, work: Work[T], timeout_s: float) -> Done[T]:
        """The result of `work`. Cancelling gives the job up: one in line is dropped, one that runs ends at
        its next step.

        Raises `ApiError` BUSY where too many are in line, DEADLINE, LOCAL_VISION_MISSING, LOCAL_MODELS_MISSING, and
        what `work` raises.
        """
        if not self._settings.enabled:
            raise ApiError("LOCAL_VISION_MISSING")
        if self._inside > self._settings.max_waiting:
            raise ApiError("BUSY")
        job = _Job(work, Ticket())
        come_s = time.monotonic()
        self._inside += 1
        try:
            result = await self._threads.run(lambda: self._do(job), timeout_s=timeout_s)
        except TimeoutError:
            raise ApiError("DEADLINE") from None
        finally:
            self._inside -= 1
            job.ticket.give_up()
            job.work = None
        return Done(result, (job.started_s or come_s) - come_s)

    async def close(self) -> None:
        """Free the models; one that hangs is left behind."""
        with suppress(TimeoutError):
            await self._threads.run(self._drop_engine, timeout_s=CLOSE_TIMEOUT_S)
        self._threads.close()

    def _do(self, job: _Job[T]) -> T:
        """In the thread."""
        work = job.work
        if work is None:
            raise GivenUpError
        job.started_s = time.monotonic()
        engine = self._loaded()
        try:
            return work(engine, job.ticket)
        except (ApiError, GivenUpError):
            raise
        except Exception:
            self._drop_engine()  # who knows what state it is in: the next job gets a new one
            raise

    def _loaded(self) -> Engine:
        if self._engine is not None:
            return self._engine
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        begun_s = time.monotonic()
        try:
            self._engine = self._load(self._settings.models_dir)
        except NotLoadedError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                log.error("local_vision_not_loaded", reason=error.reason, problem=self._problem)  # noqa: TRY400  (no trace: it is no fault of ours)
            raise ApiError(error.reason) from None
        self._problem = ""
        duration_ms = round((time.monotonic() - begun_s) * 1000)
        log.info("local_vision_loaded", sees_hair=self._engine.sees_hair, duration_ms=duration_ms)
        return self._engine

    def _drop_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
