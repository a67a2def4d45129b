"""What a configuration leads to on this machine: certificates, folders, files, packages. Nothing is made or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hairmesh import spans
from worker.backends import configured_backend
from worker.certificates import PortCertificate
from worker.settings import NotUsableError, Settings, SettingsError, TracingSettings


def complaints(settings: Settings) -> Iterator[str]:
    """Everything out there that is wrong, each with its key."""
    needed: tuple[Callable[[], object], ...] = (
        lambda: PortCertificate.of(settings.tls, poll_s=0),
        lambda: check_tracing(settings.tracing),
        lambda: configured_backend(settings),
    )
    for look in needed:
        try:
            look()
        except SettingsError as error:
            yield from error.complaints
    weights = settings.models.parser_weights
    if weights is not None and not weights.is_file():
        yield f"models.parser_weights: {weights} is no file"
    for folder in settings.health.disk_paths if settings.health.min_free_gb else ():
        if not folder.is_dir():
            yield f"health.disk_paths: {folder} is no folder"


def check_tracing(tracing: TracingSettings) -> None:
    """Raise `NotUsableError` where there is nothing to send spans with."""
    if tracing.otlp_endpoint is not None and spans.packages_missing():
        raise NotUsableError(f"tracing.otlp_endpoint {spans.MISSING}")
