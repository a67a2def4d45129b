"""From nothing to SERVING: load the models in the compute thread, then the canary has to give the known answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from vision.errors import ModelError
from vision.types import Progress
from worker.engine import AnalysisPipeline, Engine, PipelineLoader, is_accelerator_error
from worker.health.checks import ModelsCheck
from worker.runner import Runner
from worker.settings import Settings

log = structlog.stdlib.get_logger("worker.warmup")


def real_pipeline(settings: Settings) -> PipelineLoader:
    """Loader of the models that the configuration names."""

    def load(progress: Progress) -> AnalysisPipeline:
        from vision import models  # noqa: PLC0415  (imported in the compute thread: health answers meanwhile)

        files = models.locate(
            settings.models.dir or models.default_cache_dir(),
            parser_weights=settings.models.parser_weights,
            parser_weights_sha256=settings.models.parser_weights_sha256,
        )
        from vision import pipeline  # noqa: PLC0415  (torch and mediapipe take seconds; a missing file is said before)

        return pipeline.Pipeline.load(files, device=settings.device, progress=progress)

    return load


async def warm_up(
    engine: Engine, models: ModelsCheck, runner: Runner, *, retry_s: float, on_change: Callable[[], None]
) -> None:
    """Load until it works; a missing or wrong file leaves the worker alive, NOT_SERVING, and looking again."""
    told = ""
    while problem := await _load_once(engine, models):
        if problem != told:
            log.error(
                "models_not_loaded",
                problem=problem,
                advice=f"the worker stays up, NOT_SERVING, and looks again every {retry_s:g} s",
            )
        told = problem
        on_change()
        if models.accelerator_lost:
            return
        await asyncio.sleep(retry_s)
    models.loaded(engine.device)
    log.info("models_loaded", device=engine.device, versions=dict(engine.versions))
    await runner.check_canary()


async def _load_once(engine: Engine, models: ModelsCheck) -> str:
    """Empty when loaded, else what is wrong."""
    try:
        await engine.load()
    except ModelError as error:
        problem = str(error)
    except Exception as error:
        log.exception("load_raised")
        problem = f"load_raised_{type(error).__name__}"
        if is_accelerator_error(error):
            models.accelerator_failed(type(error).__name__)
            return problem
    else:
        return ""
    models.load_failed(problem)
    return problem
