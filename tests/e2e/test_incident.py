"""The incident, replayed with real processes: a disk that fills up, health that lies, an accelerator gone blind.

For sixteen hours a worker with a full disk passed every health check while each of its calls failed, and every failure
came back as an answer. Here the same things happen to a running service while clients call all the time.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable

import httpx
import pytest

from hairmesh.child import console_script
from tests.conftest import studio_portrait
from tests.e2e.breakable_worker import photo
from tests.e2e.service import Load, Seen, Service, Worker, said_at_s
from tests.e2e.small_disk import SmallDisk

DiskOf = Callable[[int], SmallDisk]

MIB = 1 << 20
PAGE_BYTES = 4096
DISK_BYTES = 64 * MIB
WATERMARKS = {"HEALTH_MIN_FREE_GB": "0.02", "HEALTH_RESUME_FREE_GB": "0.03"}
CALM_S = 10.0
"""A disk has to be good for so long before its worker comes back (`worker.thresholds`)."""
SOON_S = 20.0
"""The promise is 1 s (`bench/health.py` measures it); a busy machine gets more. It was 16 hours."""

LINE_LATE_S = 0.5
"""How much later than what it tells a line of a log may be written. Cooldowns are longer by far."""

ON_ITS_WAY = 1
"""A worker has one slot: one call may have been sent in the moment the edge decided."""

REAL = pytest.param("real", marks=pytest.mark.models)


def disk_worker(mesh: Service, models: str, disk: SmallDisk) -> Worker:
    """A worker that watches `disk`, told so through its environment."""
    program = (str(console_script("hairmesh-worker")), "--config") if models == "real" else ()
    environment = {**WATERMARKS, "HEALTH_DISK_PATHS": json.dumps([str(disk.path)])}
    return mesh.add_worker(*program, environment=environment)


@pytest.mark.parametrize("models", ["light", REAL])
async def test_a_full_disk_takes_its_worker_out_and_space_brings_it_back(
    mesh: Service, disk_of: DiskOf, models: str
) -> None:
    """Out within a second or so while nobody sees an error; the last one out is an alert; back by itself."""
    image = studio_portrait().read_bytes() if models == "real" else photo(seconds=0.05)
    disk, other_disk = disk_of(DISK_BYTES), disk_of(DISK_BYTES)
    worker, other = disk_worker(mesh, models, disk), disk_worker(mesh, models, other_disk)
    await mesh.start()
    async with Load(mesh, clients=3, image=image) as load:
        await load.more(3)
        filled_s = time.time()
        disk.fill()
        out_s = said_at_s(await mesh.leaves(worker, "disk"))
        assert out_s - filled_s < SOON_S
        await load.more(3)
    assert load.failed == []
    assert len(worker.calls_begun_after(out_s)) <= ON_ITS_WAY
    answer = await mesh.until_online(1)
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")

    other_disk.fill()
    await mesh.leaves(other, "disk")
    answer = await mesh.monitor()
    assert (answer.status_code, answer.json()["status"]) == (503, "unhealthy")
    refused = await mesh.measure(image)
    assert (refused.http_status, refused.code, refused.reason) == (503, 1007, "NO_WORKER")
    assert float(refused.retry_after) >= 1

    freed_s = time.time()
    for full in (disk, other_disk):
        full.free()
    back = [{"worker": each.address, "to": "SERVING"} for each in (worker, other)]
    await mesh.edge.several(*(("worker_state", fields) for fields in back))
    assert (await mesh.until_online(2)).status_code == 200
    for each in (worker, other):
        assert mesh.changes(each)[-1]["to"] == "SERVING"
        assert said_at_s(mesh.changes(each)[-1]) - freed_s > CALM_S - 1
    assert (await mesh.measure(image)).code == 0
    assert not [change for each in (worker, other) for change in mesh.changes(each) if change["to"] == "EJECTED"]


async def test_health_that_lies_does_not_shorten_a_cooldown(mesh: Service) -> None:
    """SERVING to every probe, INTERNAL to every call: one call for each cooldown, each cooldown longer."""
    liar, honest = mesh.add_liar(), mesh.add_worker()
    await mesh.start(health_check={"interval_seconds": 0.3, "timeout_seconds": 3, "cooldown_seconds": 2})
    async with Load(mesh, clients=2) as load:
        await load.more(4)
        liar.send(signal.SIGUSR1)
        ejections = [await mesh.edge.event("worker_state", worker=liar.address, to="EJECTED") for _ in range(3)]
        assert (await mesh.monitor()).json()["workers_healthy"] == 1
        liar.send(signal.SIGUSR2)
        await mesh.edge.event("worker_state", worker=liar.address, to="SERVING")
        liar.forget()
        await liar.event("call_came")
    await mesh.edge.end(signal.SIGTERM)
    assert load.failed == []
    assert {record["cause"] for record in ejections} == {"passive"}
    promised_s = [record["cooldown_s"] for record in ejections]
    assert all(promised >= least for promised, least in zip(promised_s, (2, 4, 8), strict=True)), promised_s
    ended_s = [said_at_s(record) for record in ejections]
    arrivals = [call for call in liar.records if call["event"] == "call_came"]
    for promised, before, after in zip(promised_s, ended_s, [*ended_s[1:], float("inf")], strict=False):
        calls = [call for call in arrivals if before < call["at_s"] < after]
        assert calls, "it was tried again"
        assert calls[0]["at_s"] - before > promised - LINE_LATE_S
    # Every probe of the cooldowns passed, several in each: they count, and restore nothing.
    assert arrivals[-1]["probes"] - arrivals[0]["probes"] > 3 * len(ejections)
    assert mesh.changes(honest)[1:] == []


@pytest.mark.parametrize("models", ["light", REAL])
async def test_an_accelerator_gone_blind_is_found_by_the_canary(mesh: Service, models: str) -> None:
    """It answers "no face" to everything, which no caller can tell from a bad photo."""
    real = models == "real"
    image = studio_portrait().read_bytes() if real else photo(seconds=0.05)
    program = (sys.executable, "-m", "tests.e2e.breakable_worker", *(["--models"] if real else []))
    blind, seeing = mesh.add_worker(*program), mesh.add_worker(*program)
    await mesh.start()
    async with Load(mesh, clients=2, image=image) as load:
        await load.more(2)
        assert load.failed == []
        blind.send(signal.SIGUSR1)
        out_s = said_at_s(await mesh.leaves(blind, "models"))
        await load.more(4)
    assert {answer.reason for answer in load.failed} <= {"NO_FACE"}
    assert len(load.failed) < 8  # eight refusals in a row force the canary; the last is no answer any more
    assert all(answer.began_s < out_s for answer in load.failed)
    assert len(blind.calls_begun_after(out_s)) <= ON_ITS_WAY
    assert (await mesh.monitor()).json()["workers_healthy"] == 1
    blind.send(signal.SIGUSR2)
    await mesh.edge.event("worker_state", worker=blind.address, to="SERVING")
    await mesh.edge.end(signal.SIGTERM)
    assert mesh.changes(seeing)[1:] == []


def whole_picture(answer: httpx.Response) -> bool:
    """A PNG from the first byte to the last."""
    return answer.content.startswith(b"\x89PNG\r\n\x1a\n") and answer.content.endswith(b"IEND\xaeB`\x82")


async def until_refused(mesh: Service, image: bytes) -> list[Seen]:
    """Some are promised, and served from memory, until a write has failed."""
    answers = [await mesh.measure(image)]
    while answers[-1].code == 0:
        answers.append(await mesh.measure(image))
    return answers


PICTURE_BYTES = 100_000
NOTHING_LEFT, ROOM_FOR_ONE = 0, PICTURE_BYTES + 50_000


@pytest.mark.parametrize("left_bytes", [NOTHING_LEFT, ROOM_FOR_ONE])
async def test_b69_full_picture_store(mesh: Service, disk_of: DiskOf, left_bytes: int) -> None:
    """Every answer either has a whole picture at its URL, or is STORE_FULL and has none; back by itself."""
    image = photo(png_bytes=PICTURE_BYTES)
    disk = disk_of(MIB)
    mesh.add_worker()
    mesh.pictures = disk.path / "annotations"
    await mesh.start()
    good = [await mesh.measure(image)]
    disk.fill(leave_bytes=left_bytes)
    answers = await until_refused(mesh, image)
    good += [answer for answer in answers if answer.code == 0]
    refused = answers[-1]
    assert (refused.http_status, refused.code, refused.reason) == (503, 1007, "STORE_FULL")
    assert float(refused.retry_after) >= 1
    assert "png" not in json.dumps(refused.data)
    assert {answer.reason for answer in answers} <= {"", "STORE_FULL"}
    ready = await mesh.until("/readyz", lambda ready: ready.status_code == 503)
    assert ready.json()["picture_store_writable"] is False
    assert (await mesh.monitor()).status_code == 200, "workers are well: the store has its own alert"
    assert (await mesh.edge.event("pictures_not_stored"))["problem"]
    disk.free()
    await mesh.until("/readyz", lambda ready: ready.status_code == 200)
    await mesh.edge.event("pictures_stored_again")
    good.append(await mesh.measure(image))
    for answer in good:
        assert answer.code == 0
        assert whole_picture(await mesh.client.get(answer.data["annotated_image_url"]))
    assert not list(mesh.pictures.glob(".*")), "nothing half-written is left"


async def test_b69_read_only_picture_store(mesh: Service, disk_of: DiskOf) -> None:
    """The first picture may be promised; it is served all the same, and lies on the disk once that can be written."""
    image = photo(png_bytes=20_000)
    disk = disk_of(MIB)
    mesh.add_worker()
    mesh.pictures = disk.path / "annotations"
    await mesh.start()
    disk.remount("ro")
    answers = await until_refused(mesh, image)
    assert answers[-1].http_status == 503
    good = [answer for answer in answers if answer.code == 0]
    assert {answer.reason for answer in answers if answer.code != 0} <= {"STORE_FAILED", "STORE_FULL"}
    await mesh.until("/readyz", lambda ready: ready.status_code == 503)
    disk.remount("rw")
    await mesh.until("/readyz", lambda ready: ready.status_code == 200)
    good.append(await mesh.measure(image))
    assert good[-1].code == 0
    for answer in good:
        assert whole_picture(await mesh.client.get(answer.data["annotated_image_url"]))


async def test_b69_full_log_folder_leaves_whole_lines(mesh: Service, disk_of: DiskOf) -> None:
    """What is in the log afterwards can be read, every line of it."""
    disk = disk_of(MIB)
    await fill_log_folder(mesh, disk)
    for line in mesh.request_log.read_text().splitlines():
        json.loads(line)


async def test_b69_full_log_folder(mesh: Service, disk_of: DiskOf) -> None:
    """Calls go on; the trouble is told; afterwards the log goes on."""
    disk = disk_of(MIB)
    load = await fill_log_folder(mesh, disk)
    assert load.failed == []
    last = json.loads(mesh.request_log.read_text().splitlines()[-1])
    assert last["time"] > max(record["timestamp"] for record in mesh.edge.records if record["level"] == "error")


async def fill_log_folder(mesh: Service, disk: SmallDisk) -> Load:
    """Calls while the request log cannot be written, then calls when it can again; the edge has ended after that."""
    mesh.add_worker()
    mesh.request_log = disk.path / "request_log.jsonl"
    await mesh.start()
    disk.fill(leave_bytes=2 * PAGE_BYTES)  # a line that crosses into a page that is not there is cut off
    async with Load(mesh, clients=2, image=photo()) as load:
        await mesh.edge.event("request_log_not_written")
        await load.more(5)
        ready, monitor = await mesh.client.get("/readyz"), await mesh.monitor()
        assert (ready.status_code, monitor.status_code) == (200, 200)
        disk.free()
        await load.more(20)
    await mesh.edge.end(signal.SIGTERM)
    return load


async def test_all_primaries_killed_under_load(mesh: Service) -> None:
    """Scenario 6: who was on a primary, and was sent to the other one that died with it, may fail; nobody else."""
    primaries, backups = ([mesh.add_worker() for _ in range(2)] for _ in range(2))
    mesh.primaries = primaries
    await mesh.start()
    async with Load(mesh, clients=6, image=photo(seconds=0.2)) as load:
        await load.more(6)
        assert all(backup.calls_begun_after(0) == [] for backup in backups)
        for primary in primaries:
            primary.send(signal.SIGKILL)
        await load.more(12)
    assert len(load.failed) <= len(primaries), load.failed
    body = (await mesh.until_online(2)).json()
    assert (body["status"], body["workers_primary_healthy"]) == ("ok", 0)
    for backup in backups:
        await backup.event("call")


async def test_a_frozen_worker_is_noticed_and_its_call_retried(mesh: Service) -> None:
    """Scenario 20: SIGSTOP, so that nothing is refused and nothing answered."""
    frozen, other = mesh.add_worker(), mesh.add_worker()
    await mesh.start(health_check={"cooldown_seconds": 1})
    async with Load(mesh, clients=3, image=photo(seconds=0.2)) as load:
        await load.more(4)
        frozen_s = time.time()
        frozen.send(signal.SIGSTOP)
        await mesh.edge.event("worker_state", **{"worker": frozen.address, "from": "SERVING"})
        await load.more(3)
    assert load.failed == []
    longest_s = max(answer.ended_s - answer.began_s for answer in load.answers if answer.ended_s > frozen_s)
    assert longest_s < 2 * (8 + 3) + SOON_S  # two probe periods, nowhere near the attempt's 60 s
    frozen.send(signal.SIGCONT)
    await mesh.until_online(2)
    await mesh.edge.end(signal.SIGTERM)
    assert mesh.changes(other)[1:] == []
    assert sum(request["attempts"] > 1 for request in mesh.requests()) == 1


async def test_rolling_restart_of_all_workers(mesh: Service) -> None:
    """Scenario 34: SIGTERM and a new process, one worker after the other: no error, no ejection, no cooldown."""
    for _ in range(3):
        mesh.add_worker()
    await mesh.start()
    async with Load(mesh, clients=5, image=photo(seconds=0.1)) as load:
        for worker in mesh.workers:
            await load.more(6)
            assert await worker.end(signal.SIGTERM) == 0
            await worker.start()
            await mesh.until_online(3)
        await load.more(6)
    await mesh.edge.end(signal.SIGTERM)
    assert load.failed == []
    assert len(load.answers) > 20
    changes = [change for worker in mesh.workers for change in mesh.changes(worker)]
    assert "EJECTED" not in {change["to"] for change in changes}
    assert sum(change["to"] == "DRAINING" for change in changes) == 3
