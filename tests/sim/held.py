"""Clients held to one worker: when they may be, and what follows while they surely are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edge.pool import config as fixed

if TYPE_CHECKING:
    from tests.sim.edge import Client


@dataclass(slots=True, eq=False)
class _Break:
    """A worker that an input broke, as far as heard; nothing has spoken for the input since."""

    input_key: str
    worker: str
    at_s: float
    boot: str
    died: bool


@dataclass(slots=True, eq=False)
class _Hold:
    """One client that is held."""

    until_s: float
    worker: str
    """The one it is held to."""
    free: bool = False
    """That one was out for a reason of its own: it may get another one."""
    sure: bool = True
    """Nothing has happened since that may have let it go."""
    waits: bool = False
    """That one died of its input: it waits until that one is back."""
    died: bool = False
    """The same, and nothing has shown since that it is well: no call, and no return but by a pardon."""
    alone: bool = False
    """Something went well since: what breaks now has no cause in common with what it is held for."""


class Holds:
    """All clients of one edge that break workers."""

    def __init__(self) -> None:
        self._held: dict[str, _Hold] = {}
        self._breaks: dict[str, list[_Break]] = {}
        """By client."""

    def __bool__(self) -> bool:
        """Whether anybody was ever held."""
        return bool(self._held)

    def may_be(self, client_key: str, now_s: float) -> bool:
        """Whether this one may be held now, as far as can be said from outside."""
        hold = self._held.get(client_key)
        return hold is not None and now_s < hold.until_s

    def surely(self, now_s: float) -> Iterator[tuple[str, str]]:
        """Clients that are held for certain, each with its worker; empty: whichever it gets next."""
        for client_key, hold in self._held.items():
            if hold.sure and now_s < hold.until_s:
                yield client_key, "" if hold.free else hold.worker

    # What is heard

    def broke(self, client: Client, worker: str, *, now_s: float, boot: str, died: bool) -> None:
        """An attempt broke its worker, or failed there by its input."""
        self._breaks.setdefault(client.client_key, []).append(_Break(client.input_key, worker, now_s, boot, died))
        hold = self._held.get(client.client_key)
        if hold is not None and died and hold.worker == worker:
            hold.waits, hold.died, hold.free = True, True, False

    def went_well(self, client: Client, worker: str) -> None:
        """A call of it was answered there: nothing speaks against its input, and it may be let go."""
        breaks = self._breaks.get(client.client_key, [])
        breaks[:] = [each for each in breaks if each.input_key != client.input_key]
        for client_key, hold in self._held.items():
            hold.alone = True
            hold.died &= hold.worker != worker
            hold.sure &= client_key != client.client_key

    def is_well(self, worker: str) -> None:
        """It is online again, and not because it was pardoned."""
        for hold in self._held.values():
            hold.died &= hold.worker != worker

    def something_broke(self, client_key: str, *, braked: bool) -> None:
        """A call failed. If nothing went well in between, what the others are held for may have had the same cause."""
        for other, hold in self._held.items():
            hold.sure &= hold.alone or (other == client_key and not braked)

    def seen(self, worker: str, boot: str, asked_s: float) -> None:
        """A status shows who answers there: one that is said to have died may not have."""
        for client_key, breaks in self._breaks.items():
            not_died = [
                each
                for each in breaks
                if each.died and each.worker == worker and asked_s > each.at_s and each.boot in {"", boot}
            ]
            if not_died:
                breaks[:] = [each for each in breaks if each not in not_died]
                self.in_doubt(client_key)

    def in_doubt(self, client_key: str) -> None:
        """It may have been let go."""
        if client_key in self._held:
            self._held[client_key].sure = False

    def online(self, targets: set[str], workers: Collection[str], running: Mapping[str, Client]) -> None:
        """Of the configured `workers` these are online. Whoever is held to another one may get a new one, unless a call
        of its runs there: its end will tell whether it is the reason. `running`: by worker.
        """
        for client_key, hold in self._held.items():
            runs = hold.worker in running and running[hold.worker].client_key == client_key
            if hold.worker in targets:
                hold.waits = False
            elif hold.worker not in workers or not (hold.waits or runs):
                hold.free = True

    def killed_its_worker(self, client_key: str) -> bool:
        """Whether it is held to a worker that is out because it died of its input, as far as can be said."""
        hold = self._held.get(client_key)
        return hold is not None and (hold.died or not hold.sure)

    # What the pool does

    def begins(self, client: Client, worker: str, now_s: float) -> str:
        """The pool holds a client to this worker. What is wrong with that; empty when nothing is."""
        breaks = self._breaks.get(client.client_key, [])
        waits = bool(breaks) and breaks[-1].died and breaks[-1].worker == worker
        self._held[client.client_key] = _Hold(now_s + fixed.POISON_S, worker, waits=waits, died=waits)
        recent = [each for each in breaks if now_s - each.at_s < fixed.POISON_S]
        inputs, workers = {each.input_key for each in recent}, {each.worker for each in recent}
        if min(len(inputs), len(workers)) >= fixed.POISON_WORKERS:
            return ""
        return f"{client.client_key} is held, and its inputs {sorted(inputs)} broke {sorted(workers)}"

    def starts(self, client: Client, worker: str, now_s: float) -> str:
        """A call begins. What is wrong with that; empty when nothing is."""
        hold = self._held.get(client.client_key)
        if hold is None or not hold.sure or now_s >= hold.until_s:
            return ""
        if worker != hold.worker and not hold.free:
            return f"its client is held to {hold.worker}"
        hold.died &= hold.worker == worker
        hold.worker, hold.free = worker, False
        return ""
