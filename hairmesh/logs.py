"""Logs of every process: one JSON object per line on standard error.

Whatever becomes of standard error, nobody who logs is hurt or kept waiting by it.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO, cast

import structlog


class LineStream:
    """Where lines end: a descriptor that may be on a full disk, or a pipe that nobody reads any more, or never did.

    A line that cannot be written at once is lost, and counted; `says_lost` makes the line that is written first when
    writing works again. Straight to the descriptor: what a buffer keeps of a line that failed comes out later, in
    pieces, or fails once more when the process ends.
    """

    def __init__(self, descriptor: int, says_lost: Callable[[int], str]) -> None:
        self._descriptor = descriptor
        self._says_lost = says_lost
        self._lost = 0
        self._cut = False
        """Whether the last line ended half-way."""
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)
        self._lock = threading.RLock()  # an object that is collected in the middle of a line may log

    def write(self, lines: str) -> int:
        """Write whole lines, or count them as one that is lost; the number of characters, either way."""
        with self._lock:
            if self._lost and self._put(self._says_lost(self._lost)):
                self._lost = 0
            if self._lost or not self._put(lines):
                self._lost += 1
        return len(lines)

    def flush(self) -> None:
        """Nothing is ever kept back."""

    def _put(self, lines: str) -> bool:
        """Whether all of it was written."""
        rest = lines.encode(errors="backslashreplace")
        if self._cut:
            rest = b"\n" + rest  # apart from what is there of the cut one
        try:
            for start in range(0, len(rest), select.PIPE_BUF):
                if not self._room.poll(0):  # a pipe with room takes so much without waiting, all of it or nothing
                    return False
                piece = rest[start : start + select.PIPE_BUF]
                written = piece[: os.write(self._descriptor, piece)]
                self._cut = not written.endswith(b"\n")
                if written != piece:
                    return False
        except OSError:
            return False
        return True


def _tells_no_metadata(record: logging.LogRecord) -> bool:
    """Keep out what gRPC logs of metadata that is not UTF-8: the value itself, which may be a password."""
    return not (record.name.startswith("grpc") and str(record.msg).startswith("Invalid encoding"))


def configure(service: str, *, level: str = "info") -> None:
    """Send structlog and the standard library's records of this process to standard error as JSON lines.

    `service` stands in every line; `level` is one of debug, info, warning, error.
    """
    threshold = logging.getLevelNamesMapping()[level.upper()]

    def says_lost(count: int) -> str:
        now = f"{datetime.now(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
        line = {"count": count, "event": "log_lines_lost", "service": service, "level": "warning", "timestamp": now}
        return json.dumps(line) + "\n"

    # Where standard error was closed before the start, Python has none, and its number may be anybody's by now.
    descriptor = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno()
    stream = LineStream(descriptor, says_lost)

    def name_service(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event["service"] = service
        return event

    shared: list[structlog.typing.Processor] = [
        name_service,
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(ensure_ascii=False)],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, stream)),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.addFilter(_tells_no_metadata)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        )
    )
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[handler], force=True)
