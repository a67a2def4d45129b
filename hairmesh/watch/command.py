"""The command line of `hairmesh watch`: options in, a target and limits out. Imports what it needs when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hairmesh.watch.options import SECRET_VARIABLE, Kind, Options


def watch(  # noqa: PLR0917
    kind: Annotated[Kind, typer.Argument(help="What it is.")],
    target: Annotated[str, typer.Argument(help="Base URL, http://host:port; of a worker host:port.")],
    restart_cmd: Annotated[
        str | None,
        typer.Option(help="What restarts the server, run without a shell; for shell syntax: sh -c '…'."),
    ] = None,
    act: Annotated[bool, typer.Option("--act", help="Run the restart command. Without it only say so.")] = False,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="End as soon as it is known how the server is. With --act it restarts a stalled one; a dead one only "
            "where --start-grace is 0.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, one line per look.")] = False,
    interval: Annotated[float, typer.Option(min=0.05, help="Seconds between two looks.")] = 10.0,
    grace: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Seconds that work in flight may be still; twice that proves a stall. "
            "Default: vllm 60, comfyui 300, a worker's own patience by stage.",
        ),
    ] = None,
    start_grace: Annotated[
        float,
        typer.Option(
            min=0,
            help="No restart within so many seconds of any start: of the server, and where that is not known of this "
            "command.",
        ),
    ] = 900.0,
    dead_grace: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="No restart of a server that refuses connections within so many seconds of the first refusal: someone "
            "may be starting it. 0 where nothing else ever does; --start-grace holds all the same. Default: as that.",
        ),
    ] = None,
    restart_timeout: Annotated[
        float, typer.Option(min=1, help="Seconds that the restart command may take; then it is killed.")
    ] = 300.0,
    proxy: Annotated[
        bool,
        typer.Option("--proxy", help="The target spreads requests over several servers: ask its model list alone."),
    ] = False,
    secret_file: Annotated[
        Path | None,
        typer.Option(help=f"File with vLLM's API key or the worker's password; or the variable {SECRET_VARIABLE}."),
    ] = None,
    ca: Annotated[Path | None, typer.Option(help="PEM file of the authority behind the server's certificate.")] = None,
    cert: Annotated[Path | None, typer.Option(help="PEM file of our own certificate chain, for mutual TLS.")] = None,
    key: Annotated[Path | None, typer.Option(help="PEM file of its private key.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow the secret to go over a network in plain text.")
    ] = False,
) -> None:
    """Watch a model server and restart it when, and only when, it is provably stuck.

    It reads the server's own counters and sends nothing to a server that moves. One line says each decision. Without
    `--restart-cmd` and `--act` it only says what it would do.

    Exit status with `--once`: **0** busy, waiting or idle, **1** stalled or dead, **2** not known (counters missing,
    slow, unreachable), **3** another watchdog acts on this server, **4** the restart command failed, **64** wrong
    usage, **70** an error of its own. Without `--once` it runs until SIGTERM, then 0.
    """
    from hairmesh.watch import main  # noqa: PLC0415  (so that --help answers at once)

    options = Options(
        kind=kind,
        target=target,
        restart_cmd=restart_cmd,
        act=act,
        once=once,
        as_json=as_json,
        interval_s=interval,
        grace_s=grace,
        start_grace_s=start_grace,
        dead_grace_s=dead_grace,
        restart_timeout_s=restart_timeout,
        proxy=proxy,
        secret_file=secret_file,
        ca=ca,
        cert=cert,
        key=key,
        insecure=insecure,
    )
    sys.exit(main.run(options))
