"""Writes into docs/pool.md what stands in the code: the states, the causes, what an end of a call means, the numbers.

`pool_diagram.py` writes; `pool_diagram.py --check` exits 1 when the page is not what it would write. What lies between
`<!-- begin: NAME -->` and `<!-- end: NAME -->` is generated, and so is every value between `<!-- =NAME -->` and
`<!-- / -->`. All words come from the docstrings of the code.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from edge.pool import config, endpoint, events, passive
from edge.pool.config import DispatchConfig, HealthCheckConfig
from edge.pool.endpoint import STAYS, TRANSITIONS, State, Trigger
from edge.pool.events import Cause

PAGE = Path(__file__).resolve().parent.parent / "docs" / "pool.md"
SETTINGS = {"health_check": HealthCheckConfig, "dispatch": DispatchConfig}

BY_CALLS = {passive.Meaning.AUTH: Cause.AUTH, passive.Meaning.FAILED: Cause.PASSIVE}
"""Causes that calls bring about, and not the worker's own word."""
BY_TIME = {
    passive.Meaning.SLOW: "`DEADLINE_EXCEEDED` after a full attempt's time, with progress reported after a share of"
    f" {config.PROGRESS_SHARE:g} of it; or more than {config.LATE_S:g} s after its time, or its time ended in a"
    " standstill of the edge",
    passive.Meaning.SLEPT: "`UNAVAILABLE` without a word of the worker's, the first one on it within"
    f" {config.WAKING_S:g} s after the edge itself stood still for more than {config.SLEPT_S:g} s",
    passive.Meaning.OUT_OF_TIME: "`DEADLINE_EXCEEDED` after a time shorter than a full attempt's",
}
"""What `passive.meaning_of` tells apart by time and progress, not by code and reason."""


class PageError(Exception):
    """The page names something that is not in the code, or lacks a part."""


