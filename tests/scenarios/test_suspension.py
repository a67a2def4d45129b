"""The machine sleeps, edge and workers together, with calls in flight."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from tests.edge.upstream.conftest import Spawn

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
async def test_32_half_a_minute_of_sleep_ends_no_call_and_takes_nobody_out(spawn: Spawn) -> None:
    """The clock goes on meanwhile, as in a virtual machine that is paused: every deadline and ping is late at once."""
    workers = [await spawn(after_s=2.0) for _ in range(2)]
    edge = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.scenarios.suspended_edge", *(worker.address for worker in workers)),
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert edge.stderr is not None
        while (await edge.stderr.readline()) != b"running\n":
            pass
        everyone = [edge, *(worker.process for worker in workers)]
        for process in everyone:
            process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(30)
        for process in everyone:
            process.send_signal(signal.SIGCONT)
        said = (await edge.stderr.read()).decode().splitlines()
        assert json.loads(said[-1]) == {"answers": [1, 1, 1, 1], "online": 2}
        assert await edge.wait() == 0
    finally:
        if edge.returncode is None:
            edge.kill()
            await edge.wait()
