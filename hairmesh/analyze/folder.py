"""The output folder while a run writes into it: which runs do, and what those before have left half."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from hairmesh.analyze.options import CallName
from hairmesh.client.files import whole_of

PRIVATE = 0o700
"""Mode of new folders: they hold pictures and measurements of faces."""
_OURS = re.compile(rf".+\.(?:{'|'.join(get_args(CallName))})\.(?:json|[^.]+\.png)", re.DOTALL)
"""Names of records, pictures and lists of failures."""


def make(folder: Path) -> None:
    """Make the folder, and those above it. Raises `OSError`."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=PRIVATE, exist_ok=True)


@contextmanager
def in_use(out: Path, folders: Iterable[Path]) -> Iterator[None]:
    """Hold `out` as one of the runs that write below it, and remove from `folders` what those that were killed have
    left half: pieces of patients' pictures. Where another run is under way they may be its own, and stay.

    Raises `OSError` where the folder cannot be made or read.
    """
    make(out)
    descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _locked(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            for folder in folders:
                _sweep(folder)
        _locked(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)  # and with it the lock, as the system does where a run is killed


def _locked(descriptor: int, how: int) -> bool:
    """Whether it is; not where another run holds it, and where the file system knows no locks."""
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def _sweep(folder: Path) -> None:
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            whole = whole_of(entry.name)
            if whole is not None and _OURS.fullmatch(whole) and entry.is_file(follow_symlinks=False):
                Path(entry.path).unlink(missing_ok=True)
