"""How edge and worker read a configuration file, which may at any moment be anything at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from hairmesh.plain import NAME_CHARACTERS, printable

MAX_BYTES = 1024 * 1024
"""Ten thousand workers take a quarter of it."""
MAX_COMPLAINTS = 20
"""So many of what is wrong with one file are told, one line each; then only how many more there are."""

NO_SUCH_KEY = "there is no such key"
WORDS = {
    "extra_forbidden": NO_SUCH_KEY,
    "unexpected_keyword_argument": NO_SUCH_KEY,
    "missing": "must be given",
}
"""What edge and worker say instead of pydantic, by its type of error."""


class ConfigFileError(Exception):
    """It cannot be used; the message says why, and never a value: it could be a password."""


def read(path: Path) -> bytes:
    """What the file holds; raises `ConfigFileError`.

    Only a regular file is read, and nothing is waited for but the file system, which may hang for good: callers that
    must not hang with it have a thread for this.
    """
    try:
        with open(path, "rb", opener=_unwaiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigFileError("not a regular file")
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigFileError(error.strerror or type(error).__name__) from None
    if len(content) > MAX_BYTES:
        raise ConfigFileError(f"larger than {MAX_BYTES} bytes")
    return content


def decode(text: str | bytes) -> object:
    """The JSON value that `text` is; raises `ConfigFileError`.

    A key that stands twice in one object is refused: whichever counted, half of the readers would see the other.
    """
    try:
        return json.loads(text if isinstance(text, str) else text.decode(), object_pairs_hook=_once_each)
    except UnicodeDecodeError:
        raise ConfigFileError("not JSON: not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ConfigFileError(f"not JSON: line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):  # thousands of digits, or of brackets
        raise ConfigFileError("not JSON that could be a configuration") from None


def complaints(found: Iterable[str]) -> list[str]:
    """`found` in a length that a log and a terminal can bear."""
    several = iter(found)
    told = [printable(line) for line in islice(several, MAX_COMPLAINTS)]
    more = sum(1 for _line in several)
    return [*told, f"and {more} more"] if more else told


def _unwaiting(path: str, flags: int) -> int:
    """Open without waiting for somebody to write into a named pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _value in pairs]
        twice = next(key for key in content if keys.count(key) > 1)
        raise ConfigFileError(f"{printable(twice, NAME_CHARACTERS)}: stands there twice")
    return content
