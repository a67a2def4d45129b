"""The file of a running `hairmesh-edge`: however it is changed, and whatever it becomes (B63)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from edge.reload import HASH_DIGITS, SETTLE_S
from tests.edge.process import Process
from tests.edge.rest import picture
from tests.fakes.worker import PASSWORD, FakeWorker

ADMIN = {"X-Admin-Token": "SENTINEL-of-an-admin"}


class Edge:
    """A running edge, the worker it calls, and its file."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.path = process.config_path

    def text(self, **changes: Any) -> str:
        """What is in the file now, with changes."""
        return json.dumps({**json.loads(self.path.read_text()), **changes})

    async def configuration(self) -> dict[str, Any]:
        """As `/admin/pool` tells it."""
        answer = await self.process.client.get("/admin/pool", headers=ADMIN)
        assert answer.status_code == 200
        told: dict[str, Any] = answer.json()["configuration"]
        return told

    async def works_with_its_password(self) -> None:
        """A call reaches the worker, which checks the password; the drill takes that one, and not an empty one."""
        assert (await self.process.measure(picture())).status_code == 200
        for token, status in ((PASSWORD, 200), ("", 401)):
            answer = await self.process.client.post(
                "/monitor/fault", json={"enabled": False}, headers={"X-Internal-Token": token}
            )
            assert answer.status_code == status

    def told(self, event: str) -> int:
        """How often, up to now."""
        return sum(line["event"] == event for line in self.process.said)


@contextlib.asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Edge]:
    worker = FakeWorker()
    await worker.start()
    try:
        async with Process(folder, worker.address, admin_tokens=[ADMIN["X-Admin-Token"]]) as process:
            yield Edge(process)
            assert "SENTINEL" not in str(process.said)
            assert PASSWORD not in str(process.said)
    finally:
        await worker.stop()


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def renamed_over(path: Path, text: str) -> None:
    other = path.with_name("other.json")
    other.write_text(text)
    other.replace(path)


def behind_a_link(path: Path, text: str) -> None:
    """As Kubernetes mounts a ConfigMap: `edge.json` → `..data/edge.json`, and `..data` moves to another folder."""
    folder = path.parent
    data = folder / "..data"
    if not data.is_symlink():
        (folder / "..first").mkdir()
        path.replace(folder / "..first" / path.name)
        data.symlink_to("..first")
        path.symlink_to(Path("..data") / path.name)
    (folder / "..second").mkdir()
    (folder / "..second" / path.name).write_text(text)
    (folder / "..moving").symlink_to("..second")
    (folder / "..moving").replace(data)


async def test_a_good_file_is_in_force_however_it_came(tmp_path: Path) -> None:
    async with running(tmp_path) as edge:
        before = await edge.configuration()
        assert (before["version"], before["problems"]) == (1, [])
        for version, write in enumerate((in_place, renamed_over, behind_a_link), start=2):
            text = edge.text(limits={"max_pixels": 40_000 + version})
            write(edge.path, text)
            applied = await edge.process.event("configuration_applied")
            assert (applied["version"], applied["changed"]) == (version, ["limits"]), write
            now = await edge.configuration()
            assert (now["version"], now["problems"]) == (version, [])
            assert now["content_hash"] == hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
            details = (await edge.process.measure(picture())).json()["data"]["details"]
            assert details["max"] == 40_000 + version, write
        assert edge.told("configuration_refused") == 0


def without_its_end(path: Path) -> None:
    path.write_text(path.read_text()[:-20])


def wrong(**changes: Any) -> Callable[[Path], None]:
    return lambda path: in_place(path, json.dumps({**json.loads(path.read_text()), **changes}))


SPOILED: dict[str, tuple[Callable[[Path], None], str]] = {
    "bad value": (wrong(limits={"max_pixels": 0}), "limits.max_pixels: "),
    "empty password": (wrong(shared_password=""), "shared_password: "),
    "empty": (lambda path: in_place(path, ""), "the file is empty"),
    "deleted": (Path.unlink, "No such file"),
    "half": (without_its_end, "not JSON"),
}


async def test_b63_a_bad_file_changes_nothing_and_is_one_clear_error(tmp_path: Path) -> None:
    async with running(tmp_path) as edge:
        for round_number, (name, (spoil, words)) in enumerate(SPOILED.items(), start=1):
            before = await edge.configuration()
            good = edge.text(limits={"max_pixels": 1_000_000 + round_number})
            spoil(edge.path)
            refused = await edge.process.event("configuration_refused")
            assert (refused["level"], refused["file"]) == ("error", str(edge.path)), name
            (problem,) = refused["problems"]
            assert words in problem, name
            await edge.works_with_its_password()
            assert await edge.configuration() == {**before, "problems": [problem]}, name
            edge.path.write_text(good)
            await edge.process.event("configuration_applied")
            now = await edge.configuration()
            assert (now["version"], now["problems"]) == (before["version"] + 1, []), name
            assert edge.told("configuration_refused") == round_number, name
        await edge.works_with_its_password()


async def test_b63_written_in_two_halves_a_second_apart(tmp_path: Path) -> None:
    assert SETTLE_S >= 2.0, "that second, and as much again for a machine that is busy"
    async with running(tmp_path) as edge:
        text = edge.text(limits={"max_pixels": 1_000_000})
        middle = text.index(PASSWORD) + len(PASSWORD) // 2
        began_s = time.monotonic()
        with edge.path.open("w") as file:
            file.write(text[:middle])
            file.flush()
            await edge.works_with_its_password()
            assert (await edge.configuration())["version"] == 1
            await asyncio.sleep(1.0 - (time.monotonic() - began_s))  # that long is what the report says
            file.write(text[middle:])
        halves_apart_s = time.monotonic() - began_s
        await edge.process.event("configuration_applied")
        now = await edge.configuration()
        assert (now["version"], now["problems"]) == (2, [])
        if halves_apart_s < SETTLE_S:  # not on a machine that slept meanwhile
            assert edge.told("configuration_refused") == 0
        await edge.works_with_its_password()
