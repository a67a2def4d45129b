"""A worker's end: every part of it is closed, whatever becomes of the others."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
import structlog

from hairmesh.metrics import Exposition
from hairmesh.spans import Collector
from tests.worker.fakes import FakePipeline
from tests.worker.harness import QUICK, Client, settings
from worker.calls import Calls
from worker.news import News
from worker.server import Worker

PARTS = {
    "calls": (Calls, "cut_off"),
    "news": (News, "close"),
    "metrics": (Exposition, "close"),
    "tracing": (Collector, "close"),
    "pipeline": (FakePipeline, "close"),
}
"""In the order in which they are closed."""


def broken_after(part: str, closed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every closing of it do what it does, and fail then."""
    kind, name = PARTS[part]
    close = getattr(kind, name)

    async def close_and_fail(self: Any, *arguments: Any) -> None:
        await close(self, *arguments)
        closed.append(part)
        raise OSError(part)

    def close_and_fail_at_once(self: Any) -> None:
        close(self)
        closed.append(part)
        raise OSError(part)

    monkeypatch.setattr(kind, name, close_and_fail if inspect.iscoroutinefunction(close) else close_and_fail_at_once)


async def test_each_part_is_closed_though_every_other_fails(
    pipeline: FakePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    for part in PARTS:
        broken_after(part, closed, monkeypatch)
    made = settings(metrics={"listen": "127.0.0.1:0"}, tracing={"otlp_endpoint": "http://127.0.0.1:1/v1/traces"})
    worker = await Worker.start(made, load_pipeline=pipeline.load, thresholds=QUICK)
    client = Client(worker.address)
    await client.until_serving()
    await client.channel.close()
    with structlog.testing.capture_logs() as said:
        assert await worker.stop()
    assert closed == list(PARTS)
    assert [line["part"] for line in said if line["event"] == "part_not_closed"] == list(PARTS)
    assert said[-1]["event"] == "stopped"
    for port in (worker.port, worker.metrics_port):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
