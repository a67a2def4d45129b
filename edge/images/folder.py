"""Pictures as files in one folder: what is done with them, one thing at a time. Everything here may block.

Files are written under a hidden name and renamed when complete: a reader sees a whole picture or none, and one that has
begun to read sees it to its end, whatever is removed meanwhile. That the pictures of a request have been removed is
marked by an empty hidden file, whose age says when: whoever writes one of them later, in another process too, sees it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from edge.images.retention import Entry
from edge.images.store import ID, TAG, TAG_DIGITS, is_removed, new_id

_PICTURE = re.compile(rf"{ID.pattern}\.png")
_HELPER = re.compile(rf"\.(?:{ID.pattern}\.tmp|{TAG.pattern}\.removed)")


def file_name(picture_id: str) -> str:
    """What a picture's file is called."""
    return f"{picture_id}.png"


class Folder:
    """A folder that belongs to us, shared with other edges or not. All methods raise `OSError`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def make(self) -> None:
        """Have it be there, for this user only."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, picture_id: str, data: bytes) -> int:
        """Write a whole picture or none; the bytes that are free on the disk then."""
        hidden = self._path / f".{picture_id}.tmp"
        try:
            descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                facts = os.fstatvfs(descriptor)
            finally:
                os.close(descriptor)
            hidden.rename(self._picture(picture_id))
        except OSError:
            hidden.unlink(missing_ok=True)
            raise
        return facts.f_bavail * facts.f_frsize

    def try_out(self) -> int:
        """Make the folder and write in it; the bytes that are free on the disk."""
        self.make()
        picture_id = new_id("")
        free_bytes = self.write(picture_id, b"probe")
        self._picture(picture_id).unlink()
        return free_bytes

    def read(self, picture_id: str) -> bytes | None:
        """A picture; None where there is none."""
        try:
            return self._picture(picture_id).read_bytes()
        except FileNotFoundError:
            return None

    def remove(self, picture_ids: Iterable[str]) -> dict[str, int]:
        """Remove pictures; those that were there, and their bytes."""
        removed = {}
        for picture_id in picture_ids:
            path = self._picture(picture_id)
            try:
                size = path.lstat().st_size
                path.unlink()
            except FileNotFoundError:
                continue
            removed[picture_id] = size
        return removed

    def remove_tagged(self, tag: str) -> dict[str, int]:
        """Remove all pictures whose ids begin with `tag`; which, and their bytes."""
        names = (entry.name for entry in self._entries() if entry.name.startswith(tag))
        return self.remove([name.removesuffix(".png") for name in names if _PICTURE.fullmatch(name)])

    def mark_removed(self, tag: str) -> None:
        """Have whoever writes pictures of this tag from now on see that they were removed at this moment."""
        mark = self._mark(tag)
        mark.touch(mode=0o600)
        now_s = time.time()
        os.utime(mark, (now_s, now_s))

    def is_wanted(self, picture_id: str, began_s: float) -> bool:
        """Whether the pictures of its request, which began then, have not been removed since."""
        try:
            removed_s = self._mark(picture_id[:TAG_DIGITS]).stat().st_mtime
        except FileNotFoundError:
            return True
        return not is_removed(removed_s, began_s)

    def walk(self) -> Iterator[Entry]:
        """See `Shelf.walk`."""
        for entry in self._entries():
            is_picture = _PICTURE.fullmatch(entry.name) is not None
            if not is_picture and _HELPER.fullmatch(entry.name) is None:
                continue
            try:
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # renamed or removed meanwhile
                continue
            yield Entry(entry.name, is_picture, facts.st_mtime, facts.st_size)

    def discard(self, names: Sequence[str]) -> None:
        """See `Shelf.discard`."""
        folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in names:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self._path) as entries:
            yield from entries

    def _picture(self, picture_id: str) -> Path:
        return self._path / file_name(picture_id)

    def _mark(self, tag: str) -> Path:
        return self._path / f".{tag}.removed"
