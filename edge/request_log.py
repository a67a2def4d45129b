"""`request_log.jsonl`: one JSON line per request under `/api/`, never a picture, a token or a query string.

A thread of its own writes, so that a slow disk delays neither answers nor probes. It looks for new lines by itself:
waking it for each one would cost a call more than the line does. What the disk does not take is kept and tried again;
when there is too much of it, lines are dropped and counted rather than kept without end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import orjson
import structlog

from edge.log_file import LogFile

MAX_WAITING_LINES = 10_000
WRITE_EVERY_S = 0.1
MAX_LINES_LOCKED = 200
"""So many are written before other processes that write to the same file get their turn."""
CLOSE_TIMEOUT_S = 2.0
"""How long `close` waits for the last lines to reach the disk; what is left then is lost, and told."""

log = structlog.get_logger()


class RequestLog:
    """Appends lines to `path`; at `max_bytes` it is renamed to `path.1`, that to `path.2`, up to `keep` files.

    Several processes may have the same `path`.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int) -> None:
        self._file = LogFile(path, max_bytes=max_bytes, keep=keep)
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        """Those there was no room for; counted by the event loop."""
        self._over = False
        """No line is begun any more: what still waits is lost."""
        self._told = 0
        self._telling = threading.Lock()
        self._trouble = ""
        self._mended_bytes = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="request-log", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Lines that were not and will not be written."""
        return self._dropped + (len(self._lines) if self._over else 0)

    def write(self, facts: Mapping[str, object]) -> None:
        """Keep one line to be written soon; never waits."""
        if len(self._lines) >= MAX_WAITING_LINES:
            self._dropped += 1
            return
        # The form of the other logs' timestamps.
        line = {"time": f"{datetime.now(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z", **facts}
        self._lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        """Write what is waiting and end the thread; gives up on a disk that is slow or hangs.

        Told here and not by the thread, which ends with the process wherever it stands: so every line that is missing
        is told, and where a disk hangs perhaps one more, which it takes after all.
        """
        self._closing.set()
        self._thread.join(CLOSE_TIMEOUT_S)
        self._over = True
        self._tell_losses()

    def _write_all(self) -> None:
        closing = False
        while not closing:
            closing = self._closing.wait(WRITE_EVERY_S)
            trouble = self._write_waiting()
            if trouble and trouble != self._trouble:
                log.error("request_log_not_written", problem=trouble)
            self._trouble = trouble
            if not trouble:
                self._tell_losses()
        self._file.close()

    def _write_waiting(self) -> str:
        """Write what there is; what went wrong, else an empty string."""
        try:
            while self._lines:
                with self._file.locked():
                    for _ in range(min(len(self._lines), MAX_LINES_LOCKED)):
                        if self._over:
                            return ""
                        self._file.append(self._lines[0])
                        self._lines.popleft()
        except OSError as error:
            return error.strerror or type(error).__name__
        return ""

    def _tell_losses(self) -> None:
        with self._telling:  # its thread may be at it while `close` gives it up
            if (mended_bytes := self._file.mended_bytes) != self._mended_bytes:
                log.warning("request_log_mended", bytes=mended_bytes - self._mended_bytes)
                self._mended_bytes = mended_bytes
            if (lost := self.lost) > self._told:
                log.error("request_log_lines_dropped", count=lost - self._told)
                self._told = lost
