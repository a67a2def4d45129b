"""Calls and questions that every scenario needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hair.analysis.v1 import measure_pb2

from edge.calls import Call, CallFailedError, Outcome
from edge.pool.config import HealthCheckConfig
from edge.pool.snapshot import EndpointSnapshot
from edge.upstream.driver import Driver
from tests.fakes.worker import FakeWorker

SELDOM = HealthCheckConfig(interval_seconds=3_600)
"""No probe comes by itself within a test."""
OFTEN = HealthCheckConfig(interval_seconds=0.05)
"""Many probes, and the full cooldown."""

Lines = Sequence[Mapping[str, Any]]
"""What `structlog.testing.capture_logs` gives."""


def call(
    request_id: str = "request-1", *, photo: bytes = b"photo", slow: bool = False, client: str = "", **more: Any
) -> Call:
    """A measure call; `slow` puts it into the other class."""
    message = measure_pb2.MeasureRequest()
    message.photo.data = photo
    return Call("Measure", message, request_id, slow=slow, client=client, **more)


def photo_of(request: bytes) -> bytes:
    """The photo in a measure request as a worker saw it."""
    return measure_pb2.MeasureRequest.FromString(request).photo.data


async def failure(driver: Driver, what: Call) -> CallFailedError:
    """Why a call that must fail did."""
    with pytest.raises(CallFailedError) as caught:
        await driver.call(what)
    return caught.value


async def call_until(driver: Driver, worker: FakeWorker) -> Outcome:
    """Call until that worker has had one; whichever was online first is called first."""
    before = len(worker.seen)
    async with asyncio.timeout(60):
        while True:
            outcome = await driver.call(call())
            if len(worker.seen) > before:
                return outcome


def worker_of(driver: Driver, address: str) -> EndpointSnapshot:
    """One worker as operators see it."""
    return next(each for each in driver.snapshot().endpoints if each.target == address)


def ejections(lines: Lines) -> list[str]:
    """Workers that were ejected, in order, each as often as it was."""
    return [line["worker"] for line in lines if line["event"] == "worker_state" and line["to"] == "EJECTED"]


def taken_out(lines: Lines) -> list[tuple[str, str]]:
    """Every time an online worker went offline: its address and the cause."""
    changes = (line for line in lines if line["event"] == "worker_state")
    return [(line["worker"], line["cause"]) for line in changes if line["from"] == "SERVING"]


async def ends(tasks: Iterable[asyncio.Task[Any]]) -> list[Any]:
    """Results and errors of all."""
    return await asyncio.gather(*tasks, return_exceptions=True)
