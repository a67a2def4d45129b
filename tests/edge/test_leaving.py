"""An edge that is told to go, and the connections that proxies keep to it."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import httpx

from tests.e2e import service
from tests.edge.process import Process

PATIENT = "from edge import __main__, command; command.LEAVING_S = 60; __main__.main()"
"""The same program, which gives connections as long as the test may take."""


async def test_a_request_over_a_connection_that_was_kept_is_answered_and_the_last(tmp_path: Path) -> None:
    like = Process(tmp_path, "127.0.0.1:1")
    edge = service.Process("edge", [sys.executable, "-c", PATIENT, "--config", str(like.config_path)])
    await edge.start()
    try:
        await edge.event("edge_ready")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{like.port}", trust_env=False, timeout=30) as proxy:
            assert "connection" not in (await proxy.get("/livez")).headers
            edge.send(signal.SIGTERM)
            await edge.event("edge_stops")
            last = await proxy.get("/livez")
            assert (last.status_code, last.headers["connection"]) == (200, "close")
            assert await edge.running.wait() == 0  # nobody is waited for any more
    finally:
        await edge.end()
