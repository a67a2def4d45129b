"""Files that are written whole or not at all."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_PART = re.compile(r"\.(?P<whole>.+)\.[0-9a-f]{8}\.part", re.DOTALL)


def whole_of(part: str) -> str | None:
    """The name that the piece of a file was to get, by the piece's own; None where that is none of `saved_whole`.

    One that nobody writes any more was left by a program that was killed.
    """
    named = _PART.fullmatch(part)
    return named and named["whole"]


@contextmanager
def saved_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file open for writing, which gets the name `path` when the block ends, and is removed when the block raises."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # two writers of one path do not share it
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
