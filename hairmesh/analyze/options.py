"""The options of the command line, as they were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CallName = Literal["measure", "styles", "grow", "features", "hairlines", "masks", "special-points"]
Language = Literal["zh", "en"]
KEY_VARIABLE = "HAIRMESH_API_KEY"


class UsageError(Exception):
    """The command cannot be carried out as it was given; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Options:
    """See `command.analyze`."""

    photos: Sequence[Path]
    call: CallName
    parameters: Sequence[str]
    mask: Path | None
    out: Path
    url: str | None
    api_key_file: Path | None
    ca: Path | None
    language: Language | None
    concurrency: int
    patience_s: float
    wait_s: float
    recursive: bool
    again: bool
    as_json: bool
    insecure: bool
