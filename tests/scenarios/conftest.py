"""Fake workers and drivers, closed whatever happens, and the whole edge over them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from edge.pool.config import DispatchConfig, HealthCheckConfig, PoolConfig
from edge.upstream.driver import Driver
from tests.edge.rest import Rest, serving
from tests.edge.upstream.conftest import driver, spawn, workers
from tests.fakes.worker import PASSWORD

__all__ = ["driver", "edge", "spawn", "workers"]


class Edge(NamedTuple):
    """The whole edge: what clients see, and the driver inside for what operators see."""

    rest: Rest
    driver: Driver


MakeEdge = Callable[..., Awaitable[Edge]]


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[MakeEdge]:
    """An edge over HTTP for these workers; another one with the next call."""
    async with AsyncExitStack() as stack:
        made = 0

        async def make(
            *addresses: str,
            health: HealthCheckConfig | None = None,
            dispatch: DispatchConfig | None = None,
            **settings: Any,
        ) -> Edge:
            nonlocal made
            made += 1
            folder = tmp_path / f"edge-{made}"
            folder.mkdir()
            config = PoolConfig(addresses, health=health or HealthCheckConfig(), dispatch=dispatch or DispatchConfig())
            mesh = Driver(config, PASSWORD, seed=1)
            return Edge(await stack.enter_async_context(serving(folder, mesh, **settings)), mesh)

        yield make
