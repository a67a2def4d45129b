"""Edges that watch a worker and vanish."""

from __future__ import annotations

import asyncio
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpc_health.v1 import health_pb2

from hairmesh import wire
from tests.worker.fakes import OK, FakePipeline
from tests.worker.harness import PASSWORD, SERVING, running
from worker.health.reporter import Context, HealthReporter

ROOT = Path(__file__).resolve().parents[2]
WATCHERS = 50
GONE_WITHIN_S = (wire.WORKER_PING_INTERVAL_MS + wire.PING_TIMEOUT_MS) / 1000

CLIENT = textwrap.dedent(
    """
    import asyncio, os, sys
    from grpc import aio
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from hairmesh import wire

    async def watch(address, password):
        alone = (("grpc.use_local_subchannel_pool", 1),)
        channel = aio.insecure_channel(address, options=(*wire.CLIENT_OPTIONS, *alone))
        request = health_pb2.HealthCheckRequest(service=wire.ANALYZE_SERVICE)
        metadata = ((wire.TOKEN_KEY, password),)
        stream = health_pb2_grpc.HealthStub(channel).Watch(request, metadata=metadata)
        await stream.read()
        return channel, stream

    async def main():
        held = await asyncio.gather(*(watch(sys.argv[1], os.environ["TOKEN"]) for _ in range(int(sys.argv[2]))))
        print("watching", flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
    """
)


class Watchers:
    """Counts the health streams that a worker serves."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = HealthReporter.Watch

        async def counted(
            reporter: HealthReporter, request: health_pb2.HealthCheckRequest, context: Context
        ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
            self.count += 1
            try:
                async for message in original(reporter, request, context):
                    yield message
            finally:
                self.count -= 1

        patch.setattr(HealthReporter, "Watch", counted)

    async def until_gone(self, within_s: float) -> None:
        async with asyncio.timeout(within_s):
            while self.count:  # noqa: ASYNC110  (it is the outside that looks)
                await asyncio.sleep(0.01)


async def vanishing(address: str, number: signal.Signals) -> asyncio.subprocess.Process:
    """A process with `WATCHERS` health streams, each on a connection of its own, to which `number` has happened."""
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLIENT, address, str(WATCHERS)),
        cwd=ROOT,
        env={"TOKEN": PASSWORD, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert client.stdout is not None
    assert await client.stdout.readline() == b"watching\n"
    client.send_signal(number)
    return client


async def test_b51_watchers_killed_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    watchers, pipeline = Watchers(monkeypatch), FakePipeline()
    async with running(pipeline.load) as (worker, client):
        watching = await vanishing(worker.address, signal.SIGKILL)
        async with asyncio.timeout(60):  # however many watched: no thread, no slot is theirs
            assert await client.check() == SERVING
            await client.measure(OK)
        await watchers.until_gone(60)
        await watching.wait()


@pytest.mark.long
async def test_b51_watchers_that_fall_silent_are_gone_within_the_ping_time(monkeypatch: pytest.MonkeyPatch) -> None:
    watchers, pipeline = Watchers(monkeypatch), FakePipeline()
    async with running(pipeline.load) as (worker, client):
        watching = await vanishing(worker.address, signal.SIGSTOP)  # no FIN: only pings can tell
        try:
            assert watchers.count == WATCHERS
            assert await client.check() == SERVING
            await client.measure(OK)
            await watchers.until_gone(GONE_WITHIN_S + 5)
        finally:
            watching.kill()
            await watching.wait()
