"""One edge's pool as lines for a terminal, as wide as that is; pure text, made from what `/admin/pool` answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hairmesh.plain import printable

EVIDENCE_COLUMNS = 32
"""What a worker's state rests on stands beside it where there is so much room, else on a line of its own."""
COLUMNS = ("worker", "priority", "state", "cause", "cooldown", "in flight", "evidence")
BELOW = ("priority", "evidence")
"""Below a worker's first line."""
EVIDENCE_LINES = 3
"""At most so many for one worker."""
GAP = "  "
TEXT_CHARACTERS = 4_000
"""Nobody reads more of one text."""
NO_CHANGE = re.compile(r"^(\w+) → \1 ")
"""Begins an entry of the history that is about another cause or other evidence, and no other state."""
STATE_STYLES: Mapping[str, str] = {
    "SERVING": "green",
    "UNKNOWN": "yellow",
    "DRAINING": "yellow",
    "NOT_SERVING": "red",
    "EJECTED": "bold red",
}

CANNOT: Mapping[str, str] = {"growth": "grow hair"}
"""Capabilities in words."""

Pool = Mapping[str, Any]
Worker = Mapping[str, Any]


def exit_code(pool: Pool) -> int:
    """For scripts: 0 when all workers are online, 1 when some are not, 2 when none is."""
    online = pool["online"]
    if online["workers_healthy"] == 0:
        return 2
    return 0 if online["workers_healthy"] == online["workers_total"] else 1


