"""What grows hair here: the configured backend, checked at start, made where it is used, heard in the log."""

from __future__ import annotations

import hashlib
import platform
import secrets
from collections.abc import Callable

import structlog

from vision.errors import CancelledCallError
from vision.growth.backend import GrowthBackend, GrowthJob, GrowthReason, GrowthUnavailableError, NoGrowth
from vision.types import Progress, RgbImage, Stage
from worker.settings import Settings, SettingsError

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


def owner_of(settings: Settings) -> str:
    """Names this worker to a diffusion server, the same after a restart, and says nothing about it to others.

    One whose port is another one each time cannot be told from its neighbours: it gets a name for this process alone.
    """
    if settings.listen.endswith(":0"):
        return secrets.token_hex(6)
    return hashlib.sha256(f"{platform.node()}/{settings.listen}".encode()).hexdigest()[:12]


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
    from vision.growth import comfyui  # noqa: PLC0415  (other backends have no use for it)
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
        raise SettingsError(f"growth.workflow: {error}") from None
    owner = owner_of(settings)
    stall_after_s = settings.health.stall_after_s(Stage.DIFFUSION)
    # The server is to be found out before this worker would count as stalled itself.
    patience = Patience(stall_s=stall_after_s - STALL_MARGIN_S, queue_stall_s=stall_after_s)

    def make() -> GrowthBackend:
        try:
            jobs = comfyui.remove_leftovers(url, owner)
        except GrowthUnavailableError as error:
            log.warning("leftovers_not_removed", reason=error.reason, problem=str(error))
        else:
            if jobs:
                log.info("leftovers_removed", jobs=jobs)
        return ToldGrowth(comfyui.ComfyUiGrowth(url, workflow, owner=owner, patience=patience))

    return make
