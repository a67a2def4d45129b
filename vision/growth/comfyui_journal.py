"""Which jobs may have left something on a diffusion server, in a file that outlives the process.

One file for each process, locked while the process lives: who finds one that is not locked takes over what its process
could not remove. So workers that share a folder, a host name and a port never mistake each other's jobs for their own.
Nothing but random names stands in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

from vision.growth.comfyui_tidy import is_client_id

_ENDING = ".jobs"


class Journal:
    """The file of one process for one server. Its methods may be called from several threads.

    Raises `OSError` where the folder cannot be made or written; what was told to it before still stands there.
    """

    def __init__(self, folder: Path, server_url: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._server = hashlib.sha256(server_url.encode()).hexdigest()[:12]
        self._folder = folder
        self._open: set[str] = set()
        self._closed = False
        self._lock = threading.Lock()
        self.path = folder / f"{self._server}-{secrets.token_hex(8)}{_ENDING}"
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def begin(self, client_id: str) -> None:
        """From now on there may be something of this job."""
        with self._lock:
            self._open.add(client_id)
            os.write(self._file, f"+{client_id}\n".encode())

    def end(self, client_id: str) -> None:
        """Nothing of it is left."""
        with self._lock:
            self._open.discard(client_id)
            if self._closed:  # whoever was late: the next process looks once more
                return
            if self._open:
                os.write(self._file, f"-{client_id}\n".encode())
            else:
                os.ftruncate(self._file, 0)

    def adopt(self) -> list[str]:
        """Client ids of jobs whose process has ended without removing them; they are this one's now."""
        adopted: list[str] = []
        for path in sorted(self._folder.glob(f"{self._server}-*{_ENDING}")):
            if path != self.path:
                adopted += self._taken_over(path)
        return adopted

    def close(self) -> None:
        """Let go of the file; the next process finds what still stands in it."""
        with self._lock:
            self._closed = True
            if not self._open:
                self.path.unlink(missing_ok=True)
            os.close(self._file)

    def _taken_over(self, path: Path) -> list[str]:
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:  # somebody else was first
            return []
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file).st_nlink == 0:
                return []
            left = sorted(_left(path.read_text(errors="replace")))
            for client_id in left:
                self.begin(client_id)
            path.unlink()
        except BlockingIOError:  # its process lives
            return []
        finally:
            os.close(file)
        return left


def _left(text: str) -> Iterator[str]:
    """What has begun and not ended."""
    lines = text.splitlines()
    begun = dict.fromkeys(line[1:] for line in lines if line.startswith("+"))
    ended = {line[1:] for line in lines if line.startswith("-")}
    return (client_id for client_id in begun if client_id not in ended and is_client_id(client_id))
