"""The machine sleeps, edge and workers together, or the edge alone, with calls in flight."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.edge.upstream.conftest import MakeWorkers, Spawn, until

ROOT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def running_edge(addresses: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """An edge's process, once its first calls compute; gone at the end."""
    edge = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.scenarios.suspended_edge", *addresses),
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert edge.stderr is not None
        while (await edge.stderr.readline()) != b"running\n":
            pass
        yield edge
    finally:
        if edge.returncode is None:
            edge.kill()
            await edge.wait()


async def last_words(edge: asyncio.subprocess.Process) -> object:
    """What became of its calls, and who is online."""
    assert edge.stderr is not None
    said = (await edge.stderr.read()).decode().splitlines()
    assert await edge.wait() == 0
    return json.loads(said[-1])


async def test_32_the_edge_alone_sleeps_and_nobody_is_out_for_the_connections_it_lost(workers: MakeWorkers) -> None:
    """Workers hear nothing of it, close its connections, and let go of its calls. Those run again."""
    made = await workers(2)
    holds = [worker.hold() for worker in made]
    async with running_edge([worker.address for worker in made]) as edge:
        edge.send_signal(signal.SIGSTOP)
        await asyncio.sleep(7)  # the standstill itself: long enough to be one, however busy the machine
        await until(lambda: all(worker.computes_for_nobody for worker in made))
        for hold in holds:
            hold.release.set()
        edge.send_signal(signal.SIGCONT)
        assert await last_words(edge) == {"answers": [2, 2, 1, 1], "online": 2}


@pytest.mark.long
async def test_32_half_a_minute_of_sleep_ends_no_call_and_takes_nobody_out(spawn: Spawn) -> None:
    """The clock goes on meanwhile, as in a virtual machine that is paused: every deadline and ping is late at once."""
    workers = [await spawn(after_s=2.0) for _ in range(2)]
    async with running_edge([worker.address for worker in workers]) as edge:
        everyone = [edge, *(worker.process for worker in workers)]
        for process in everyone:
            process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(30)
        for process in everyone:
            process.send_signal(signal.SIGCONT)
        assert await last_words(edge) == {"answers": [1, 1, 1, 1], "online": 2}
