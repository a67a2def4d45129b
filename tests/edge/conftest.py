"""A served REST side for every test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.edge.rest import FakeMesh, Rest, serving


@pytest.fixture
def mesh() -> FakeMesh:
    """A scripted mesh."""
    return FakeMesh()


@pytest.fixture
async def rest(tmp_path: Path, mesh: FakeMesh) -> AsyncIterator[Rest]:
    """The REST side over `mesh`."""
    async with serving(tmp_path, mesh) as running:
        yield running
