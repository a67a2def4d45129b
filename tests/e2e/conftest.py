"""A running service, and disks that can be filled, for every test that asks for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.service import Service
from tests.e2e.small_disk import MountRefusedError, SmallDisk, small_disk


@pytest.fixture
def disk_of(tmp_path: Path) -> Iterator[Callable[[int], SmallDisk]]:
    """Mounts a file system of so many bytes; skips the test where that is refused."""
    with ExitStack() as mounted:

        def mount(size_bytes: int) -> SmallDisk:
            try:
                return mounted.enter_context(small_disk(tmp_path / f"disk-{len(list(tmp_path.iterdir()))}", size_bytes))
            except MountRefusedError as refused:
                pytest.skip(f"needs to mount a tmpfs, which is refused here: {refused}")

        yield mount


@pytest.fixture
async def mesh(disk_of: object, tmp_path: Path) -> AsyncIterator[Service]:
    """An edge without workers, not started; whatever of it runs at the end is ended, before any disk goes."""
    made = Service(tmp_path)
    yield made
    await made.stop()
