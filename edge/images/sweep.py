"""One sweep over a store: two looks at every entry, and what they say goes. It may block for as long as it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from edge.images.retention import Census, Entry, Retention, Why

_BATCH = 500
"""How many entries are removed together."""


class Shelf(Protocol):
    """Where the pictures are. The methods raise `OSError` or `StoreError`."""

    def walk(self) -> Iterator[Entry]:
        """Every entry of ours, in any order."""

    def discard(self, names: Sequence[str]) -> None:
        """Remove entries; those that are gone are no error."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done."""

    retention: Retention
    now_s: float
    """Unix time."""
    wanted_bytes: int
    """For which there has to be room."""
    written: Collection[str]
    """Names of entries that are being written."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found and did."""

    bytes: int
    """Left."""
    count: int
    """Pictures left."""
    removed: Counter[Why]
    """Pictures that went."""


def sweep(shelf: Shelf, order: Order) -> Swept:
    """Remove what has to go, and make room if there is need. Entries that are being written, and those made after the
    order, are not counted.
    """
    removed: Counter[Why] = Counter()
    census = Census(order.retention, order.now_s, order.written)
    _discard(shelf, census.look, removed)
    left_bytes, left_count = census.bytes, census.count
    if clearance := census.clearance(order.wanted_bytes):
        left_bytes -= _discard(shelf, clearance.look, removed)
        left_count -= removed[Why.ROOM]
    return Swept(left_bytes, left_count, removed)


def _discard(shelf: Shelf, look: Callable[[Entry], Why | None], removed: Counter[Why]) -> int:
    """Remove what `look` says and count the pictures among it; their bytes."""
    names: list[str] = []
    gone_bytes = 0
    for entry in shelf.walk():
        if (why := look(entry)) is None:
            continue
        names.append(entry.name)
        if entry.picture:
            removed[why] += 1
            gone_bytes += entry.bytes
        if len(names) == _BATCH:
            shelf.discard(names)
            names.clear()
    shelf.discard(names)
    return gone_bytes
