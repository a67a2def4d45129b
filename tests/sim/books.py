"""The pool's books against what its clients know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from edge.pool.snapshot import PoolSnapshot
from tests.sim.rules import require

if TYPE_CHECKING:
    from tests.sim.edge import Client, SimEdge


def check_books(edge: SimEdge, snapshot: PoolSnapshot, running: Mapping[str, Client]) -> None:
    """Counts and slots of the snapshot. `running`: by worker."""
    most = edge.world.original.dispatch.max_in_flight  # a reload may leave more inside than it would let in
    held = {each.call_id: each.target for each in snapshot.endpoints if each.call_id and not each.left_behind}
    books = {
        "requests": snapshot.inside + snapshot.waiting_outside,
        "waiting": snapshot.waiting_fast + snapshot.waiting_slow,
        "too many inside": max(0, snapshot.inside - most),
        "slots": held,
    }
    truth = {
        "requests": len(edge.open),
        "waiting": len(edge.open) - len(running),
        "too many inside": 0,
        "slots": {client.call_id: target for target, client in running.items()},
    }
    if books != truth:  # telling it takes time
        require(edge, False, "lost", f"in the books {books}, in truth {truth}")
