"""Pictures in a folder: whole or not there, found at once, gone in time, and no hostage of a slow disk."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import structlog

from edge.images import local
from edge.images.folder import Folder
from edge.images.local import LocalStore
from edge.images.retention import Retention
from edge.images.store import ID, RemovedError, StoreError, StoreFullError, TooLargeError, new_id
from tests.e2e.small_disk import SmallDisk
from tests.edge.rest import eventually

HOUR_S = 3600.0
RETENTION = Retention(max_bytes=10_000, max_age_s=72 * HOUR_S, min_age_s=600.0)


def an_id() -> str:
    return new_id("a-request")


async def put(store: LocalStore, picture_id: str, data: bytes) -> None:
    await store.put({picture_id: data}, time.monotonic())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a" / "pictures"


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[LocalStore]:
    made = LocalStore(folder, RETENTION)
    await made.probe()
    yield made
    await made.close()


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


async def test_a_first_start_is_no_recovery_and_a_first_failure_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with structlog.testing.capture_logs() as said:
        good = LocalStore(tmp_path / "pictures", RETENTION)
        await good.probe()
        assert said == []
        bad = LocalStore(tmp_path / "file" / "pictures", RETENTION)
        for _ in range(2):
            await bad.probe()
        assert [line["event"] for line in said] == ["pictures_not_stored"]
        (tmp_path / "file").unlink()
        await bad.probe()
    assert [line["event"] for line in said] == ["pictures_not_stored", "pictures_stored_again"]
    await good.close()
    await bad.close()


async def test_a_full_disk_is_told_once_and_that_it_is_over(disk: SmallDisk) -> None:
    """Refused before a byte of it is written: the log says so all the same, on a disk that is really full."""
    store = LocalStore(disk.path / "pictures", Retention(10_000_000, 3600.0, 600.0))
    await store.probe()
    with structlog.testing.capture_logs() as said:
        for _ in range(2):
            disk.fill(leave_bytes=100_000)
            await store.probe()
            assert said == [], "a small picture still fits"
            for _ in range(3):
                with pytest.raises(StoreFullError):
                    await put(store, an_id(), bytes(200_000))
                await store.probe()
            assert [line["event"] for line in said] == ["pictures_not_stored"]
            assert said[0]["problem"] == "the disk is full"
            await put(store, an_id(), b"small")
            await eventually(lambda: store.figures.waiting == 0)
            disk.free()
            await store.probe()
            await put(store, an_id(), bytes(200_000))
            await eventually(lambda: store.figures.waiting == 0)
            assert [line["event"] for line in said] == ["pictures_not_stored", "pictures_stored_again"]
            said.clear()
    await store.close()


async def test_what_the_empty_disk_could_not_take_says_nothing_of_its_room(disk: SmallDisk) -> None:
    store = LocalStore(disk.path / "pictures", Retention(10_000_000, 3600.0, 600.0))
    await store.probe()
    with structlog.testing.capture_logs() as said:
        with pytest.raises(TooLargeError):
            await put(store, an_id(), bytes(1_200_000))
        assert store.writable
        await put(store, an_id(), bytes(200_000))
        await store.probe()
        assert store.writable
    assert [line["event"] for line in said] == ["pictures_too_large"]
    assert said[0]["problem"] == "the pictures of one answer are larger than the disk"
    await store.close()


async def test_a_store_that_has_all_its_bytes_is_told(store: LocalStore) -> None:
    name = an_id()
    with structlog.testing.capture_logs() as said:
        await put(store, name, bytes(9_000))
        for _ in range(2):
            with pytest.raises(StoreFullError):
                await put(store, an_id(), bytes(2_000))
        await store.remove([name])
        await store.probe()
    assert [(line["event"], line.get("problem")) for line in said] == [
        ("pictures_not_stored", "pictures take all of static.max_bytes, and none may go yet"),
        ("pictures_stored_again", None),
    ]


def test_ids_cannot_be_guessed() -> None:
    ids = {an_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(ID.fullmatch(name) for name in ids)  # all but the first 16 hex digits are random: 128 bits


async def test_what_was_put_is_found_at_once_and_on_the_disk_soon(store: LocalStore, folder: Path) -> None:
    pictures = {an_id(): bytes([number]) * 500 for number in range(10)}
    for name, data in pictures.items():
        await put(store, name, data)
        assert await store.get(name) == data
    await eventually(lambda: visible(folder) == sorted(f"{name}.png" for name in pictures))
    assert [await store.get(name) for name in pictures] == list(pictures.values())
    assert store.writable
    assert store.figures.bytes == 5000


async def test_many_at_once(store: LocalStore) -> None:
    names = [an_id() for _ in range(15)]
    await asyncio.gather(*(put(store, name, name.encode()) for name in names))
    assert await asyncio.gather(*map(store.get, names)) == [name.encode() for name in names]


async def test_pictures_are_for_this_user_only(store: LocalStore, folder: Path) -> None:
    name = an_id()
    await put(store, name, b"x")
    await eventually((folder / f"{name}.png").exists)
    assert (folder / f"{name}.png").stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["", "..", "../x", "a" * 47, "A" * 48, "a" * 48 + "/..", "a" * 48 + "\n", "%2e"])
async def test_only_our_names_are_looked_for(store: LocalStore, folder: Path, name: str) -> None:
    (folder.parent / "x.png").write_bytes(b"secret")
    assert await store.get(name) is None


async def test_a_picture_that_is_not_there(store: LocalStore) -> None:
    assert await store.get(an_id()) is None


async def test_removed_pictures_are_gone(store: LocalStore) -> None:
    name, other = an_id(), an_id()
    await put(store, name, b"one")
    await put(store, other, b"other")
    await store.remove([name, an_id()])
    assert await store.get(name) is None
    assert await store.get(other) == b"other"
    assert store.figures.bytes == 5


async def test_a_full_store_refuses_and_has_room_again(store: LocalStore) -> None:
    name = an_id()
    await put(store, name, bytes(9_000))
    with pytest.raises(StoreFullError):
        await put(store, an_id(), bytes(2_000))
    full = not store.writable
    await store.remove([name])
    assert full, "there was no room for what was wanted last"
    assert store.writable
    await put(store, an_id(), bytes(2_000))


async def test_room_on_the_disk_is_known_before_a_picture_is_promised(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = SimpleNamespace(f_blocks=9, f_bfree=2, f_bavail=1, f_frsize=1000)
    monkeypatch.setattr(os, "fstatvfs", lambda _descriptor: facts)
    await store.probe()
    with pytest.raises(StoreFullError):
        await put(store, an_id(), bytes(1001))
    full = not store.writable
    await put(store, an_id(), bytes(999))
    assert full
    assert store.writable


def no_space(_descriptor: int, _data: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_disk_that_is_full_after_all(store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    promised, refused, later = an_id(), an_id(), an_id()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", no_space)
        await put(store, promised, b"promised")
        await eventually(lambda: not store.writable)
        with pytest.raises(StoreFullError):  # from now on each one waits for its own write
            await put(store, refused, b"refused")
        assert visible(folder) == []
        assert await store.get(promised) == b"promised"  # a promise is kept
        assert await store.get(refused) is None
        assert store.figures.bytes == len(b"promised")
    await put(store, later, b"later")  # the first good write ends it
    assert store.writable
    await store.probe()
    assert visible(folder) == sorted([f"{promised}.png", f"{later}.png"])


async def test_a_folder_that_vanished_comes_back(store: LocalStore, folder: Path) -> None:
    folder.rmdir()
    promised = an_id()
    await put(store, promised, b"x")
    await eventually(lambda: not store.writable)
    with pytest.raises(StoreError):
        await put(store, an_id(), b"x")
    await store.probe()
    assert store.writable
    assert visible(folder) == [f"{promised}.png"]


async def test_old_pictures_and_leftovers_go_and_nothing_else(folder: Path) -> None:
    store = LocalStore(folder, RETENTION)
    folder.mkdir(parents=True)

    def made(name: str, age_s: float) -> Path:
        path = folder / name
        path.write_bytes(b"12345")
        os.utime(path, (time.time() - age_s,) * 2)
        return path

    gone = [made(f"{an_id()}.png", 73 * HOUR_S), made(f".{an_id()}.tmp", 3 * HOUR_S)]
    kept = [made(f"{an_id()}.png", 71 * HOUR_S), made(f".{an_id()}.tmp", 60), made("notes.txt", 1000 * HOUR_S)]
    await store.sweep()
    assert [path.exists() for path in gone] == [False, False]
    assert [path.exists() for path in kept] == [True, True, True]
    assert store.figures.bytes == 5, "what is no picture is not counted"
    await store.close()


async def test_an_orderly_stop_writes_what_is_waiting(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)
    names = [an_id() for _ in range(local.THREADS + 3)]
    for name in names:
        await put(store, name, b"x")
    asyncio.get_running_loop().call_later(0.05, disk.let_go.set)
    await store.close()
    assert len(visible(folder)) == len(names)


async def test_a_restart_counts_what_is_there(store: LocalStore, folder: Path) -> None:
    await put(store, an_id(), bytes(700))
    await store.close()
    successor = LocalStore(folder, RETENTION)
    await successor.sweep()
    assert successor.figures.bytes == 700
    await successor.close()


async def test_descriptors_stay_few(store: LocalStore, folder: Path) -> None:
    before = open_descriptors()
    for _ in range(50):
        await put(store, an_id(), b"x")
    await eventually(lambda: len(visible(folder)) == 50)
    assert open_descriptors() <= before


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class SlowDisk:
    """`os.write` that hangs until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered = threading.Event()
        self.let_go = threading.Event()
        real = os.write

        def write(descriptor: int, data: bytes) -> int:
            self.entered.set()
            self.let_go.wait(60)
            return real(descriptor, data)

        monkeypatch.setattr(os, "write", write)


