"""B59: how long an edge that is told to stop goes on, whoever is connected to it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from pathlib import Path

from tests.edge.process import Process
from tests.edge.rest import MEASURE, eventually, picture
from tests.fakes.worker import FakeWorker

GRACE_S = 1
"""Instead of the 30 s of production: how long is not what is tested, but that it ends then."""
LATEST_S = 20
"""On a busy machine, and still far from the 75 s that an idle connection may stay."""


async def test_b59_neither_a_long_call_nor_an_idle_connection_nor_half_an_upload_keeps_it(tmp_path: Path) -> None:
    worker = FakeWorker()
    await worker.start()
    hold = worker.hold()
    async with Process(tmp_path, worker.address, grace_s=GRACE_S) as edge:
        idle, idle_writer = await asyncio.open_connection("127.0.0.1", edge.port)
        idle_writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await idle.readuntil(b"}")).startswith(b"HTTP/1.1 200")
        half, half_writer = await asyncio.open_connection("127.0.0.1", edge.port)
        half_writer.write(f"POST {MEASURE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode())
        half_writer.write(b"Content-Length: 1000000\r\n\r\n{")
        long_call = asyncio.create_task(edge.measure(picture()))
        await asyncio.wait_for(hold.started.wait(), LATEST_S)

        began_s = time.monotonic()
        edge.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(edge.process.wait(), LATEST_S) == 0
        assert time.monotonic() - began_s >= GRACE_S, "what runs is given its time"
        answer = await long_call
        assert (answer.status_code, answer.json()["data"]["reason"]) == (503, "SHUTTING_DOWN")
        assert answer.headers["retry-after"]
        assert await idle.read() == b"", "closed, with nothing more to say"
        refused = await half.read()
        assert refused.startswith(b"HTTP/1.1 503")
        assert json.loads(refused.partition(b"\r\n\r\n")[2])["data"]["reason"] == "SHUTTING_DOWN"
        for writer in (idle_writer, half_writer):
            writer.close()
        await eventually(lambda: worker.computes_for_nobody)
    await worker.stop()
