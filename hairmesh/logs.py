"""Logs of every process: one JSON object per line on standard error."""

from __future__ import annotations

import logging
import sys

import structlog


def _tells_no_metadata(record: logging.LogRecord) -> bool:
    """Keep out what gRPC logs of metadata that is not UTF-8: the value itself, which may be a password."""
    return not (record.name.startswith("grpc") and str(record.msg).startswith("Invalid encoding"))


def configure(service: str, *, level: str = "info") -> None:
    """Send structlog and the standard library's records of this process to standard error as JSON lines.

    `service` stands in every line; `level` is one of debug, info, warning, error.
    """
    threshold = logging.getLevelNamesMapping()[level.upper()]

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
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
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
