"""`hairmesh-worker`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import structlog
import typer

from hairmesh import __version__, logs
from hairmesh.memory import keep_small_return_large
from worker import outside
from worker import settings as configuration
from worker.server import CannotListenError, serve

EXIT_BAD_CONFIGURATION = 2
EXIT_NOT_NOW = 3
"""The address is taken, or a file that the configuration names cannot be used: the next try may succeed."""


def run(
    config: Annotated[
        Path | None,
        typer.Option(help="Configuration, JSON. Default: worker_config.json, if there is one.", metavar="FILE"),
    ] = None,
    listen: Annotated[
        str | None, typer.Option(help="Overrides the configuration; port 0 takes a free one.", metavar="HOST:PORT")
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="Least that is logged.")
    ] = "info",
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether the configuration is good: keys, certificates, folders.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Run a HairMesh worker: one call at a time over gRPC, with health that proves progress.

    Keys of the configuration can be set in the environment too, by section and key: LISTEN, HEALTH_MIN_FREE_GB …

    Logs are JSON lines on standard error. SIGTERM drains and ends with code 0; a second one ends at once.

    Models that are missing leave the worker up and NOT_SERVING: run `hairmesh models fetch`.
    """
    if version:
        typer.echo(__version__)
        return
    path = config or (configuration.DEFAULT_CONFIG if configuration.DEFAULT_CONFIG.exists() else None)
    if check:
        sys.exit(_judge(path, listen))
    keep_small_return_large()
    logs.configure("worker", level=log_level)
    log = structlog.stdlib.get_logger("worker")
    try:
        settings = configuration.load(path, os.environ, listen=listen)
        if path and (warning := configuration.permissions_warning(path)):
            log.warning("config_permissions", problem=warning)
        code = asyncio.run(serve(settings, config_path=path, environ=os.environ, listen=listen))
    except configuration.NotUsableError as error:
        sys.exit(_fail(str(error), EXIT_NOT_NOW))
    except configuration.SettingsError as error:
        sys.exit(_fail(f"bad configuration: {error}", EXIT_BAD_CONFIGURATION))
    except CannotListenError as error:
        sys.exit(_fail(str(error), EXIT_NOT_NOW))
    sys.exit(code)


def _judge(path: Path | None, listen: str | None) -> int:
    """Say to people what is wrong with the configuration, and with what it leads to; the exit status."""
    name = path or "environment"
    try:
        settings = configuration.load(path, os.environ, listen=listen)
        complaints = tuple(outside.complaints(settings))
        for private in filter(None, (path, settings.tls.key)):
            if warning := configuration.permissions_warning(private):
                typer.echo(f"hairmesh-worker: warning: {warning}", err=True)
    except configuration.SettingsError as error:
        complaints = error.complaints
    for complaint in complaints:
        typer.echo(f"hairmesh-worker: {name}: {complaint}", err=True)
    if complaints:
        return EXIT_BAD_CONFIGURATION
    typer.echo(f"hairmesh-worker: {name}: configuration is good")
    return 0


def _fail(message: str, code: int) -> int:
    """Say it to people and to log readers."""
    structlog.stdlib.get_logger("worker").error("worker_not_started", problem=message)
    typer.echo(f"hairmesh-worker: {message}", err=True)
    return code


def main() -> None:
    """Entry point of the command."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(run)
    app(prog_name="hairmesh-worker")
