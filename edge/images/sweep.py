"""One sweep over a store: two looks at every entry, and what they say goes. It may block for as long as it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from edge.images.retention import Census, Entry, Retention, Why

_BATCH = 500
"""How many entries are removed together."""


class Shelf(Protocol):
    """Where the pictures are. The methods raise `OSError` or `StoreError`."""

    def walk(self) -> Iterator[Entry]:
        """Every entry of ours, in any order."""

    def discard(self, names: Sequence[str]) -> Mapping[str, str]:
        """Remove entries; those that are gone are no error. Which could not be removed, and why."""


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


@dataclass(slots=True)
class Swept:
    """What a sweep found and did."""

    bytes: int = 0
    """Left."""
    count: int = 0
    """Pictures left."""
    removed: Counter[Why] = field(default_factory=Counter)
    """Pictures that went."""
    stayed: int = 0
    """Entries that should have gone, and could not be removed."""
    problem: str = ""
    """Why the last of them could not."""


def sweep(shelf: Shelf, order: Order) -> Swept:
    """Remove what has to go, and make room if there is need. Entries that are being written, and those made after the
    order, are not counted. What cannot be removed is told, and keeps nothing else from going.
    """
    census = Census(order.retention, order.now_s, order.written)
    swept = Swept()
    _discard(shelf, census.look, swept)
    swept.bytes += census.bytes
    swept.count += census.count
    if clearance := census.clearance(order.wanted_bytes):
        _discard(shelf, clearance.look, swept)
    return swept


def _discard(shelf: Shelf, look: Callable[[Entry], Why | None], swept: Swept) -> None:
    """Remove what `look` says, and note what came of it."""
    batch: dict[str, tuple[Entry, Why]] = {}
    for entry in shelf.walk():
        if (why := look(entry)) is None:
            continue
        batch[entry.name] = entry, why
        if len(batch) == _BATCH:
            _remove(shelf, batch, swept)
            batch = {}
    if batch:
        _remove(shelf, batch, swept)


def _remove(shelf: Shelf, batch: Mapping[str, tuple[Entry, Why]], swept: Swept) -> None:
    stay = shelf.discard(list(batch))
    for name, (entry, why) in batch.items():
        if name in stay:
            swept.stayed += 1
            swept.problem = stay[name]
        if not entry.picture:
            continue
        if name not in stay:
            swept.removed[why] += 1
        # A census counts what stays: what is too old is not in it, what goes for room is.
        if why is Why.OLD and name in stay:
            swept.bytes, swept.count = swept.bytes + entry.bytes, swept.count + 1
        elif why is Why.ROOM and name not in stay:
            swept.bytes, swept.count = swept.bytes - entry.bytes, swept.count - 1
