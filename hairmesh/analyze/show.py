"""What people see on standard error: a bar while the run lasts, in a terminal, and a summary at its end."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from hairmesh.analyze.photos import Photo
from hairmesh.analyze.records import Records, as_json
from hairmesh.analyze.run import Outcome
from hairmesh.client import HairMeshError, Progress, Queued, RefusedError
from hairmesh.plain import printable

LISTED = 20
"""Failures, and lines of results, in the summary: more stand in the files."""
FEW = 3
"""Up to this many photos, the summary lists the files of each."""


class Shown:
    """In a terminal, a bar for all photos and a line for each that is under way.

    The line that the edge is waited for is printed everywhere: without a terminal there would be silence for a minute.
    """

    def __init__(self, console: Console, total: int, waiting: str, *, as_json: bool) -> None:
        """`waiting`: the line that the edge is waited for."""
        self._console = console
        self._waiting = waiting
        self._as_json = as_json
        self._bars = Bars(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._all = self._bars.add_task("photos", total=total)
        self._lines: dict[Photo, TaskID] = {}

    def begins(self, photo: Photo) -> None:
        """See `Show`."""
        self._lines[photo] = self._bars.add_task(_name(photo), total=None)

    def progress(self, photo: Photo, news: Queued | Progress) -> None:
        """See `Show`."""
        match news:
            case Queued():
                said = f"queued, {news.position} before it" if news.position else "queued"
                self._bars.update(self._lines[photo], description=f"{_name(photo)}: {said}", total=None)
            case Progress():
                result = f" {news.results_done + 1} of {news.results_total}" if news.results_total > 1 else ""
                self._bars.update(
                    self._lines[photo],
                    description=f"{_name(photo)}: {printable(news.stage, 40)}{result}",
                    total=news.total or None,
                    completed=news.step,
                )

    def waits(self, photo: Photo, error: HairMeshError, pause_s: float) -> None:
        """See `Show`."""
        why = error.reason if isinstance(error, RefusedError) else "no answer"
        said = f"{_name(photo)}: {printable(why, 40)}, again in {pause_s:.0f} s"
        self._bars.update(self._lines[photo], description=said, total=None)

    def gone(self) -> None:
        """See `Show`."""
        with suppress(OSError):  # the terminal is lost
            self._console.print(self._waiting, markup=False, soft_wrap=True)

    def ends(self, photo: Photo) -> None:
        """See `Show`."""
        self._bars.remove_task(self._lines.pop(photo))

    def line(self, content: Mapping[str, Any]) -> None:
        """See `Show`."""
        self._bars.advance(self._all)
        if self._as_json:
            sys.stdout.buffer.write(as_json(content) + b"\n")
            sys.stdout.flush()

    def __enter__(self) -> Self:
        """Draw from now on."""
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bars away."""
        with suppress(OSError):  # the terminal is lost: the run ends as it would have ended
            self._bars.stop()


def summary(outcome: Outcome, total: int, records: Records) -> list[str]:
    """What has become of the photos, line by line."""
    counts = {
        "answered": len(outcome.answered),
        "done before": len(outcome.done_before),
        "failed": len(outcome.failures),
        "not tried": total - len(outcome.answered) - len(outcome.done_before) - len(outcome.failures),
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    lines = [f"{total} photo{'s' * (total != 1)}: {told}"]
    if outcome.replaced:
        lines.append(f"  {outcome.replaced} of the answers replaced an earlier one")
    for failure in sorted(outcome.failures, key=lambda each: each.photo)[:LISTED]:
        details = as_json(failure.details).decode() if failure.details else ""
        said = " ".join(filter(None, (failure.message, details, failure.advice)))
        lines.append(f"  {printable(f'{failure.photo}: {failure.reason}: {said}')}")
    if len(outcome.failures) > LISTED:
        lines.append(f"  … and {len(outcome.failures) - LISTED} more in {records.failures}")
    if total <= FEW:
        for photo in sorted((*outcome.answered, *outcome.done_before), key=lambda each: each.place):
            lines += [f"  {printable(str(path))}" for path in files(photo, records)[:LISTED]]
    return lines


def files(photo: Photo, records: Records) -> list[str]:
    """The record and the pictures of a photo."""
    record = records.path(photo)
    pictures = json.loads(record.read_bytes())["pictures"]
    return [str(record), *(str(record.with_name(name)) for name in pictures.values())]


def _name(photo: Photo) -> str:
    return printable(photo.path.name, 40)
