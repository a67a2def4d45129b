"""The pictures of an answer: what each is called, and where it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_KEY = re.compile(r"(?P<kind>[a-z0-9_]{0,64}?)_?image_url")
_NAMED_BY = ("style", "part")
"""What tells one entry of a list from the others."""
_NAME = re.compile(r"[a-z0-9_]{1,64}")
"""Files are called by it: whatever a service says, it leads out of no folder."""


def pictures(data: Mapping[str, Any]) -> dict[str, str]:
    """URLs by name: `annotated`; `round`, `round_grown` (by style); `hair` (by part); `marked`, `grown`.

    `data` is an answer's, as JSON has it. What was not made is not there.
    """
    return dict(_found(data, ""))


def _found(data: Mapping[str, Any], entry: str) -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        if isinstance(value, str) and (named := _KEY.fullmatch(key)):
            yield "_".join(filter(None, (entry, named["kind"]))) or "picture", value
        elif isinstance(value, list):
            for number, each in enumerate(value):
                if isinstance(each, dict):
                    yield from _found(each, _name(each, number))


def _name(entry: Mapping[str, Any], number: int) -> str:
    names = (entry[key] for key in _NAMED_BY if isinstance(entry.get(key), str))
    return next((name for name in names if _NAME.fullmatch(name)), str(number + 1))
