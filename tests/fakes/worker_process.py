"""A fake worker in a process of its own: one that can really be killed, frozen and restarted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.worker import PASSWORD

ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class WorkerProcess:
    """`python -m tests.fakes.worker`, serving."""

    process: asyncio.subprocess.Process = field(repr=False)
    address: str

    @classmethod
    async def spawn(
        cls,
        *,
        port: int = 0,
        png_bytes: int = 2_000,
        after_s: float = 0.0,
        steps: int = 3,
        step_s: float = 0.0,
        password: str = PASSWORD,
    ) -> WorkerProcess:
        """Start one and wait until it serves; `port` 0 takes any free one. `steps` and `step_s` are for slow calls."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.fakes.worker",
            *("--port", str(port), "--png-bytes", str(png_bytes), "--after-s", str(after_s)),
            *("--steps", str(steps), "--step-s", str(step_s)),
            cwd=ROOT,
            env={**os.environ, "FAKE_WORKER_PASSWORD": password},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        line = await process.stdout.readline()
        return cls(process, json.loads(line)["address"])

    @property
    def port(self) -> int:
        """The port it serves on, for a successor."""
        return int(self.address.rpartition(":")[2])

    async def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal that ends it, unless it has ended, and wait; its return code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await self.process.wait()
