"""Files that are there whole, or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def saved_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write; it gets its name at the end, and is removed when that does not come."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # its own, whoever else writes that file
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