def duration(seconds: float) -> str:
    """A time as people say it: `3.2 s`, `42 s`, `7 min`, `5 h`, `3 d`."""
    for limit, unit_s, unit in ((10, 1, ""), (120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / unit_s:.0f} {unit}" if unit else f"{seconds:.1f} s"
    return f"{seconds / 86_400:.0f} d"


@dataclass(frozen=True, slots=True)
class View:
    """What is known of an edge at one moment."""

    url: str
    pool: Pool | None = None
    """Its last answer."""
    problem: str = ""
    """Why there is no newer one."""
    silent_s: float = 0.0
    """For how long there has been none, in s."""
    fits: bool = False
    """Whether it must fit on one screen: then workers in trouble come first, and the others may be left out."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines as wide as the terminal is now."""
        pool = None if self.pool is None else _harmless(self.pool)
        head = list(self._head(pool))
        yield from head
        if pool is None:
            return
        yield Text()
        width, workers = options.max_width, list(pool["workers"])
        header, blocks = _table(workers, width, console)
        yield header
        if self.fits:
            above = 2 + sum(len(line.wrap(console, width)) for line in head)
            blocks = _most_urgent(workers, blocks, options.max_height - above)
        for line in chain.from_iterable(blocks):
            yield _faded(line) if self.problem else line
        if len(blocks) < len(workers):
            yield Text(f"… and {len(workers) - len(blocks)} more", style="dim")

    def _head(self, pool: Pool | None) -> Iterator[Text]:
        who, *lines = [Text(f"edge at {self.url}", style="bold")] if pool is None else _summary(self.url, pool)
        if not self.problem:
            yield from (who, *lines)
            return
        yield who if pool is None else _faded(who)
        problem = printable(self.problem)
        yield Text(f"edge has not answered for {duration(self.silent_s)}: {problem}", style="bold red")
        yield from map(_faded, lines)


def _harmless(value: Any) -> Any:
    """The same with every text as one line that a terminal shows and never obeys: workers name themselves, and say why
    they are out.
    """
    if isinstance(value, str):
        return printable(value, TEXT_CHARACTERS)
    if isinstance(value, Mapping):
        return {key: _harmless(inner) for key, inner in value.items()}
    return [_harmless(inner) for inner in value] if isinstance(value, list) else value


def _faded(line: Text) -> Text:
    """As it was when the edge answered last: nothing in it is news."""
    return Text(line.plain, style="dim")


def _summary(url: str, pool: Pool) -> Iterator[Text]:
    """Who answers, who is online, what waits, and what an operator should know."""
    edge, configuration, online, queue = pool["edge"], pool["configuration"], pool["online"], pool["queue"]
    since = configuration["applied_at"].replace("T", " ").replace("+00:00", " UTC")
    yield _joined(Text(f"edge {edge['id']} at {url}", style="bold"), f"up {duration(edge['uptime_s'])}")
    yield Text(f"configuration {configuration['version']} ({configuration['content_hash']}) in force since {since}")
    yield _joined(
        Text(
            f"{online['workers_healthy']} of {online['workers_total']} workers online",
            style=("bold green", "bold yellow", "bold red")[exit_code(pool)],
        ),
        f"primaries {online['workers_primary_healthy']} of {online['workers_primary_total']}",
        f"able to grow hair {online['growth_capable']}",
    )
    yield _joined(
        f"inside {queue['inside']} of {queue['max_in_flight']}",
        f"waiting {queue['waiting_fast']} fast, {queue['waiting_slow']} slow",
        f"outside {queue['waiting_outside']}",
        *(() if pool["braked"] else ("brake off",)),
    )
    if pool["braked"]:
        cause = pool.get("shared_cause") or "not told"
        yield Text(f"brake ON, shared cause {cause}: workers come back by single trial calls", style="bold red")
    if pool.get("drill"):
        yield Text("alert drill ON: /monitor answers 503, however the workers are", style="bold red")
    if behind := [worker["address"] for worker in pool["workers"] if worker.get("former_password")]:
        words = "an edge that restarts does not get in there"
        yield Text(f"former password still in use at {', '.join(behind)}: {words}", style="bold yellow")
    if configuration["problems"]:
        yield Text(f"the file is not in force: {'; '.join(configuration['problems'])}", style="bold red")
    if configuration["awaiting_restart"]:
        yield Text(f"waits for a restart: {', '.join(configuration['awaiting_restart'])}", style="yellow")


def _joined(*parts: str | Text) -> Text:
    return Text(" · ").join(Text(part) if isinstance(part, str) else part for part in parts)


def _most_urgent(workers: Sequence[Worker], blocks: Sequence[list[Text]], lines: int) -> list[list[Text]]:
    """All `blocks` where so many lines hold them; else as many as leave one to say so, workers in trouble first."""
    if sum(map(len, blocks)) <= lines:
        return list(blocks)
    order = sorted(range(len(workers)), key=lambda number: bool(workers[number]["state"] == "SERVING"))
    ends = accumulate(len(blocks[number]) for number in order)
    room = sum(end < lines for end in ends)
    return [blocks[number] for number in order[: max(1, room)]]


def _table(workers: Sequence[Worker], width: int, console: Console) -> tuple[Text, list[list[Text]]]:
    """The heading, and for each worker a line with its evidence beside it, or where the terminal is narrow below it."""
    rows = [[Text(name.upper(), style="dim") for name in COLUMNS], *map(_cells, workers)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
    widths[0] = min(widths[0], max(16, width // 3))
    widths[-1] = width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
    if widths[-1] >= EVIDENCE_COLUMNS:
        blocks = []
        for row in rows:
            evidence, *more = _folded(row[-1], widths[-1], console)
            beside = _aligned([*row[:-1], evidence], widths)
            blocks.append([beside, *(_indented(line, width - widths[-1]) for line in more)])
        return blocks[0][0], blocks[1:]
    above = [index for index, name in enumerate(COLUMNS) if name not in BELOW]
    widths = [widths[index] for index in above]
    widths[-1] = max(1, width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1))
    header, *lines = (_aligned([row[index] for index in above], widths) for row in rows)
    below = (_joined(*(row[COLUMNS.index(name)] for name in BELOW)) for row in rows[1:])
    folded = ([_indented(line, len(GAP)) for line in _folded(text, width - len(GAP), console)] for text in below)
    return header, [[line, *rest] for line, rest in zip(lines, folded, strict=True)]


def _folded(text: Text, columns: int, console: Console) -> list[Text]:
    """At most `EVIDENCE_LINES` so wide; what is longer still ends in an ellipsis. Never none."""
    lines = list(text.wrap(console, columns))
    last = Text(" ").join(lines[EVIDENCE_LINES - 1 :])
    last.truncate(columns, overflow="ellipsis")
    return [*lines[: EVIDENCE_LINES - 1], last] if len(lines) >= EVIDENCE_LINES else lines or [Text()]


def _indented(line: Text, columns: int) -> Text:
    return Text(" " * columns) + line


def _aligned(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    """One line; what is too long for its place ends in an ellipsis."""
    placed = [cell.copy() for cell in cells]
    for cell, columns in zip(placed[:-1], widths[:-1], strict=True):
        cell.truncate(columns, overflow="ellipsis", pad=True)
    placed[-1].truncate(widths[-1], overflow="ellipsis")
    line = Text(GAP).join(placed)
    line.rstrip()
    return line


def _cells(worker: Worker) -> list[Text]:
    """As `COLUMNS` has them."""
    return [
        Text(worker["address"]),
        _priority(worker),
        Text(worker["state"], style=STATE_STYLES.get(worker["state"], "")),
        Text(worker["cause"] or ""),
        Text(duration(worker["cooldown_left_s"]) if worker["cooldown_left_s"] else ""),
        _in_flight(worker),
        _evidence(worker),
    ]


def _priority(worker: Worker) -> Text:
    priority = "primary" if worker["primary"] else "backup"
    return Text(f"{priority}, leaving" if worker["leaving"] else priority)


def _in_flight(worker: Worker) -> Text:
    call, stage = worker["in_flight"], worker["stage"] or ""
    if call is not None:
        left = " left behind" if call["left_behind"] else ""
        return Text(f"{duration(call['age_s'])} {stage}{left}".strip())
    return Text(f"other edge {stage}".strip(), style="dim") if worker["taken_by_others"] else Text()


def _evidence(worker: Worker) -> Text:
    """What its state rests on, since when or how long ago, or what was decided since; how long ago the last probe was,
    and what it says that differs; of one that serves also what it cannot do, and why.
    """
    evidence, serves = worker["evidence"] or "not heard of yet", worker["state"] == "SERVING"
    probe = worker.get("last_probe") or {}
    good = serves and probe.get("result") == "GOOD"
    parts: list[str | Text] = [evidence]
    if worker["history"]:
        last = worker["history"][0]
        passed, what = duration(last["age_s"]), NO_CHANGE.sub("", last["what"])
        if not what.endswith(evidence):
            parts.append(f"{passed} ago: {what}")
        elif good and probe["evidence"] == evidence:  # the usual one: said by "online" and "probed"
            parts = [f"online {passed}"]
        else:
            parts.append(f"online {passed}" if serves else f"{passed} ago")
    if probe:
        ago = f"{duration(probe['age_s'])} ago"
        differs = probe["evidence"] != evidence and not good
        parts.append(f"last probe {ago}: {probe['evidence'].removeprefix('probe: ')}" if differs else f"probed {ago}")
    if serves:
        lacks = worker.get("lacks") or {}  # an edge of an older version does not tell
        parts += (Text(f"cannot {CANNOT.get(name, name)}: {why}", style="yellow") for name, why in lacks.items())
    return _joined(*parts)
