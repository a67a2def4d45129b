"""Fixtures of the worker's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import structlog

from tests.worker.fakes import FakePipeline
from tests.worker.harness import Client, released, running


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """Tracebacks as production writes them; structlog's default draws them with all locals, for seconds."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
    )


@pytest.fixture
def pipeline() -> Iterator[FakePipeline]:
    with released(FakePipeline()) as fake:
        yield fake


@pytest.fixture
async def client(pipeline: FakePipeline) -> AsyncIterator[Client]:
    """A client of a warm worker with the scripted pipeline."""
    async with running(pipeline.load) as (_worker, client):
        yield client
        pipeline.release.set()
