"""`hairmesh config`: whether a file is good, what may stand in it, what a key means."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from edge.settings import ConfigError, parse
from hairmesh import config_file
from hairmesh.config_complaints import NO_SUCH_KEY, marked_for
from hairmesh.config_nodes import meant, names, plain_name, sections
from hairmesh.config_schema import FILES, SIDES, SideMissingError, SideName, of
from hairmesh.config_words import keys, section_text
from hairmesh.plain import NAME_CHARACTERS, printable

REFUSED_STATUS = 2
"""A file is refused, or there is no such key; the servers' own `--check` ends so too."""

PASSWORD_CHARACTERS = 16
"""Of a password between edge and workers, as of an admin token. Shorter ones are only warned of: a rotation on several
hosts must not stop at one that has been in force for long."""


class UnknownFileError(Exception):
    """Neither an edge's configuration nor a worker's."""


def check(files: list[Path]) -> int:
    """Say of every file whether it is good, and everything that is wrong with it; the exit status."""
    status = 0
    for path in files:
        warnings: list[str] = []
        try:
            side, complaints, warnings = _judge(path)
        except (config_file.ConfigFileError, UnknownFileError, SideMissingError) as error:
            side, complaints = None, [str(error)]
        for warning in warnings:
            print(f"{path}: warning: {warning}", file=sys.stderr)
        if complaints:
            status = REFUSED_STATUS
            for complaint in complaints:
                print(f"{path}: {complaint}", file=sys.stderr)
        else:
            print(f"{path}: good, for the {side}")
    return status


def schema(side: SideName | None) -> int:
    """Print the JSON Schema of one file; of both, by name, where none is asked for. The exit status."""
    try:
        print(json.dumps(of(side) if side else {each: of(each) for each in _installed()}, indent=2))
    except SideMissingError as error:
        return _no(str(error))
    return 0


def explain(name: str | None) -> int:
    """Print what a key, a section or a variable means, or every key in a line; the exit status."""
    return _list() if name is None else _explain(name)


def side_of(content: object) -> SideName:
    """Whose configuration it is; raises `UnknownFileError`."""
    if not isinstance(content, dict):
        raise UnknownFileError("must be a JSON object")
    marked = marked_for(content)
    if len(marked) == 1:
        return next(side for side in SIDES if side in marked)
    known = {side: len(content.keys() & of(side)["properties"].keys()) for side in _installed()}
    likely = [side for side in known if known[side] == max(known.values())]
    if len(likely) != 1 or not known[likely[0]]:
        raise UnknownFileError(
            "neither a configuration of the edge nor of a worker: it has the keys of none, or of both"
        )
    return likely[0]


def _installed() -> list[SideName]:
    """Whose configuration is known here: an edge's host needs nothing of a worker's."""
    return [side for side in SIDES if _is_installed(side)]


def _is_installed(side: SideName) -> bool:
    try:
        of(side)
    except SideMissingError:
        return False
    return True


def _judge(path: Path) -> tuple[SideName, list[str], list[str]]:
    """Whose it is, what is wrong with it, and what is good but hardly meant."""
    content = config_file.read(path)
    values = config_file.decode(content)
    side = side_of(values)
    of(side)  # says what to install before anything else fails for want of it
    complaints = _complaints(side, content)
    return side, complaints, [] if complaints else list(_short_passwords(values))


def _short_passwords(values: object) -> Iterator[str]:
    """Of a file that is good."""
    content = values if isinstance(values, dict) else {}
    passwords = {"shared_password": content.get("shared_password", "")} | {
        f"accept_passwords.{place}": password for place, password in enumerate(content.get("accept_passwords", ()))
    }
    for place, password in passwords.items():
        if 0 < len(password) < PASSWORD_CHARACTERS:
            yield f"{place}: has fewer than {PASSWORD_CHARACTERS} characters, and can be guessed by trying"


def _complaints(side: SideName, content: bytes) -> list[str]:
    """By the file alone: no certificate, folder or variable of this machine is looked at."""
    if side == "edge":
        try:
            parse(content)
        except ConfigError as error:
            return str(error).splitlines()
        return []
    from worker import settings  # noqa: PLC0415  (see config_schema)

    try:
        settings.parse(content.decode(), {}, origin="")
    except settings.SettingsError as error:
        return list(error.complaints)
    return []


def _list() -> int:
    for side in _installed():
        print(f"{FILES[side]}\n")
        for key in keys(side):
            print(f"  {key.name:<38} {key.default or 'must be given':<28} {key.kind}; {key.effect}")
        print()
    print("`hairmesh config explain KEY` says what one of them means.")
    return 0


def _explain(name: str) -> int:
    found = list(_found(name))
    if not found:
        known = [each for side in _installed() for each in names(of(side))]
        return _no(f"{printable(name, NAME_CHARACTERS)}: {NO_SUCH_KEY}{meant(name, known)}")
    print("\n\n".join(found))
    return 0


def _found(name: str) -> Iterator[str]:
    wanted = plain_name(name)
    for side in _installed():
        yield from (section_text(side, *section) for section in sections(of(side)) if section[0] == wanted)
        yield from (key.text() for key in keys(side) if wanted in {key.name, key.variable})


def _no(problem: str) -> int:
    print(f"hairmesh config: {problem}", file=sys.stderr)
    return REFUSED_STATUS
