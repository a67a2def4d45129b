"""`hairmesh models`: what `vision.models` finds and `vision.model_fetch` brings, told to a person."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn
from rich.table import Table

from vision import models, parser_form
from vision.errors import ModelError

if TYPE_CHECKING:
    from vision.model_sources import FetchProgress


def fetch(folder: Path | None, *, weights: Path | None = None, with_parser: bool = True) -> int:
    """Fetch what is missing, with progress; the exit status. `weights`: the operator's own, in the pinned ones' place.

    Raises `ModuleNotFoundError` where what fetches is not installed.
    """
    from vision import model_fetch  # noqa: PLC0415  (takes unearth, which is not everywhere)

    cache_dir = folder or models.default_cache_dir()
    weights_sha256 = _hash_of(weights) if with_parser else None
    console = _console()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks: dict[tuple[str, str], TaskID] = {}

        def report(step: FetchProgress) -> None:
            key = (step.spec.name, step.source)
            if key not in tasks:
                console.print(f"fetching {step.spec.name} ({step.spec.what}) from the {step.source}", soft_wrap=True)
                tasks[key] = progress.add_task(step.spec.name, total=step.total_bytes)
            progress.update(tasks[key], completed=step.completed_bytes, total=step.total_bytes)

        try:
            statuses = model_fetch.fetch(cache_dir, report, weights=weights, weights_sha256=weights_sha256)
        except ModelError as error:
            _console(stderr=True).print(f"hairmesh models: {error}", soft_wrap=True)
            return 1
    names = [status.path.name for status in statuses]
    if weights_sha256 is not None:
        names.append(models.placed(cache_dir, weights_sha256).parser_onnx.name)
    console.print(f"good in {cache_dir}: {', '.join(names)}", soft_wrap=True)
    if weights is not None:
        console.print(f"parser_weights_sha256 of {weights}: {weights_sha256}", soft_wrap=True)
    return 0


def _hash_of(weights: Path | None) -> str:
    """Of the operator's own weights, or of the pinned ones."""
    if weights is None:
        return models.FACE_PARSER.sha256
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(folder: Path | None, *, weights_sha256: str | None = None, with_parser: bool = True) -> int:
    """One line per file that this machine computes with; the exit status is 1 when one is missing or wrong.

    The parser's ONNX form may be missing where a worker makes it. `weights_sha256`: of the operator's own weights.
    """
    cache_dir = folder or models.default_cache_dir()
    parser = (weights_sha256 or models.FACE_PARSER.sha256).lower() if with_parser else None
    console = _console()
    statuses = list(models.verify(cache_dir, parser))
    good = all(status.state is models.FileState.GOOD for status in statuses)
    if parser is not None:
        derived = models.verify_derived(cache_dir, parser)
        allowed = {models.FileState.GOOD} | ({models.FileState.MISSING} if parser_form.can_be_made() else set())
        good = good and derived.state in allowed
        statuses.append(derived)
    for status in statuses:
        console.print(f"{status.path.name}: {status.detail or 'good'}", soft_wrap=True)
    return 0 if good else 1


def _console(*, stderr: bool = False) -> Console:
    """Prints what it is given: names of extras and of folders are no markup."""
    return Console(stderr=stderr, highlight=False, markup=False)


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
    _console().print(table)
    return 0
