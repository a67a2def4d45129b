"""From options to an exit status."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from rich.console import Console

from hairmesh.analyze.contact import Contact, find_edge
from hairmesh.analyze.options import CallName, Options, UsageError
from hairmesh.analyze.photos import Photo, find
from hairmesh.analyze.records import Records, sha256_of
from hairmesh.analyze.run import GOES_ON, Ask, EndedError, Outcome, Run
from hairmesh.analyze.show import Shown, summary
from hairmesh.client import Answer, AsyncClient
from hairmesh.client.options import (
    CommonOptions,
    GrowOptions,
    HairlineOptions,
    MaskOptions,
    MeasureOptions,
    OnProgress,
    OnWait,
    StyleOptions,
    form_fields,
)
from hairmesh.plain import printable
from hairmesh.usage import USAGE_STATUS

ALL_DONE, SOME_FAILED = 0, 1

PARAMETERS: Mapping[CallName, Any] = {
    "measure": MeasureOptions,
    "styles": StyleOptions,
    "grow": GrowOptions,
    "features": CommonOptions,
    "hairlines": HairlineOptions,
    "masks": MaskOptions,
    "special-points": CommonOptions,
}
SLOW = frozenset({"styles", "grow"})


def run(options: Options) -> int:
    """Run `hairmesh analyze`; the exit status."""
    try:
        analysis = planned(options)
    except (UsageError, OSError, ValueError) as error:
        _say(f"analyze: {error}")
        return USAGE_STATUS
    return analysis.run()


def planned(options: Options) -> Analysis:
    """The run, with everything checked that can be checked before a photo is sent.

    Raises `UsageError`, `ValueError`, `OSError`.
    """
    contact, wanted = find_edge(options), parameters(options)
    asked = {name: str(value) for name, value in wanted.items()}
    if options.mask:
        wanted, asked = wanted | {"mask": options.mask}, asked | {"mask_sha256": sha256_of(options.mask)}
    photos = find(options.photos, options.out, recursive=options.recursive)
    if not photos:
        raise UsageError("there are no photos in what was given; --recursive looks into folders inside it")
    records = Records(options.out, options.call, asked)
    if not options.again:
        keep_answers_of_other_parameters(photos, records)
    return Analysis(options, contact, wanted, records, photos)


def keep_answers_of_other_parameters(photos: Sequence[Photo], records: Records) -> None:
    """Raises `UsageError` where answers lie that this run would replace, though nobody has asked for that."""
    others = [(photo, told) for photo in photos if (told := records.asked_otherwise(photo)) is not None]
    if others:
        photo, told = others[0]
        count = f"{len(others)} answer{'s' * (len(others) != 1)}"
        raise UsageError(
            f"{count} of other parameters would be lost, such as {printable(str(records.path(photo)))} "
            f"({printable(told)}): another --out keeps both, --again replaces what lies there"
        )


class Analysis:
    """One run of the command."""

    def __init__(
        self,
        options: Options,
        contact: Contact,
        wanted: Mapping[str, object],
        records: Records,
        photos: Sequence[Photo],
    ) -> None:
        self._options = options
        self._contact = contact
        self._wanted = wanted
        self._records = records
        self._photos = photos
        self._ended_by = signal.SIGTERM
        self.outcome = Outcome()

    def run(self) -> int:
        """Send the photos, and say what has become of them; the exit status."""
        try:
            asyncio.run(self.work())
        except EndedError as error:
            return self.finish(SOME_FAILED, str(error), error.to_do)
        except OSError as error:
            return self.finish(SOME_FAILED, str(error))
        except KeyboardInterrupt:
            return self.finish(128 + signal.SIGINT, "stopped")
        except asyncio.CancelledError:
            return self.finish(128 + self._ended_by, "stopped")
        return self.finish(SOME_FAILED if self.outcome.failures else ALL_DONE)

    async def work(self) -> None:
        """All photos; raises `EndedError`, or `OSError` where results cannot be written."""
        if (this := asyncio.current_task()) is not None:
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` has it: the run goes on
                    asyncio.get_running_loop().add_signal_handler(number, self._end, this, number)
        options, console = self._options, Console(stderr=True, highlight=False)
        async with self._contact.client(options.patience_s, options.wait_s) as client:
            waiting = f"analyze: no edge at {client.url}: waiting for it, up to {options.wait_s:.0f} s"
            shown = Shown(console, len(self._photos), waiting, as_json=options.as_json)
            with self._records.in_use(self._photos), shown:
                running = Run(client, self._ask(), self._records, shown, again=options.again)
                self.outcome = running.outcome
                await running.all(self._photos, options.concurrency)

    def _end(self, task: asyncio.Task[Any], number: signal.Signals) -> None:
        self._ended_by = number
        task.cancel()

    def finish(self, status: int, ended: str | None = None, to_do: str = GOES_ON) -> int:
        """Say what has become of the photos; `status`. `ended`: why the run went no further; `to_do`: what is next."""
        try:
            self._records.write_failures([failure.as_json() for failure in self.outcome.failures])
        except OSError as error:  # a full disk, of which the run may have died
            status, ended = status or SOME_FAILED, ended or str(error)
        for line in summary(self.outcome, len(self._photos), self._records):
            _say(line)
        if ended is not None:
            _say(f"analyze: {printable(ended)}. {to_do}")
        return status

    def _ask(self) -> Ask:
        method, slow = self._options.call.replace("-", "_"), self._options.call in SLOW

        async def ask(client: AsyncClient, photo: Path, on_wait: OnWait, on_progress: OnProgress) -> Answer[Any]:
            telling: dict[str, Any] = {"on_wait": on_wait} | ({"on_progress": on_progress} if slow else {})
            answer: Answer[Any] = await getattr(client, method)(photo, **self._wanted, **telling)
            return answer

        return ask


def parameters(options: Options) -> dict[str, object]:
    """What is sent with every photo; raises `UsageError` for what the call does not have, `ValueError` for no text."""
    known = set(get_type_hints(PARAMETERS[options.call])) - {"lang", "mask"}
    wanted: dict[str, object] = {"lang": options.language or _language(os.environ)}
    for each in options.parameters:
        name, equals, value = each.partition("=")
        if not equals or name not in known:
            names = ", ".join(sorted(known)) or "no parameters"
            raise UsageError(f"--set {each}: NAME=VALUE; {options.call} has {names}")
        wanted[name] = value
    form_fields(wanted)
    if options.mask and options.call != "grow":
        raise UsageError("--mask: only grow takes one")
    return wanted


def _language(environment: Mapping[str, str]) -> str:
    """The terminal's language where the service has it, else English."""
    said = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
    return "zh" if said.startswith("zh") else "en"


def _say(line: str) -> None:
    try:
        sys.stderr.write(f"{line}\n")
    except OSError:  # the terminal is lost; Python, at its end, would try once more, and exit with 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
