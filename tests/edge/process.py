"""`hairmesh-edge` as a process of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.fakes.worker import PASSWORD

ROOT = Path(__file__).parents[2]
SHORT_GRACE = "command.GRACE_S = {}"
SMALL_BUFFERS = """
listen = socket.socket.listen
def with_small_buffers(listener, *backlog):
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, {})
    listen(listener, *backlog)
socket.socket.listen = with_small_buffers
"""
"""Connections have them from their listener."""
PROGRAM = """
import socket
from edge import __main__, command
{}
__main__.main()
"""
"""The same program, but for such changes."""


class Process:
    """One that runs inside `async with`; killed at its end, unless it has ended."""

    def __init__(
        self,
        folder: Path,
        *workers: str,
        grace_s: int | None = None,
        send_buffer_bytes: int | None = None,
        **changes: Any,
    ) -> None:
        """`grace_s`: how long running requests may take after SIGTERM, if not as long as in production.

        `send_buffer_bytes`: the system's own for each connection, where it must not be what the machine is set to.
        """
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.folder = folder
        wanted = ((SHORT_GRACE, grace_s), (SMALL_BUFFERS, send_buffer_bytes))
        other = [change.format(value) for change, value in wanted if value is not None]
        self._program = ["-c", PROGRAM.format("\n".join(other))] if other else ["-m", "edge"]
        config = {
            "listen": f"127.0.0.1:{self.port}",
            "workers": workers,
            "shared_password": PASSWORD,
            "static": {"dir": str(folder / "pictures")},
            "request_log": {"path": str(folder / "request_log.jsonl")},
            **changes,
        }
        self.config_path = folder / "edge.json"
        self.config_path.write_text(json.dumps(config))
        self.config_path.chmod(0o600)

    async def __aenter__(self) -> Process:
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", *self._program, "--config", str(self.config_path)),
            cwd=ROOT,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self.process.stderr is not None
        self.said: list[dict[str, Any]] = []
        while not self.said or self.said[-1]["event"] != "edge_ready":
            line = await self.process.stderr.readline()
            assert line, self.said
            self.said.append(json.loads(line))
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=60, trust_env=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()

    async def restart(self) -> None:
        """Kill it, and wait until another serves at its port."""
        await self.__aexit__()
        await self.__aenter__()

    async def event(self, name: str) -> dict[str, Any]:
        """The next line of its log with that event; all lines up to it stay in `said`."""
        assert self.process.stderr is not None
        async with asyncio.timeout(60):
            while line := await self.process.stderr.readline():
                self.said.append(json.loads(line))
                if self.said[-1]["event"] == name:
                    return self.said[-1]
        raise AssertionError(f"no {name} in {self.said}")

    async def measure(self, photo: bytes) -> httpx.Response:
        """One measure call."""
        return await self.client.post("/api/v1/face/measure", files={"image": ("p.jpg", photo)})
