"""Worker processes, and what they log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from tests.worker.harness import PASSWORD, Client

ROOT = Path(__file__).parents[2]


class Process:
    """A worker process and the lines it logged so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.lines: list[str] = []

    async def event(self, name: str, **fields: object) -> dict[str, Any]:
        """The next line of that event with these fields."""
        while line := await self._line():
            entry: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if entry.get("event") == name and fields.items() <= entry.items():
                return entry
        raise AssertionError(f"no {name} in {self.lines}")

    async def end(self) -> int:
        """Its exit code, when all it had to say was read."""
        while await self._line():
            pass
        return await self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def _line(self) -> str:
        assert self._process.stderr
        line = (await self._process.stderr.readline()).decode()
        if line:
            self.lines.append(line)
        return line


def write_config(path: Path, **changes: object) -> Path:
    plain: dict[str, object] = {
        "listen": "127.0.0.1:0",
        "accept_passwords": [PASSWORD],
        "health": {"min_free_gb": 0},
        "drain_delay_seconds": 0,
    }
    part = path.with_suffix(".part")
    part.write_text(json.dumps({**plain, **changes}))
    part.chmod(0o600)
    part.replace(path)
    return path


@contextlib.asynccontextmanager
async def process(*arguments: str, environ: Mapping[str, str] | None = None) -> AsyncIterator[Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *arguments,
        cwd=ROOT,
        env={**os.environ, **(environ or {})},
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    try:
        yield Process(child)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.communicate()


@contextlib.asynccontextmanager
async def fake_worker(
    config: Path, password: str = PASSWORD, *, warm: bool = True, environ: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[Process, Client]]:
    """`environ` goes into its environment; `tests.worker.fake_worker` says what it makes of it."""
    async with process("tests.worker.fake_worker", str(config), environ=environ) as worker:
        client = Client((await worker.event("listening"))["address"], password)
        try:
            if warm:
                await client.until_serving()
            yield worker, client
        finally:
            await client.channel.close()
