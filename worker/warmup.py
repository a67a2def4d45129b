"""From nothing to SERVING: load the models in the compute thread, then the canary has to give the known answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from vision.errors import ModelError
from vision.types import Progress
from worker.backends import configured_backend
from worker.engine import AnalysisPipeline, Engine, PipelineLoader, is_accelerator_error
from worker.health.checks import ModelsCheck
from worker.runner import Runner
from worker.settings import Settings

log = structlog.stdlib.get_logger("worker.warmup")


def real_pipeline(settings: Settings) -> PipelineLoader:
    """Loader of the models and the growth backend that the configuration names; raises `SettingsError`."""
    make_backend = configured_backend(settings)

    def load(progress: Progress) -> AnalysisPipeline:
        from vision import models  # noqa: PLC0415  (imported in the compute thread: health answers meanwhile)

        files = models.locate(
            settings.models.dir or models.default_cache_dir(),
            parser_weights=settings.models.parser_weights,
            parser_weights_sha256=settings.models.parser_weights_sha256,
        )
        from vision import pipeline  # noqa: PLC0415  (torch and mediapipe take seconds; a missing file is said before)

        growth = make_backend()
        try:
            return pipeline.Pipeline.load(files, growth=growth, device=settings.device, progress=progress)
        except BaseException:
            growth.close()
            raise

    return load


async def warm_up(
    engine: Engine, models: ModelsCheck, runner: Runner, *, retry_s: float, on_change: Callable[[], None]
) -> None:
    """Load until it works; a missing or wrong file leaves the worker alive, NOT_SERVING, and looking again."""
    told = ""
    while error := await _load_once(engine):
        if is_accelerator_error(error):
            models.accelerator_failed(type(error).__name__)
            log.error("accelerator_lost", exc_info=error, advice="restart this process; nothing else brings it back")
            on_change()
            return
        expected = isinstance(error, ModelError)
        problem = str(error) if expected else f"load_raised_{type(error).__name__}"
        models.load_failed(problem)
        on_change()
        if problem != told:  # tried again every few seconds, told once
            advice = f"the worker stays up, NOT_SERVING, and looks again every {retry_s:g} s"
            log.error("models_not_loaded", problem=problem, advice=advice, exc_info=None if expected else error)
        told = problem
        await asyncio.sleep(retry_s)
    models.loaded(engine.device)
    log.info("models_loaded", device=engine.device, versions=dict(engine.versions))
    await runner.check_canary()


async def _load_once(engine: Engine) -> Exception | None:
    """What went wrong; None when loaded."""
    try:
        await engine.load()
    except Exception as error:  # noqa: BLE001  (whatever it is, the worker stays up and says it)
        return error
    return None
