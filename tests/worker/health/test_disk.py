"""The disk's threads on a real file system."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from worker.health.checks import DiskReading
from worker.health.disk import DiskProbe
from worker.thresholds import Thresholds

QUICK = Thresholds(disk_free_period_s=0.01, disk_write_period_s=0.01)


def reading_of(*paths: Path) -> DiskReading:
    probe = DiskProbe(paths, QUICK, time.monotonic)
    probe.start()
    try:
        while probe.reading.free_at_s is None or probe.reading.write_at_s is None:
            time.sleep(0.001)  # the threads set no event; the test's own timeout ends it
        return probe.reading
    finally:
        probe.stop()


def test_free_space_and_a_real_write_that_leaves_nothing(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    assert reading.free_gib
    assert reading.free_gib > 0
    assert reading.write_ms is not None
    assert (reading.free_error, reading.write_error) == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert reading.free_gib_by_path == {str(tmp_path): reading.free_gib}


def test_one_bad_path_of_several_is_enough(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, tmp_path / "gone")
    assert (reading.free_gib, reading.free_error, reading.write_error) == (None, "ENOENT", "ENOENT")
    assert list(reading.free_gib_by_path) == [str(tmp_path)], "the one that does not answer is the one that is missing"


def test_the_default_path_is_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(reading_of(Path()).free_gib_by_path) == [str(tmp_path)]


def test_a_path_that_is_no_text_is_named_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    assert list(reading_of(folder).free_gib_by_path) == [f"{tmp_path}/caf\\xe9"]


def test_folder_that_cannot_be_written_is_found(tmp_path: Path) -> None:
    assert reading_of(Path("/proc")).write_error != ""
