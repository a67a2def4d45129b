"""A file system of its own that can really be filled, emptied and made read-only."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class MountRefusedError(Exception):
    """This user may not mount anything here; the message is mount's."""


@dataclass(frozen=True)
class SmallDisk:
    """A mounted tmpfs."""

    path: Path

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"

    def fill(self, *, leave_bytes: int = 0) -> None:
        """Take all the space but `leave_bytes`, at once; looks again while somebody else takes of it meanwhile."""
        with self._ballast.open("ab") as file:
            while (left_bytes := _free_bytes(file.fileno()) - leave_bytes) > 0:
                with _unless_full():
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, left_bytes)

    def free(self) -> None:
        """Give it back."""
        self._ballast.unlink()

    def remount(self, how: str) -> None:
        """`ro` or `rw`."""
        subprocess.run(["mount", "-o", f"remount,{how}", self.path], check=True)


def _free_bytes(descriptor: int) -> int:
    room = os.fstatvfs(descriptor)
    return room.f_bavail * room.f_frsize


@contextmanager
def _unless_full() -> Iterator[None]:
    """Pass over that there was less room than looked for."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


@contextmanager
def small_disk(path: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """A tmpfs of that size mounted at `path`, which is made; raises `MountRefusedError`."""
    path.mkdir(parents=True)
    options = f"size={size_bytes},mode=700"
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], capture_output=True, text=True, check=False
    )
    if mount.returncode != 0:
        raise MountRefusedError(mount.stderr.strip())
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)
