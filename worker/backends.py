"""What grows hair here: the configured backend, checked at start, made where it is used, heard in the log."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from vision.errors import CancelledCallError
from vision.growth.backend import GrowthBackend, GrowthJob, GrowthReason, GrowthUnavailableError, NoGrowth
from vision.types import Progress, RgbImage, Stage
from worker.settings import NotUsableError, Settings, SettingsError

MakeBackend = Callable[[], GrowthBackend]
"""Called in the compute thread."""

STALL_MARGIN_S = 10.0
"""Two readings of the counter, and what it takes to give a job up."""

log = structlog.stdlib.get_logger("worker.growth")


def configured_backend(settings: Settings) -> MakeBackend:
    """How to make the backend that the configuration names.

    What it needs is read at once: raises `SettingsError` saying what is wrong with it.
    """
    makers: dict[str, Callable[[Settings], MakeBackend]] = {"local": _local, "comfyui": _comfyui, "none": _none}
    return makers[settings.growth.backend](settings)


def state_dir(settings: Settings, environ: Mapping[str, str]) -> Path:
    """Where open diffusion jobs are noted: `growth.state_dir`, else systemd's folder for this service, else the user's.

    Raises `SettingsError` where none is known.
    """
    if settings.growth.state_dir is not None:
        return settings.growth.state_dir
    if given := environ.get("STATE_DIRECTORY", "").partition(":")[0]:
        return Path(given)
    if given := environ.get("XDG_STATE_HOME", ""):
        return Path(given) / "hairmesh"
    try:
        return Path.home() / ".local" / "state" / "hairmesh"
    except RuntimeError:  # a user without a home
        raise SettingsError("growth.state_dir: name a folder that this worker may write to") from None


class ToldGrowth:
    """A backend whose failures stand in the log, with what it says about them, and are none of the call's."""

    def __init__(self, backend: GrowthBackend) -> None:
        self._backend = backend
        self.name = backend.name

    def grow(self, job: GrowthJob, progress: Progress) -> RgbImage:
        """See `GrowthBackend`. What it breaks with is a fault of this worker's or its server's, never of the photo."""
        try:
            return self._backend.grow(job, progress)
        except GrowthUnavailableError as error:
            level = log.warning if error.reason.is_servers_fault else log.info
            level("not_grown", backend=self.name, reason=error.reason, problem=str(error))
            raise
        except CancelledCallError:
            raise
        except Exception as error:
            log.exception("growth_raised", backend=self.name, error=type(error).__name__)
            raise GrowthUnavailableError(GrowthReason.GROWTH_FAILED) from error

    def close(self) -> None:
        """See `GrowthBackend`."""
        self._backend.close()


def _none(_settings: Settings) -> MakeBackend:
    return NoGrowth


def _local(_settings: Settings) -> MakeBackend:
    def make() -> GrowthBackend:
        from vision.growth.local import LocalGrowth  # noqa: PLC0415  (in the compute thread: health answers meanwhile)

        return ToldGrowth(LocalGrowth())

    return make


def _comfyui(settings: Settings) -> MakeBackend:
    from vision.growth.comfyui import ComfyUiGrowth  # noqa: PLC0415  (other backends have no use for it)
    from vision.growth.comfyui_client import ServerUrlError, base_url  # noqa: PLC0415
    from vision.growth.comfyui_vigil import Patience  # noqa: PLC0415
    from vision.growth.comfyui_workflow import Workflow, WorkflowError  # noqa: PLC0415

    growth = settings.growth
    if growth.workflow is None or growth.comfyui_url is None:
        raise SettingsError("growth: backend comfyui needs comfyui_url and workflow")
    try:
        url, workflow = base_url(growth.comfyui_url), Workflow.load(growth.workflow)
    except ServerUrlError as error:
        raise SettingsError(str(error)) from None
    except WorkflowError as error:
        raise NotUsableError(f"growth.workflow: {error}") from None
    journal_dir = state_dir(settings, os.environ)
    stall_after_s = settings.health.stall_after_s(Stage.DIFFUSION)
    # The server is to be found out before this worker would count as stalled itself.
    patience = Patience(stall_s=stall_after_s - STALL_MARGIN_S, queue_stall_s=stall_after_s)

    def make() -> GrowthBackend:
        backend = ComfyUiGrowth(url, workflow, journal_dir=journal_dir, patience=patience, news=DiffusionNews())
        return ToldGrowth(backend)

    return make


class DiffusionNews:
    """What the diffusion backend has to say, as lines of the log: `vision.growth.comfyui_news.News`."""

    def tried_again(self, problem: str) -> None:
        """See `News`."""
        log.warning("diffusion_again", problem=problem)

    def socket_shut(self) -> None:
        """See `News`."""
        log.warning("diffusion_socket_shut")

    def leftovers_wait(self, jobs: int, problem: str) -> None:
        """See `News`."""
        log.warning("leftovers_wait", jobs=jobs, problem=problem)

    def leftovers_removed(self, jobs: int) -> None:
        """See `News`."""
        log.info("leftovers_removed", jobs=jobs)

    def journal_missing(self, problem: str) -> None:
        """See `News`."""
        log.warning("journal_missing", problem=problem)
