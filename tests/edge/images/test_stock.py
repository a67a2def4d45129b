"""What a store counts, and when it makes room: over a shelf whose sweeps last as long as a test wants."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial

import pytest
import structlog

from edge.images.retention import Entry, Retention
from edge.images.stock import Stock
from edge.images.store import StoreFullError
from edge.images.sweep import sweep

KEEP = Retention(max_bytes=1000, max_age_s=3600.0, min_age_s=600.0)


class FakeShelf:
    """Entries in memory."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.held: set[str] = set()
        self.walks = 0
        self.walking = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.trouble: OSError | None = None

    def add(self, age_s: float, size: int) -> str:
        """A picture of that age; its name."""
        name = f"picture-{len(self.entries)}-{size}"
        self.entries[name] = Entry(name, picture=True, made_s=time.time() - age_s, bytes=size)
        return name

    def walk(self) -> Iterator[Entry]:
        """What is there at this moment; goes on when the gate is open."""
        seen = list(self.entries.values())
        self.walks += 1
        self.walking.set()
        assert self.gate.wait(60)
        if self.trouble is not None:
            raise self.trouble
        yield from seen

    def discard(self, names: Sequence[str]) -> Mapping[str, str]:
        """They are gone, but for those that are held."""
        for name in set(names) - self.held:
            self.entries.pop(name, None)
        return dict.fromkeys(self.held & set(names), "Operation not permitted")


@pytest.fixture
def shelf() -> FakeShelf:
    return FakeShelf()


@pytest.fixture
async def stock(shelf: FakeShelf, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stock]:
    monkeypatch.setattr("edge.images.stock.ROOM_TIMEOUT_S", 60.0)  # a busy machine is not what is tested
    made = Stock(partial(sweep, shelf), KEEP, dict)
    yield made
    made.close()


async def test_whoever_comes_during_a_sweep_gets_one_that_knows_of_them(shelf: FakeShelf, stock: Stock) -> None:
    """The sweep under way has seen too little to remove anything: what has filled the store came since it began."""
    shelf.add(1000, 900)
    await stock.sweep()
    shelf.walking.clear()
    shelf.gate.clear()
    sweeping = asyncio.create_task(stock.sweep())
    await asyncio.to_thread(shelf.walking.wait, 60)
    shelf.add(700, 90)
    stock.add(90)
    waiting = asyncio.create_task(stock.make_room(200))
    await asyncio.sleep(0)
    shelf.gate.set()
    await asyncio.gather(sweeping, waiting)
    assert stock.fits(200)
    assert stock.bytes == sum(entry.bytes for entry in shelf.entries.values())


async def test_what_comes_and_goes_during_a_sweep_is_counted(shelf: FakeShelf, stock: Stock) -> None:
    """It has seen none of that: without it `static.max_bytes` would be overrun until the next one."""
    shelf.add(10, 300)
    shelf.gate.clear()
    sweeping = asyncio.create_task(stock.sweep())
    await asyncio.to_thread(shelf.walking.wait, 60)
    stock.add(400)
    stock.add(50)
    stock.drop(1, 50)
    shelf.gate.set()
    await sweeping
    assert (stock.bytes, stock.figures().count) == (700, 2)
    assert not stock.fits(301)


async def test_where_none_may_go_that_is_not_looked_at_again_for_every_picture(shelf: FakeShelf, stock: Stock) -> None:
    shelf.add(10, 900)
    await stock.sweep()
    for _ in range(5):
        with pytest.raises(StoreFullError):
            await stock.make_room(200)
    assert shelf.walks == 1 + 2, "a first look, and a second for what may go"


async def test_a_store_that_cannot_be_seen_is_not_asked_again_for_every_picture(shelf: FakeShelf, stock: Stock) -> None:
    shelf.add(1000, 900)
    await stock.sweep()
    walks, shelf.trouble = shelf.walks, PermissionError(13, "Permission denied")
    with structlog.testing.capture_logs() as said:
        for _ in range(5):
            with pytest.raises(StoreFullError):
                await stock.make_room(200)
    assert shelf.walks == walks + 1
    assert [(line["event"], line["problem"]) for line in said] == [("pictures_not_swept", "Permission denied")]


@pytest.mark.parametrize(("age_s", "event"), [(4000, "old_pictures_removed"), (1000, "pictures_removed_for_room")])
async def test_what_cannot_be_removed_is_told_and_counted_and_keeps_nothing_else(
    shelf: FakeShelf, stock: Stock, age_s: float, event: str
) -> None:
    names = [shelf.add(age_s, 400) for _ in range(5)]
    shelf.held = {names[0]}
    with structlog.testing.capture_logs() as said:
        await stock.sweep()
    assert names[0] in shelf.entries
    assert (stock.bytes, stock.figures().count) == (400 * len(shelf.entries), len(shelf.entries))
    assert len(shelf.entries) <= 3
    assert [line["event"] for line in said] == ["pictures_not_swept", event]
    assert (said[0]["problem"], said[0]["count"]) == ("Operation not permitted", 1)
    assert said[1]["count"] == 5 - len(shelf.entries)
