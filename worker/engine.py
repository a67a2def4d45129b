"""The compute thread: one thread owns the pipeline from load to close, so that nothing of it is ever shared.

Jobs wait for each other in the thread's queue; the slot keeps calls out of that queue, only a canary may be ahead.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from vision.calls import (
    DesignOptions,
    DesignResult,
    EmitRegion,
    EmitStyle,
    GrowRegionOptions,
    GrowStylesOptions,
    GrowthSummary,
    MaskOptions,
    MaskResult,
)
from vision.errors import ModelError
from vision.types import MeasureOptions, MeasureResult, Progress, Stage
from worker.progress import JobProgress, Movement, ProgressCounter

T = TypeVar("T")


class AnalysisPipeline(Protocol):
    """What the worker needs of `vision.pipeline.Pipeline`. Used by the compute thread alone."""

    @property
    def device(self) -> str:
        """`cpu` or `cuda`."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Models and runtimes by name."""

    def measure(self, data: bytes, options: MeasureOptions, progress: Progress) -> MeasureResult:
        """Facts and picture of one encoded photo; raises `PhotoError`, `CancelledCallError`, as all of them do."""

    def design(self, data: bytes, options: DesignOptions, progress: Progress) -> DesignResult:
        """Hairline designs for the face in the photo."""

    def segment(self, data: bytes, options: MaskOptions, progress: Progress) -> MaskResult:
        """Masks of the parts of the face in the photo."""

    def grow_styles(
        self, data: bytes, options: GrowStylesOptions, progress: Progress, emit: EmitStyle
    ) -> GrowthSummary:
        """Hair grown to styles; `emit` takes each the moment it is finished, in the compute thread."""

    def grow_region(
        self, data: bytes, options: GrowRegionOptions, progress: Progress, emit: EmitRegion
    ) -> GrowthSummary:
        """Hair grown in a marked region; `emit` as above."""

    def canary(self) -> None:
        """A small forward with a pinned answer; raises `ModelError` when the answer is another."""

    def close(self) -> None:
        """Free what the pipeline holds."""


PipelineLoader = Callable[[Progress], AnalysisPipeline]
"""Builds the pipeline in the compute thread; raises `ModelError` naming the file and what to do."""


class NotLoadedError(Exception):
    """The engine has no pipeline: a call was let in too early. A fault of the worker's own."""


def is_accelerator_error(error: BaseException) -> bool:
    """Whether `error` is one of torch that stays until the process is a new one. Too little memory comes and goes."""
    named_so = type(error).__name__ == "AcceleratorError" or str(error).startswith("CUDA error")
    return named_so and "out of memory" not in str(error)


class Engine:
    """Runs jobs on the compute thread. Its methods belong to the event loop; a job once begun is never interrupted."""

    def __init__(self, load: PipelineLoader, *, clock: Callable[[], float], on_stage: Callable[[], None]) -> None:
        self._load = load
        self._counter = ProgressCounter(clock, on_stage)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compute")
        self._pipeline: AnalysisPipeline | None = None
        """The compute thread's own; what it says of itself is kept below when it is loaded."""
        self._device = ""
        self._versions: Mapping[str, str] = {}
        self._pending = 0

    @property
    def pending(self) -> int:
        """Jobs running or waiting for the thread."""
        return self._pending

    @property
    def last_movement(self) -> Movement:
        """The progress counter."""
        return self._counter.last

    @property
    def device(self) -> str:
        """Empty before the pipeline is loaded."""
        return self._device

    @property
    def versions(self) -> Mapping[str, str]:
        """Empty before the pipeline is loaded."""
        return self._versions

    def new_progress(self) -> JobProgress:
        """The hand of a new job on the counter."""
        return JobProgress(self._counter)

    async def load(self) -> None:
        """Load the pipeline. Raises what the loader raises."""

        def work(progress: JobProgress) -> tuple[str, Mapping[str, str]]:
            progress.enter(Stage.MODEL_LOAD)
            self._pipeline = self._load(progress)
            return self._pipeline.device, dict(self._pipeline.versions)

        self._device, self._versions = await self._run(work, self.new_progress())

    async def canary(self) -> None:
        """Ask the canary; raises `ModelError` on a wrong answer, anything else when a stage breaks."""

        def work(progress: JobProgress) -> None:
            progress.enter(Stage.CANARY)
            self._loaded().canary()

        await self._run(work, self.new_progress())

    async def call(self, work: Callable[[AnalysisPipeline, JobProgress], T], progress: JobProgress) -> T:
        """One call of the pipeline on the compute thread."""
        return await self._run(lambda job: work(self._loaded(), job), progress)

    async def close(self, timeout_s: float) -> bool:
        """Close the pipeline behind the last job. False when the thread did not end within `timeout_s`."""

        def work(_progress: JobProgress) -> None:
            pipeline, self._pipeline = self._pipeline, None
            if pipeline:
                pipeline.close()

        try:
            await asyncio.wait_for(self._run(work, self.new_progress()), timeout_s)
        except TimeoutError:
            return False
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)
        return True

    async def _run(self, work: Callable[[JobProgress], T], progress: JobProgress) -> T:
        context = contextvars.copy_context()  # so that log lines of the thread carry the call's ids
        self._pending += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._executor, lambda: context.run(_job, work, progress))
        finally:
            self._pending -= 1

    def _loaded(self) -> AnalysisPipeline:
        if self._pipeline is None:
            raise NotLoadedError
        return self._pipeline


def _job(work: Callable[[JobProgress], T], progress: JobProgress) -> T:
    try:
        return work(progress)
    except StopIteration as error:  # asyncio futures cannot carry it: the call would never end
        raise RuntimeError("StopIteration escaped from a stage") from error


def canary_failure(error: Exception) -> str:
    """What a failed canary is called in reasons: the pipeline's own words, or the kind of error it broke with."""
    return str(error) if isinstance(error, ModelError) else f"canary_raised_{type(error).__name__}"
