"""The command line of `hairmesh analyze`: options in, a job out. Imports what it needs when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hairmesh.analyze.options import KEY_VARIABLE, CallName, Language, Options


def analyze(  # noqa: PLR0917
    photos: Annotated[list[Path], typer.Argument(exists=True, help="Photos, and folders of photos.")],
    call: Annotated[CallName, typer.Option(help="What to ask for each photo.")] = "measure",
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the call, such as styles=round,m or pupillary_distance_mm=63.5. Can be repeated.",
        ),
    ] = None,
    mask: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="For grow: a picture, bright where hair is to be.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for what comes back.")] = Path("out/analysis"),
    url: Annotated[
        str | None, typer.Option(help="The edge; default: the one `hairmesh serve` runs here, by out/serve.json.")
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help=f"File with an API key, where the edge asks for one; or ${KEY_VARIABLE}."
        ),
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="PEM file of the authority behind the edge's certificate."),
    ] = None,
    language: Annotated[
        Language | None,
        typer.Option(help="Of words in answers and pictures; default: that of the terminal, zh or else en."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=32, help="Photos at once.")] = 2,
    patience: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds for one photo, the service's busy times included.")
    ] = 600.0,
    wait: Annotated[
        float,
        typer.Option(min=0, max=3600, help="Seconds to wait for an edge that is not there, as while it restarts."),
    ] = 60.0,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="Folders inside folders too.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Ask anew for what is done already.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON line per photo on standard output too, as they are done.")
    ] = False,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Send photos in plain text to http:// off this machine.")
    ] = False,
) -> None:
    """Send photos, or whole folders of them, through one call; keep the answers and pictures as files.

    For `faces/anna.jpg` and the call `measure`: `anna.jpg.measure.json` and `anna.jpg.measure.annotated.png`, in the
    folder `faces` below `--out`. Run it again and it goes on: what is done for this very photo with these parameters
    stays, the rest is asked for, also what failed. Answers to other parameters are kept: another `--out` is for those,
    `--again` replaces them. A busy service is waited for as it says; one that is not there for `--wait` seconds, and
    then the run ends. Photos are sent as they are: those above the service's limit (2 MiB by default) fail.

    Exit status: 0 all photos are done, 1 some are not (the last lines say which and why), 64 wrong usage, 130 after
    Ctrl-C, 143 after SIGTERM, 129 where the terminal is lost.
    """
    from hairmesh.analyze import main  # noqa: PLC0415  (so that --help answers at once)

    options = Options(
        photos=photos,
        call=call,
        parameters=parameters or [],
        mask=mask,
        out=out,
        url=url,
        api_key_file=api_key_file,
        ca=ca,
        language=language,
        concurrency=concurrency,
        patience_s=patience,
        wait_s=wait,
        recursive=recursive,
        again=again,
        as_json=as_json,
        insecure=insecure,
    )
    sys.exit(main.run(options))
