"""How edge and worker read a configuration file, which may at any moment be anything at all."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from hairmesh.plain import NAME_CHARACTERS, printable

MAX_BYTES = 1024 * 1024
"""Ten thousand workers take a quarter of it."""
MAX_COMPLAINTS = 20
"""So many of what is wrong with one file are told, one line each; then only how many more there are."""


_BYTE_ORDER_MARK = "\ufeff"
_YAML = re.compile(r"---|%YAML|[A-Za-z_][A-Za-z0-9_]*:(?:\s|$)")
_COMMA_TOO_MANY = re.compile(r",\s*[]},]")
_RUN_ON = re.compile(r"[0-9][A-Za-z%]")
_BEGINS = (
    (("//", "/*", "#"), "comments are not allowed"),
    ("'", "single quotes, where JSON takes double ones"),
    (("True", "False", "None"), "JSON has true, false and null"),
)
"""How what is no JSON begins, and what to say of it."""
_SAID = (
    ("Expecting ',' delimiter", "a comma is missing before it"),
    ("Expecting ':' delimiter", "a colon is missing before it"),
    ("Expecting property name", "a key stands in double quotes"),
    ("Extra data", "something follows behind its end"),
    ("Invalid control character", "a line break, or the like, inside of text"),
    ("Invalid \\", "a backslash inside of text is written twice"),
    ("", "neither text in double quotes nor a number, true, false, null, a list or an object"),
)
"""How the standard library's words begin, and ours; the first that fits."""


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
        whole = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError:
        raise ConfigFileError("not JSON: not UTF-8") from None
    try:
        return json.loads(whole, object_pairs_hook=_once_each)
    except json.JSONDecodeError as error:
        raise ConfigFileError(_why_no_json(whole, error)) from None
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


def _why_no_json(text: str, error: json.JSONDecodeError) -> str:
    """What people take for JSON, or forget in it, named by what stands where it ended, and where."""
    if not text.strip():
        return "the file is empty"
    if text.startswith(_BYTE_ORDER_MARK):
        return "not JSON: begins with a byte order mark: save it as UTF-8 without one"
    before, here = text[: error.pos].rstrip(), text[error.pos :].lstrip()
    if not before and _YAML.match(here):
        cause = "this looks like YAML"
    elif not here or error.msg.startswith("Unterminated string"):
        cause = "cut off: what begins before is not closed"
    elif _COMMA_TOO_MANY.match(before[-1:] + here) or _COMMA_TOO_MANY.match(here):
        cause = "a comma with nothing behind it"
    elif _RUN_ON.fullmatch(text[error.pos - 1 : error.pos + 1]):
        cause = "a unit, or text without quotes"
    else:
        cause = next((words for begins, words in _BEGINS if here.startswith(begins)), "")
        cause = cause or next(words for begins, words in _SAID if error.msg.startswith(begins))
    return f"not JSON: line {error.lineno}, column {error.colno}: {cause}"


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _value in pairs]
        twice = next(key for key in content if keys.count(key) > 1)
        raise ConfigFileError(f"{printable(twice, NAME_CHARACTERS)}: stands there twice")
    return content
