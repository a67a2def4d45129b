"""`request_log.jsonl`: one JSON line per request under `/api/`, never a picture, a token or a query string.

A thread of its own writes, so that a slow disk delays neither answers nor probes. It looks for new lines by itself:
waking it for each one would cost a call more than the line does. When it falls too far behind, lines are dropped and
counted rather than kept without end.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import orjson
import structlog

MAX_WAITING_LINES = 10_000
WRITE_EVERY_S = 0.1
CLOSE_TIMEOUT_S = 2.0
"""How long `close` waits for the last lines to reach the disk."""

log = structlog.get_logger()


class RequestLog:
    """Appends lines to `path`; at `max_bytes` it is renamed to `path.1`, that to `path.2`, up to `keep` files."""

    def __init__(self, path: Path, *, max_bytes: int, keep: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._descriptor: int | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="request-log", daemon=True)
        self._thread.start()

    def write(self, facts: Mapping[str, object]) -> None:
        """Keep one line to be written soon; never waits."""
        if len(self._lines) >= MAX_WAITING_LINES:
            self._dropped += 1
            return
        if self._dropped:
            log.error("request_log_lines_dropped", count=self._dropped)
            self._dropped = 0
        # The form of the other logs' timestamps.
        line = {"time": f"{datetime.now(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z", **facts}
        self._lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        """Write what is waiting and end the thread; gives up on a disk that hangs."""
        self._closing.set()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _write_all(self) -> None:
        trouble = ""
        closing = False
        while not closing:
            closing = self._closing.wait(WRITE_EVERY_S)
            while self._lines:
                before, trouble = trouble, self._write(self._lines.popleft())
                if trouble and trouble != before:
                    log.error("request_log_not_written", problem=trouble)
        self._close_file()

    def _write(self, line: bytes) -> str:
        """Write one line; returns what went wrong, else an empty string."""
        try:
            if self._descriptor is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._append(self._descriptor, line)
            if os.fstat(self._descriptor).st_size >= self._max_bytes:
                self._close_file()
                self._rotate()
        except OSError as error:
            return error.strerror or type(error).__name__
        return ""

    @staticmethod
    def _append(descriptor: int, line: bytes) -> None:
        """The whole line or nothing: the rest of one that a full disk cut off would be glued to the next."""
        before_bytes = os.fstat(descriptor).st_size
        if os.write(descriptor, line) < len(line):
            os.ftruncate(descriptor, before_bytes)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _close_file(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _rotate(self) -> None:
        """Make room for a new file."""
        for number in range(self._keep, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)
