"""The bench of overload on a small scale, without its timing: what has to hold however busy the machine is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench import overload


async def test_in_overload_monitor_answers_and_so_does_every_request(tmp_path: Path) -> None:
    photos = overload.portraits(tmp_path, count=1, side_px=1000, size=300_000)

    def crowd() -> overload.Found:
        limits = {"max_body_bytes": 1_000_000, "max_uploading_bytes": 2_000_000}
        with overload.fake_workers(tmp_path, call_s=0.05, picture_bytes=50_000, limits=limits) as served:
            return overload.measure(served, photos, clients=30, seconds=1.0)

    found = await asyncio.to_thread(crowd)
    assert found.monitor_statuses == {200}
    assert len(found.monitor_s) > 3
    assert found.clients["problems"] == {}
    assert found.clients["unanswered"] == 0
    assert found.clients["requests"] == sum(found.clients["by_status"].values()) >= 30
    assert found.clients["by_status"].keys() <= {"200", "503"}
    assert len(found.clients["good_s"]) == found.clients["by_status"]["200"] > 0
