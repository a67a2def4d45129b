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


class Process:
    """One that runs inside `async with`; killed at its end, unless it has ended."""

    def __init__(self, folder: Path, *workers: str, **changes: Any) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.folder = folder
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
        arguments = ["-W", "error", "-m", "edge", "--config", str(self.config_path)]
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=ROOT, stderr=asyncio.subprocess.PIPE
        )
        assert self.process.stderr is not None
        self.said: list[dict[str, Any]] = []
        while not self.said or self.said[-1]["event"] != "edge_ready":
            line = await self.process.stderr.readline()
            assert line, self.said
            self.said.append(json.loads(line))
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=20, trust_env=False)
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

    async def measure(self, photo: bytes) -> httpx.Response:
        """One measure call."""
        return await self.client.post("/api/v1/face/measure", files={"image": ("p.jpg", photo)})
