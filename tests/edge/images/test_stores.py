"""What every store does, in a folder, in one that edges share, and on a real S3 server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import structlog

from edge.images import objects, stock
from edge.images.local import LocalStore
from edge.images.retention import Retention
from edge.images.store import CLOCKS_S, ID, ImageStore, RemovedError, StoreFullError, TooLargeError, new_id
from tests.edge.rest import eventually

KEEP = Retention(max_bytes=10_000, max_age_s=72 * 3600.0, min_age_s=600.0)
Open = Callable[[Retention], ImageStore]


@pytest.fixture(params=["alone", "shared", "s3"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def open_store(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens the same store again and again, as other edges do, and one that has been restarted."""
    opened: list[ImageStore] = []
    url = request.getfixturevalue("store_url") if kind == "s3" else ""

    def make(retention: Retention) -> ImageStore:
        if url:
            opened.append(objects.ObjectStore(objects.connect(url), retention))
        else:
            opened.append(LocalStore(tmp_path / "pictures", retention, shared=kind == "shared"))
        return opened[-1]

    yield make
    for each in opened:
        await each.close()


@pytest.fixture
async def store(open_store: Open) -> ImageStore:
    made = open_store(KEEP)
    await made.probe()
    assert made.writable
    return made


async def put(store: ImageStore, request_id: str, *pictures: bytes, began_s: float | None = None) -> list[str]:
    """Store the pictures of a request; their ids."""
    named = {new_id(request_id): data for data in pictures}
    await store.put(named, time.monotonic() if began_s is None else began_s)
    return list(named)


async def found(store: ImageStore, ids: list[str]) -> list[bytes | None]:
    return [await store.get(each) for each in ids]


def test_knowing_the_request_helps_nobody_to_guess_the_picture() -> None:
    ids = {new_id("the-same") for _ in range(1000)}
    assert len({each[16:] for each in ids}) == 1000
    assert all(ID.fullmatch(each) and len(each[16:]) == 32 for each in ids)
    assert "the-same" not in "".join(ids)


async def test_what_was_put_is_found_and_counted(store: ImageStore) -> None:
    ids = await put(store, "r", b"one", b"four")
    assert await found(store, ids) == [b"one", b"four"]
    assert (store.figures.count, store.figures.bytes) == (2, 7)
    assert await store.get(new_id("r")) is None
    await store.remove([ids[0], new_id("never-stored")])
    assert await found(store, ids) == [None, b"four"]
    assert (store.figures.count, store.figures.bytes) == (1, 4)


@pytest.mark.parametrize("name", ["", "../x", "a" * 47, "A" * 48, "a" * 48 + "/..", "a" * 16 + "/" + "a" * 31])
async def test_only_our_names_are_looked_for(store: ImageStore, name: str) -> None:
    assert await store.get(name) is None


async def test_a_requests_pictures_go_and_no_others(store: ImageStore) -> None:
    ids = await put(store, "visit-1", b"a", b"b")
    again = await put(store, "visit-1", b"c")  # the id is the client's: it may come again
    others = await put(store, "visit-10", b"d") + await put(store, "visit", b"e")
    assert await store.remove_request("visit-1") == 3
    assert await found(store, ids + again) == [None, None, None]
    assert await found(store, others) == [b"d", b"e"]
    assert (store.figures.count, store.figures.bytes, store.figures.removed_by_request) == (2, 2, 3)
    assert await store.remove_request("visit-1") == 0, "asking again is no error"
    assert await store.remove_request("never-seen") == 0


async def test_what_another_edge_stored_goes_too_and_after_a_restart(open_store: Open, store: ImageStore) -> None:
    ids = await put(store, "r", b"x", b"y")
    await store.close()  # an edge that is alone has written everything then
    other = open_store(KEEP)
    assert await found(other, ids) == [b"x", b"y"]
    assert await other.remove_request("r") == 2
    assert await found(other, ids) == [None, None]


@pytest.mark.parametrize("where", ["here", "on another edge"])
async def test_what_a_running_request_brings_afterwards_goes_as_well(
    open_store: Open, store: ImageStore, kind: str, where: str
) -> None:
    began_s = time.monotonic()
    other = open_store(KEEP)
    await other.probe()
    assert await (store if where == "here" else other).remove_request("r") == 0
    late = {new_id("r"): b"late", new_id("r"): b"later"}
    if kind == "alone" and where == "on another edge":  # of which it hears from the disk, behind its answer
        await store.put(late, began_s)
        await eventually(lambda: store.figures.waiting == 0)
    else:
        with pytest.raises(RemovedError):
            await store.put(late, began_s)
    assert await found(store, list(late)) == await found(other, list(late)) == [None, None]
    assert (store.figures.count, store.figures.waiting, store.figures.failures) == (0, 0, 0)
    later = await put(store, "r", b"a new one", began_s=time.monotonic() + CLOCKS_S + 2)
    await eventually(lambda: store.figures.waiting == 0)
    assert await found(other, later) == [b"a new one"], "the same id, used again, is not haunted"


@pytest.mark.parametrize("where", ["here", "on another edge"])
async def test_a_request_that_begins_right_after_has_its_pictures_or_is_told_that_it_has_none(
    open_store: Open, store: ImageStore, kind: str, where: str
) -> None:
    """An edge alone has one clock. Those that share a store have several, and S3 tells the time by the second."""
    other = open_store(KEEP)
    await other.probe()
    await put(store, "r", b"before")
    await (store if where == "here" else other).remove_request("r")
    again = {new_id("r"): b"again"}
    if kind == "alone":
        await store.put(again, time.monotonic())
        assert await found(store, list(again)) == [b"again"]
        await eventually(lambda: store.figures.waiting == 0)
        assert await found(store, list(again)) == [b"again"]
    else:
        with pytest.raises(RemovedError):
            await store.put(again, time.monotonic())
        assert await found(store, list(again)) == await found(other, list(again)) == [None]
    await eventually(lambda: store.figures.waiting == 0)
    assert store.figures.failures == 0
    assert store.writable


