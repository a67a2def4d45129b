"""`hairmesh models`: what `vision.models` finds and fetches, told to a person."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn
from rich.table import Table

from vision import models
from vision.errors import ModelError


def fetch(folder: Path | None) -> int:
    """Fetch what is missing, with progress; the exit status."""
    cache_dir = folder or models.default_cache_dir()
    console = Console(highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks: dict[tuple[str, str], TaskID] = {}

        def report(step: models.FetchProgress) -> None:
            key = (step.spec.name, step.source)
            if key not in tasks:
                console.print(f"fetching {step.spec.name} ({step.spec.what}) from the {step.source}")
                tasks[key] = progress.add_task(step.spec.name, total=step.total_bytes)
            progress.update(tasks[key], completed=step.completed_bytes, total=step.total_bytes)

        try:
            statuses = models.fetch(cache_dir, report)
        except ModelError as error:
            Console(stderr=True, highlight=False).print(f"hairmesh models: {error}", soft_wrap=True)
            return 1
    console.print(
        f"{len(statuses)} model files are good in {cache_dir}, and the parser's ONNX form is made", soft_wrap=True
    )
    return 0


def verify(folder: Path | None) -> int:
    """One line per file; the exit status is 1 when one is missing or wrong, or what was made of one is damaged."""
    cache_dir = folder or models.default_cache_dir()
    statuses, derived = models.verify(cache_dir), models.verify_derived(cache_dir)
    console = Console(highlight=False)
    for status in (*statuses, derived):
        console.print(f"{status.path.name}: {status.detail or 'good'}", soft_wrap=True)
    good = all(status.state is models.FileState.GOOD for status in statuses)
    return 0 if good and derived.state is not models.FileState.WRONG else 1


def show(folder: Path | None) -> int:
    """A table of the manifest and what is on disk; always exit status 0."""
    cache_dir = folder or models.default_cache_dir()
    table = Table(title=f"Model files in {cache_dir}", title_justify="left")
    table.add_column("file", no_wrap=True)
    table.add_column("MB", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("what, licence, package that carries it")
    for status in models.verify(cache_dir):
        spec = status.spec
        about = f"{spec.what}. Licence: {spec.licence}. From {spec.archive.requirement}."
        table.add_row(spec.name, f"{spec.size_bytes / 1e6:.1f}", status.state.value, about)
    derived = models.verify_derived(cache_dir)
    size = f"{derived.path.stat().st_size / 1e6:.1f}" if derived.path.is_file() else ""
    about = f"The ONNX form of {derived.spec.name}, made on this machine by `fetch` or a worker's first start."
    table.add_row(derived.path.name, size, derived.state.value, about)
    Console().print(table)
    return 0
