"""Clients whose inputs break workers: held to one worker, so that the others stay whole.

Held is who has broken two workers with two inputs in `POISON_S`, and of whose last calls at least half did so: behind
one address there may be many people, and one of them must not cost the others the pool. An input that is answered well
elsewhere has broken nothing. It ends after that time, or as soon as its calls go well again.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from edge.pool import config as fixed
from edge.pool.poison import Break, witnesses

_MASK = (1 << fixed.CLIENT_CALLS) - 1


@dataclass(slots=True, eq=False)
class _Client:
    number: int
    """For the log: nothing in it tells who it is."""
    recent: int = 0
    """One bit for each of the last calls: 1 for one that broke its worker; the latest lowest."""
    calls: int = 0
    """How many of these bits count."""
    breaks: dict[str, Break] = field(default_factory=dict)
    """The last one on each worker."""
    held_until_s: float = -math.inf
    worker: str = ""
    """While held: the only one it gets. Empty: whichever it gets next."""

    def note(self, *, broke: bool) -> None:
        self.recent = (self.recent << 1 | broke) & _MASK
        self.calls = min(self.calls + 1, fixed.CLIENT_CALLS)


def _enough(breaks: Mapping[str, Break]) -> bool:
    """Whether somebody who has broken these workers is to be held."""
    inputs = {broken.input_key for broken in breaks.values()}
    return min(witnesses(breaks.values()), len(inputs)) >= fixed.POISON_WORKERS


class Clients:
    """What is known of the last `CLIENTS_MAX` clients, by their key."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        """The one unheard of for longest first."""
        self.held: set[str] = set()
        """Those that are, but for `holds` to look whether they still must be."""
        self._count = 0

    def tag(self, client_key: str) -> str:
        """Its name in the log."""
        return f"client-{self._clients[client_key].number}"

    def went_well(self, client_key: str, input_key: str) -> None:
        """A call of its ended without breaking anything: its input (empty: not known) breaks nothing by itself."""
        client = self._of(client_key)
        client.note(broke=False)
        if client.breaks and input_key:
            self._keep(client_key, {w: each for w, each in client.breaks.items() if each.input_key != input_key})

    def strike(self, broken: Break) -> None:
        """That has not happened."""
        client = self._clients.get(broken.client_key)
        if client is not None:
            self._keep(broken.client_key, {w: each for w, each in client.breaks.items() if each is not broken})

    def _keep(self, client_key: str, breaks: dict[str, Break]) -> None:
        """No others; whether it must be held is another question then."""
        self._clients[client_key].breaks = breaks
        if client_key in self.held and not _enough(breaks):
            self.release(client_key)

    def broke(self, broken: Break) -> bool:
        """A call of its broke a worker; whether the client is held from now on."""
        if not broken.client_key:
            return False
        client, now_s = self._of(broken.client_key), broken.at_s
        client.note(broke=True)
        client.breaks[broken.worker] = broken
        client.breaks = {
            worker: other for worker, other in client.breaks.items() if now_s < other.at_s + fixed.POISON_S
        }
        if not _enough(client.breaks) or self.holds(broken.client_key, now_s):
            return False
        if client.recent.bit_count() < fixed.CLIENT_HELD_SHARE * client.calls:
            return False
        client.held_until_s, client.worker = now_s + fixed.POISON_S, broken.worker
        self.held.add(broken.client_key)
        return True

    def holds(self, client_key: str, now_s: float) -> bool:
        """Whether it is held; it is released here when its time is over, or its calls go well."""
        if client_key not in self.held:
            return False
        client = self._clients[client_key]
        well = client.recent.bit_count() < fixed.CLIENT_RELEASE_SHARE * client.calls
        if now_s < client.held_until_s and not well:
            return True
        self.release(client_key)
        return False

    def breaks_of(self, client_key: str) -> list[Break]:
        """Of one that is held: what it is held for."""
        return list(self._clients[client_key].breaks.values())

    def put_out(self, client_key: str, worker: str, good_s: float) -> bool:
        """Of one that is held: whether this worker, well at `good_s` at last, has died of its input since."""
        broken = self._clients[client_key].breaks.get(worker)
        return broken is not None and broken.died and broken.at_s >= good_s

    def worker_of(self, client_key: str) -> str:
        """Of one that is held: the worker it is held to; empty: whichever it gets next."""
        return self._clients[client_key].worker

    def hold_to(self, client_key: str, worker: str) -> None:
        """It gets this one and no other; empty: the one it had is gone."""
        self._clients[client_key].worker = worker

    def release(self, client_key: str) -> None:
        """Nothing speaks against it any more."""
        self.held.discard(client_key)
        client = self._clients.get(client_key)
        if client is not None:
            client.breaks.clear()
            client.recent = client.calls = 0

    def _of(self, client_key: str) -> _Client:
        client = self._clients.get(client_key)
        if client is None:
            self._count += 1
            client = self._clients[client_key] = _Client(self._count)
            if len(self._clients) > fixed.CLIENTS_MAX:
                forgotten, _ = self._clients.popitem(last=False)
                self.held.discard(forgotten)
        else:
            self._clients.move_to_end(client_key)
        return client