async def test_a_sweep_counts_what_is_there(open_store: Open, store: ImageStore) -> None:
    await put(store, "r", bytes(700), bytes(300))
    await eventually(lambda: store.figures.waiting == 0)
    other = open_store(KEEP)
    await other.sweep()
    assert (other.figures.count, other.figures.bytes) == (2, 1000)


async def test_what_is_too_old_goes(open_store: Open, store: ImageStore) -> None:
    ids = await put(store, "r", b"x", b"y")
    await store.remove_request("another")  # leaves a mark, which is no picture
    await eventually(lambda: store.figures.waiting == 0)
    strict = open_store(Retention(max_bytes=10_000, max_age_s=-CLOCKS_S, min_age_s=0))
    await strict.sweep()
    assert await found(store, ids) == [None, None]
    assert (strict.figures.count, strict.figures.bytes, strict.figures.removed_old) == (0, 0, 2)


async def test_a_full_store_refuses_while_all_is_young(store: ImageStore) -> None:
    ids = await put(store, "r", bytes(9_000))
    with pytest.raises(StoreFullError):
        await put(store, "r", bytes(2_000))
    full = not store.writable
    assert await found(store, ids) == [bytes(9_000)], "an answer that was given keeps its picture"
    assert (store.figures.failures, store.figures.count) == (1, 1)
    await store.remove(ids)
    assert (full, store.writable) == (True, True)
    await put(store, "r", bytes(2_000))


async def test_a_full_store_makes_the_room_that_was_asked_for_once_pictures_are_old_enough(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a balancer that heeds `/readyz` no answer comes to ask for it again. It is too little for a sweep of its
    own: below 95 % of `static.max_bytes` none comes."""
    monkeypatch.setattr(stock, "ROOM_TIMEOUT_S", 60.0)  # a busy machine is not what is tested
    monkeypatch.setattr(stock, "NO_ROOM_S", 0.0)
    store = open_store(KEEP)
    await store.probe()
    for _ in range(9):
        await put(store, "r", bytes(1_000))
    with pytest.raises(StoreFullError):
        await put(store, "r", bytes(2_000))
    await eventually(lambda: store.figures.waiting == 0)
    await store.probe()
    all_young: bool = store.writable
    assert not all_young
    later = SimpleNamespace(time=lambda: time.time() + 3600.0, monotonic=time.monotonic)
    monkeypatch.setattr(stock, "time", later)
    await store.probe()
    assert store.writable
    assert store.figures.removed_for_room == 1
    assert store.figures.count == 8


async def test_a_full_store_makes_room_by_itself(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock, "ROOM_TIMEOUT_S", 60.0)  # a busy machine is not what is tested
    store = open_store(Retention(max_bytes=10_000, max_age_s=3600.0, min_age_s=-CLOCKS_S))
    await store.probe()
    for _ in range(30):
        ids = await put(store, "r", bytes(1_000))
        assert await found(store, ids) == [bytes(1_000)]
        await eventually(lambda: store.figures.waiting == 0)  # what is being written cannot go
    assert store.figures.bytes <= 10_000
    assert store.figures.removed_for_room >= 20
    await store.sweep()
    assert store.figures.count == store.figures.bytes // 1000 >= 8, "no more than a tenth went at a time"


async def test_more_than_the_whole_store_takes_is_refused_and_costs_nobody_a_picture(open_store: Open) -> None:
    store = open_store(Retention(max_bytes=10_000, max_age_s=3600.0, min_age_s=0.0))
    await store.probe()
    ids = await put(store, "r", b"small")
    with pytest.raises(TooLargeError) as refused:
        await put(store, "r", bytes(11_000))
    assert (refused.value.bytes, refused.value.max_bytes) == (11_000, 10_000)
    assert await found(store, ids) == [b"small"]
    assert store.figures.failures == 1


async def test_what_the_empty_store_could_not_take_says_nothing_of_its_room(store: ImageStore) -> None:
    """Behind a balancer that heeds `/readyz` nothing would ever come to end it."""
    with structlog.testing.capture_logs() as said:
        with pytest.raises(TooLargeError):
            await put(store, "r", bytes(11_000))
        assert store.writable
        await store.probe()
        assert store.writable
        assert [(line["event"], line["bytes"], line["max_bytes"]) for line in said] == [
            ("pictures_too_large", 11_000, 10_000)
        ]
        await put(store, "r", bytes(9_000))
        for size, error in ((2_000, StoreFullError), (11_000, TooLargeError)):
            with pytest.raises(error):
                await put(store, "r", bytes(size))
        assert not store.writable, "nor does it end what another one has found"


async def test_two_edges_remove_the_same_at_the_same_time(open_store: Open, store: ImageStore) -> None:
    ids = await put(store, "r", *(bytes([number]) for number in range(20)))
    await eventually(lambda: store.figures.waiting == 0)
    other = open_store(KEEP)
    counts = await asyncio.gather(store.remove_request("r"), other.remove_request("r"))
    assert set(await found(store, ids)) == {None}
    assert sum(counts) >= 20
