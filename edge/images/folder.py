"""Pictures as files in one folder: what is done with them, one thing at a time. Everything here may block.

Files are written under a hidden name and renamed when complete: a reader sees a whole picture or none, and one that has
begun to read sees it to its end, whatever is removed meanwhile. That the pictures of a request have been removed is
marked by an empty hidden file, whose age says when: whoever writes one of them later, in another process too, sees it.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from edge.images.retention import Entry
from edge.images.store import ID, TAG, new_id

_PICTURE = re.compile(rf"{ID.pattern}\.png")
_HELPER = re.compile(rf"\.(?:{ID.pattern}\.tmp|{TAG.pattern}\.removed)")

_NO_FILE = frozenset({errno.ELOOP, errno.ENXIO})
"""What is said of a symbolic link, and of a socket."""


def file_name(picture_id: str) -> str:
    """What a picture's file is called."""
    return f"{picture_id}.png"


class Disk(NamedTuple):
    """How much goes on a disk."""

    free_bytes: int
    bytes: int
    """When it is empty."""


class Folder:
    """A folder that belongs to us, shared with other edges or not. All methods raise `OSError`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def make(self) -> None:
        """Have it be there, for this user only."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, picture_id: str, data: bytes) -> Disk:
        """Write a whole picture or none; the disk then."""
        with self._hidden(picture_id, data) as (hidden, disk):
            hidden.rename(self._picture(picture_id))
        return disk

    def try_out(self) -> Disk:
        """Make the folder and write in it; the disk."""
        self.make()
        with self._hidden(new_id(""), b"probe") as (hidden, disk):
            hidden.unlink()
        return disk

    @contextmanager
    def _hidden(self, picture_id: str, data: bytes) -> Iterator[tuple[Path, Disk]]:
        """A complete file that is no picture yet, and the disk; gone if anything fails."""
        hidden = self._path / f".{picture_id}.tmp"
        try:
            descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                facts = os.fstatvfs(descriptor)
            finally:
                os.close(descriptor)
            reserved = facts.f_bfree - facts.f_bavail
            yield hidden, Disk(facts.f_bavail * facts.f_frsize, (facts.f_blocks - reserved) * facts.f_frsize)
        except OSError:
            with suppress(OSError):  # what was wrong first is what is told
                hidden.unlink(missing_ok=True)
            raise

    def read(self, picture_id: str) -> bytes | None:
        """A picture; None where there is none: links, pipes and the like are none of ours, whoever put them there.

        A file without content is what a power failure can leave.
        """
        try:
            # Not blocking: a pipe would wait for somebody who writes.
            descriptor = os.open(self._picture(picture_id), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in _NO_FILE:
                return None
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        with open(descriptor, "rb") as file:  # noqa: PTH123  (a descriptor has no path)
            return file.read() or None

    def remove(self, picture_ids: Iterable[str]) -> dict[str, int]:
        """Remove pictures; those that were there, and their bytes. All are tried before the first refusal is raised."""
        removed = {}
        refusal: OSError | None = None
        for picture_id in picture_ids:
            path = self._picture(picture_id)
            try:
                facts = path.lstat()
                if not stat.S_ISREG(facts.st_mode):
                    continue
                path.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                refusal = refusal or error
            else:
                removed[picture_id] = facts.st_size
        if refusal is not None:
            raise refusal
        return removed

    def remove_tagged(self, tag: str) -> dict[str, int]:
        """Remove all pictures whose ids begin with `tag`; which, and their bytes."""
        names = (entry.name for entry in self._entries() if entry.name.startswith(tag))
        return self.remove([name.removesuffix(".png") for name in names if _PICTURE.fullmatch(name)])

    def mark_removed(self, tag: str) -> None:
        """Have whoever writes pictures of this tag from now on see that they were removed at this moment."""
        descriptor = os.open(self._mark(tag), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            now_s = time.time()
            os.utime(descriptor, (now_s, now_s))
        finally:
            os.close(descriptor)

    def removed_s(self, tag: str) -> float:
        """When the pictures of this tag were removed last, in Unix time; long ago where they never were."""
        try:
            return self._mark(tag).lstat().st_mtime
        except FileNotFoundError:
            return -math.inf

    def walk(self) -> Iterator[Entry]:
        """See `Shelf.walk`."""
        for entry in self._entries():
            if not entry.is_file(follow_symlinks=False):
                continue
            is_picture = _PICTURE.fullmatch(entry.name) is not None
            if not is_picture and _HELPER.fullmatch(entry.name) is None:
                continue
            try:
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # renamed or removed meanwhile
                continue
            yield Entry(entry.name, is_picture, facts.st_mtime, facts.st_size)

    def discard(self, names: Sequence[str]) -> Mapping[str, str]:
        """See `Shelf.discard`."""
        stay = {}
        folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in names:
                try:
                    os.unlink(name, dir_fd=folder)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    stay[name] = error.strerror or type(error).__name__
        finally:
            os.close(folder)
        return stay

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self._path) as entries:
            yield from entries

    def _picture(self, picture_id: str) -> Path:
        return self._path / file_name(picture_id)

    def _mark(self, tag: str) -> Path:
        return self._path / f".{tag}.removed"
