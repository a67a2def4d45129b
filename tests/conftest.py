"""Test pictures, model files and a scripted worker for every floor."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.fakes.systemd import Systemd
from tests.fakes.worker import FakeWorker
from vision import models
from vision.errors import ModelError

# Who starts the tests in the background may have SIGINT ignored, and every process they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no reason to fail: timing never decides.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

LONG_TIMEOUT_S = 1800
"""For tests marked `long` that name no other: on a busy machine what takes a minute takes many."""
SHARED_PORTRAITS = Path(__file__).parent.parent.parent / "shared" / "data" / "portraits"
PEOPLE = files("openpeople") / "data" / "curated"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give long tests the time they may need."""
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_TIMEOUT_S))


def studio_portrait(number: int = 1) -> Path:
    """Studio portrait of one of openpeople's ten synthetic people, 2048 × 2048."""
    return Path(str(PEOPLE / f"P{number:03}" / "assets" / "studio_portrait.jpg"))


def selfie(number: int = 1) -> Path:
    """Selfie of the same person, 1696 × 2528."""
    return Path(str(PEOPLE / f"P{number:03}" / "assets" / "amateur_selfie.jpg"))


def full_length(number: int = 1) -> Path:
    """Full-length photo of the same person, 1536 × 2752: the face is small in it."""
    return Path(str(PEOPLE / f"P{number:03}" / "assets" / "studio_posture.jpg"))


@pytest.fixture
async def worker() -> AsyncIterator[FakeWorker]:
    """A scripted worker in the test's own loop, serving."""
    started = FakeWorker()
    await started.start()
    yield started
    await started.stop()


@pytest.fixture(scope="session")
def portraits() -> Path:
    """Folder of the shared test portraits; skips without it."""
    if not SHARED_PORTRAITS.is_dir():
        pytest.skip("the shared test portraits are not here")
    return SHARED_PORTRAITS


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    """A service manager that listens."""
    manager = Systemd(tmp_path / "notify")
    yield manager
    manager.socket.close()


@pytest.fixture(scope="session")
def model_files() -> models.ModelFiles:
    """The real model files; skips where they have not been fetched."""
    try:
        return models.locate(models.default_cache_dir())
    except ModelError as error:
        pytest.skip(str(error))
