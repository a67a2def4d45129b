"""Stores to test, and a real S3 server."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.images import objects
from tests.e2e.small_disk import MountRefusedError, SmallDisk, small_disk
from tests.fakes.s3 import BUCKET, S3Server, s3_server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One server for all tests of a run."""
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def store_url(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place on it that no other test knows, with credentials for it in the environment.

    What is asked of it has a minute: on a busy machine the server is slow, and that is not what is tested.
    """
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(objects, "IO_TIMEOUT_S", 60.0)
    monkeypatch.setattr(objects, "TRY_TIMEOUT_S", 50.0)
    return f"s3://{BUCKET}/{secrets.token_hex(4)}/faces"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A file system of 1 MiB; skips the test where mounting is refused."""
    try:
        with small_disk(tmp_path / "disk", 1024 * 1024) as mounted:
            yield mounted
    except MountRefusedError as refused:
        pytest.skip(f"needs to mount a tmpfs, which is refused here: {refused}")