async def test_a_hanging_disk_fills_the_waiting_room_then_everyone_waits(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MAX_WAITING_BYTES", 1000)
    monkeypatch.setattr(local, "IO_TIMEOUT_S", 0.05)
    disk = SlowDisk(monkeypatch)
    promised = an_id()
    await put(store, promised, bytes(900))
    with pytest.raises(StoreError, match="did not answer"):
        await put(store, an_id(), bytes(200))
    assert not store.writable
    assert await store.get(promised) == bytes(900)
    disk.let_go.set()
    await eventually(lambda: visible(folder) == [f"{promised}.png"])  # the one given up leaves nothing
    await eventually(lambda: store.writable)
    assert store.figures.bytes == 900


async def test_a_put_that_is_cancelled_while_it_waits_leaves_nothing(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MAX_WAITING_BYTES", 0)
    disk = SlowDisk(monkeypatch)
    stored = asyncio.create_task(put(store, an_id(), b"nobody waits for this"))
    await asyncio.to_thread(disk.entered.wait, 60)
    stored.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stored
    disk.let_go.set()
    await put(store, an_id(), b"the next")
    await eventually(lambda: len(visible(folder)) == 1)
    assert store.figures.bytes == 8


async def test_a_picture_removed_before_it_was_written_is_not_written(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)
    gone, kept = an_id(), an_id()
    await put(store, gone, b"gone")
    await asyncio.to_thread(disk.entered.wait, 60)
    await store.remove([gone])
    assert await store.get(gone) is None
    await put(store, kept, b"kept")
    disk.let_go.set()
    await eventually(lambda: visible(folder) == [f"{kept}.png"])
    assert store.figures.bytes == 4


@pytest.mark.parametrize("waiting_room", [0, local.MAX_WAITING_BYTES])
async def test_what_comes_after_its_removal_is_served_by_nobody_however_slow_the_disk_is(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, waiting_room: int
) -> None:
    """Its call was running when that was answered; what the disk knows of it would be looked at too late."""
    began_s = time.monotonic()
    assert await store.remove_request("a-request") == 0
    monkeypatch.setattr(local, "MAX_WAITING_BYTES", waiting_room)
    disk = SlowDisk(monkeypatch)
    late, of_another = an_id(), new_id("another-request")
    with pytest.raises(RemovedError):
        await store.put({late: b"late"}, began_s)
    assert await store.get(late) is None
    assert (store.figures.waiting, store.figures.count) == (0, 0)
    assert not disk.entered.is_set(), "no byte of it touches the disk"
    disk.let_go.set()
    await store.put({of_another: b"wanted"}, began_s)
    assert await store.get(of_another) == b"wanted"


async def test_a_clock_that_is_put_forward_brings_nothing_back(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By that clock the request begins after what was removed while it ran."""
    began_s = time.monotonic()
    await store.remove_request("a-request")
    forward = SimpleNamespace(time=lambda: time.time() + HOUR_S, monotonic=time.monotonic)
    monkeypatch.setattr("edge.images.store.time", forward)
    late = an_id()
    with pytest.raises(RemovedError):
        await store.put({late: b"late"}, began_s)
    assert await store.get(late) is None
    assert visible(folder) == []


@pytest.mark.parametrize("marked", [False, True])
async def test_pictures_removed_while_their_answer_waits_for_them_are_in_no_answer(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch, marked: bool
) -> None:
    """Also where its own thread is quicker than the mark of the removal."""
    monkeypatch.setattr(local, "MAX_WAITING_BYTES", 0)
    disk = SlowDisk(monkeypatch)
    stored = asyncio.create_task(put(store, an_id(), b"x"))
    await asyncio.to_thread(disk.entered.wait, 60)
    if not marked:
        monkeypatch.setattr(Folder, "mark_removed", lambda _folder, _tag: None)
    assert await store.remove_request("a-request") == 1
    disk.let_go.set()
    with pytest.raises(RemovedError):
        await stored
    assert visible(folder) == []
    assert (store.figures.count, store.figures.bytes, store.figures.failures) == (0, 0, 0)


@pytest.mark.parametrize("by_request", [False, True])
async def test_a_picture_whose_write_was_under_way_is_gone_at_once(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch, by_request: bool
) -> None:
    """Its file still appears, and stands there until its own thread sees that nobody wants it."""
    disk = SlowDisk(monkeypatch)
    stands, seen = threading.Event(), threading.Event()
    real = Folder.removed_s

    def removed_s(files: Folder, tag: str) -> float:
        stands.set()
        seen.wait(60)
        return real(files, tag)

    monkeypatch.setattr(Folder, "removed_s", removed_s)
    gone, kept = an_id(), new_id("another-request")
    await put(store, gone, b"gone")
    await asyncio.to_thread(disk.entered.wait, 60)
    if by_request:
        assert await store.remove_request("a-request") == 1
    else:
        await store.remove([gone])
    disk.let_go.set()
    await asyncio.to_thread(stands.wait, 60)
    assert visible(folder) == [f"{gone}.png"]
    assert await store.get(gone) is None
    seen.set()
    await eventually(lambda: visible(folder) == [])
    await put(store, kept, b"kept")
    await eventually(lambda: visible(folder) == [f"{kept}.png"])
    assert await store.get(kept) == b"kept"
    assert store.figures.bytes == 4


@pytest.fixture
def planted(folder: Path) -> dict[str, Path]:
    """What somebody else has put there under names that could be ours."""
    folder.mkdir(parents=True, exist_ok=True)
    secret = folder.parent / "secret"
    secret.write_text("somebody's secret")
    made = {kind: folder / f"{new_id('planted')}.png" for kind in ("link", "folder", "pipe", "socket", "empty")}
    made["link"].symlink_to(secret)
    made["folder"].mkdir()
    os.mkfifo(made["pipe"])
    os.mknod(made["socket"], stat.S_IFSOCK | 0o600)
    made["empty"].touch()
    return made


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "socket", "empty"])
async def test_what_is_no_picture_of_ours_is_not_served_and_harms_nothing(
    store: LocalStore, planted: dict[str, Path], kind: str
) -> None:
    assert await store.get(planted[kind].stem) is None
    assert store.writable


async def test_what_is_no_picture_of_ours_stays_and_keeps_nothing_else(folder: Path, planted: dict[str, Path]) -> None:
    old = folder / f"{new_id('ours')}.png"
    old.write_bytes(b"old")
    for path in (*planted.values(), old):
        os.utime(path, (0, 0), follow_symlinks=False)
    store = LocalStore(folder, RETENTION)
    await store.probe()
    with structlog.testing.capture_logs() as said:
        await store.sweep()
    assert [line["event"] for line in said] == ["old_pictures_removed"]
    assert {path.name for path in planted.values()} - set(visible(folder)) == {planted["empty"].name}, "a file of ours"
    assert not old.exists()
    assert await store.remove_request("planted") == 0
    assert planted["link"].is_symlink()
    assert planted["folder"].is_dir()
    assert store.writable
    await store.close()


async def test_one_that_cannot_be_read_does_not_make_the_edge_unready(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_folder: Folder, _picture_id: str) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Folder, "read", refuse)
    with pytest.raises(StoreError, match="Permission denied"):
        await store.get(an_id())
    assert store.writable


async def test_one_that_cannot_be_removed_keeps_none_of_the_others(
    store: LocalStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [an_id() for _ in range(3)]
    for each in ids:
        await put(store, each, b"x")
    await eventually(lambda: len(visible(folder)) == 3)
    unlink = Path.unlink

    def refuse_the_first(path: Path, missing_ok: bool = False) -> None:
        if path.stem == ids[0]:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse_the_first)
    with pytest.raises(StoreError, match="Operation not permitted"):
        await store.remove_request("a-request")
    assert visible(folder) == [f"{ids[0]}.png"]