def words_of(module: ModuleType, owner: str = "") -> Mapping[str, str]:
    """By name: the docstrings below the assignments of a module, or of its class `owner`, each on one line."""
    body: Sequence[ast.stmt] = ast.parse(inspect.getsource(module)).body
    if owner:
        body = next(each.body for each in body if isinstance(each, ast.ClassDef) and each.name == owner)
    words = {}
    for statement, following in pairwise(body):
        if isinstance(statement, ast.AnnAssign):
            target: ast.expr = statement.target
        elif isinstance(statement, ast.Assign):
            target = statement.targets[0]
        else:
            continue
        text = following.value if isinstance(following, ast.Expr) else None
        if isinstance(target, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
            words[target.id] = " ".join(text.value.split())
    return words


def numbers() -> Mapping[str, str]:
    """By name: every default and every constant of `edge.pool.config`, as it is written in prose."""
    found: dict[str, object] = {
        name: value for name, value in vars(config).items() if name.isupper() and isinstance(value, (int, float))
    }
    for settings in SETTINGS.values():
        found |= {each.name: each.default for each in fields(settings)}
    return {name: plain(value) for name, value in found.items()}


def plain(value: object) -> str:
    """A number without needless zeros."""
    if value is None:
        return "off"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,.10g}" if isinstance(value, (int, float)) else str(value)


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def diagram() -> str:
    """The moves from one state to another."""
    moves: dict[tuple[State, State], list[str]] = {}
    for state, row in TRANSITIONS.items():
        for trigger, after in row.items():
            if after is not STAYS and after is not state:
                moves.setdefault((state, after), []).append(short(trigger))
    lines = [f"    {before} --> {after}: {', '.join(triggers)}" for (before, after), triggers in moves.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {State.UNKNOWN}", *lines, "```"])


def short(trigger: Trigger) -> str:
    """Its name, as words."""
    return trigger.name.lower().replace("_", " ")


def states() -> str:
    """What each is, and the whole table of transitions."""
    meaning = words_of(endpoint, "State")
    triggers = words_of(endpoint, "Trigger")
    first = grid(["state", "what it is"], ([f"**{state}**", meaning[state.name]] for state in State))
    heads = ["what happens", *(str(state) for state in State)]
    rows = ([short(trigger), *(after(state, trigger) for state in State)] for trigger in Trigger)
    notes = [f"- *{short(trigger)}*: {triggers[trigger.name]}" for trigger in Trigger if trigger.name in triggers]
    return "\n\n".join([first, grid(heads, rows), "\n".join(notes)])


def after(state: State, trigger: Trigger) -> str:
    """The state that follows, as a cell."""
    if trigger not in TRANSITIONS[state]:
        return "cannot be"
    following = TRANSITIONS[state][trigger]
    if following is STAYS:
        return "–"
    return "another cause" if following is state else f"**{following}**"


def causes() -> str:
    """What leads to each cause."""
    words = words_of(events, "Cause")
    sources: dict[Cause, list[str]] = {cause: [] for cause in Cause}
    for result, cause in endpoint.PROBE_CAUSES.items():
        sources[cause].append(f"probe: {result.name}")
    for code, meaning in passive.BY_CODE.items():
        if meaning in BY_CALLS:
            sources[BY_CALLS[meaning]].append(f"a call ends with `{code}`")
    for word, cause in passive.CAUSES.items():
        sources[cause].append(f"the worker says `{word}`")
    rows = ([f"`{cause}`", words.get(cause.name, ""), ", ".join(sources[cause])] for cause in Cause)
    return grid(["cause", "what it means", "how the pool knows"], rows)


def ends() -> str:
    """What an end of a call does."""
    words = words_of(passive, "Meaning")
    rows = []
    for meaning in passive.Meaning:
        codes = [ended_with(code) for code, means in passive.BY_CODE.items() if means is meaning]
        codes += [
            f"`{code}` with `{reason}`" for (code, reason), means in passive.BY_REASON.items() if means is meaning
        ]
        rows.append([", ".join(codes) or BY_TIME[meaning], words[meaning.name]])
    return grid(["the call ended with", "what it means"], rows)


def ended_with(code: events.Code) -> str:
    """A code, as a cell has it."""
    unless = code in {events.Code.DEADLINE_EXCEEDED, events.Code.UNAVAILABLE}
    return f"`{code}` (unless as below)" if unless else f"`{code}`"


def settings() -> str:
    """What an operator may set."""
    parts = []
    for name, kind in SETTINGS.items():
        words = words_of(config, kind.__name__)
        rows = ([f"`{each.name}`", plain(each.default), words.get(each.name, "")] for each in fields(kind))
        parts.append(f"`{name}`:\n\n" + grid(["setting", "default", "what it is"], rows))
    return "\n\n".join(parts)


def constants() -> str:
    """What no operator needs to set."""
    words, values = words_of(config), numbers()
    rows = ([f"`{name}`", values[name], words[name]] for name in words if name in values)
    return grid(["name", "value", "what it is"], rows)


BLOCKS: Mapping[str, Callable[[], str]] = {
    "diagram": diagram,
    "states": states,
    "causes": causes,
    "ends": ends,
    "settings": settings,
    "constants": constants,
}


def written(page: str) -> str:
    """The page with everything generated put in anew; raises `PageError`."""
    for name, make in BLOCKS.items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise PageError(f"{begin} … {end} must stand on the page once")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n\n{make()}\n\n{end}{rest.partition(end)[2]}"
    values = numbers()

    def value_of(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in values:
            raise PageError(f"no number {name} in edge/pool/config.py")
        return f"<!-- ={name} -->{values[name]}<!-- / -->"

    return re.sub(r"<!-- =(?P<name>\w+) -->.*?<!-- / -->", value_of, page)


def main() -> None:
    """Write, or check."""
    page = PAGE.read_text()
    fresh = written(page)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(fresh)
    elif fresh != page:
        sys.exit("docs/pool.md is not what the code says: run scripts/pool_diagram.py")


if __name__ == "__main__":
    main()
