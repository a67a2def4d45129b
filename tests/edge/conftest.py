"""A served REST side for every test that asks for one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge import request_log
from tests.edge.clock import Clock
from tests.edge.rest import FakeMesh, Rest, serving


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine costs the request log no lines: what a test does not mean to lose is on the disk at the end."""
    monkeypatch.setattr(request_log, "CLOSE_TIMEOUT_S", 60.0)


@pytest.fixture
def mesh() -> FakeMesh:
    """A scripted mesh."""
    return FakeMesh()


@pytest.fixture
async def clock() -> Clock:
    """Of the loop of this test, which ends with it."""
    return Clock(asyncio.get_running_loop())


@pytest.fixture
async def rest(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[Rest]:
    """The REST side over `mesh`."""
    async with serving(tmp_path, mesh) as running:
        yield running
