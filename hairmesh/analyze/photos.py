"""Which photos are sent, and where the answer to each is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hairmesh.analyze.options import UsageError

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".heif", ".hif"}
)
"""Names of files in a folder that are taken for photos. A file given by its name is always taken."""

Identity = tuple[int, int]
"""Device and inode: the same for all names of one file or folder."""


@dataclass(frozen=True, slots=True)
class Photo:
    """One photo."""

    path: Path
    """As given on the command line, or as found below a folder given there."""
    place: Path
    """Relative to the output folder: the names of the record and the pictures begin with this path."""


def find(given: Iterable[Path], out: Path, *, recursive: bool) -> list[Photo]:
    """Every photo once, in order.

    Raises `UsageError` where the answers to two would be one file, `OSError` for a folder that cannot be read.

    Links are followed, and nothing is taken twice: a file with two names counts by the first. Hidden files and folders
    are passed over, and so is the output folder: its pictures are no photos.
    """
    walk = _Walk(out, recursive=recursive)
    photos: dict[Path, Photo] = {}
    for path in given:
        for found in walk.photos(path):
            photo = Photo(found, place(found))
            other = photos.setdefault(photo.place, photo)
            if other is not photo:
                raise UsageError(
                    f"{found} and {other.path} would have their answers in one place: give another --out to one of them"
                )
    return list(photos.values())


def place(photo: Path) -> Path:
    """The photo's path from here, and from the root for one that does not lie below here: the same in every run."""
    whole = Path(os.path.abspath(photo))  # noqa: PTH100  (`resolve` would replace the names that people gave to links)
    here = Path.cwd()
    return whole.relative_to(here if whole.is_relative_to(here) else whole.anchor)


class _Walk:
    """Walks through folders, and remembers which files and folders it has met."""

    def __init__(self, out: Path, *, recursive: bool) -> None:
        self._recursive = recursive
        self._seen: set[Identity] = {_identity(out)} if out.exists() else set()

    def photos(self, path: Path) -> Iterator[Path]:
        """The photo, or those in the folder."""
        if path.is_dir():
            yield from self._inside(path)
        elif self._is_new(path):
            yield path

    def _inside(self, folder: Path) -> Iterator[Path]:
        if not self._is_new(folder):
            return
        # Files before folders: of two names for one photo the nearer counts.
        for path in sorted(folder.iterdir(), key=lambda each: (each.is_dir(), each.name)):
            if path.name.startswith("."):
                continue
            if path.is_dir():
                if self._recursive:
                    yield from self._inside(path)
            elif path.suffix.lower() in SUFFIXES and self._is_new(path):
                yield path

    def _is_new(self, path: Path) -> bool:
        try:
            identity = _identity(path)
        except OSError:  # a link to nothing: said when it is read
            return True
        new = identity not in self._seen
        self._seen.add(identity)
        return new


def _identity(path: Path) -> Identity:
    status = path.stat()
    return status.st_dev, status.st_ino
