"""Inputs that break workers: remembered by their keyed hash, refused after the second worker.

A *break* is an attempt whose worker died of it, or failed by an error of its own. What speaks for the input:

- a worker that is said to have died, and is then seen with the same boot id, has not: the connection broke;
- two workers that die while both were computing may have died of anything: only one that died of an attempt begun after
  another's break is a second witness;
- when inputs of several clients, or several inputs, break workers and nothing at all succeeds in between, the cause is
  a shared one, and none of these breaks counts;
- an input that is answered well somewhere is no poison.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from edge.pool import config as fixed


@dataclass(frozen=True, slots=True)
class Break:
    """One attempt that broke its worker. Moments in s."""

    at_s: float
    began_s: float
    input_key: str
    client_key: str
    worker: str
    boot_id: str
    """Of the process it ran on, as far as known."""
    died: bool
    """The connection broke; otherwise the worker itself said that it failed."""


def witnesses(breaks: Iterable[Break]) -> int:
    """How many of them, on different workers, stand for themselves: those that died together are one."""
    count, last_s = 0, -math.inf
    for broken in sorted(breaks, key=_moment):
        count += not broken.died or broken.began_s >= last_s
        last_s = broken.at_s
    return count


def _moment(broken: Break) -> float:
    return broken.at_s


@dataclass(slots=True, eq=False)
class _Suspect:
    """One input with breaks that nothing has explained."""

    number: int
    """For the log: the hash of somebody's photo does not belong there."""
    breaks: dict[str, Break] = field(default_factory=dict)
    """The last one on each worker."""
    last_s: float = 0.0

    @property
    def condemned(self) -> bool:
        """Whether it is to touch no other worker."""
        return witnesses(self.breaks.values()) >= fixed.POISON_WORKERS


class PoisonMemory:
    """Inputs under suspicion, and those that are refused."""

    def __init__(self) -> None:
        self._suspects: OrderedDict[str, _Suspect] = OrderedDict()
        """By input, the one whose last break is longest ago first."""
        self._died_on: dict[str, set[str]] = {}
        """Inputs of which a worker is said to have died, by worker."""
        self._streak: deque[Break] = deque(maxlen=fixed.STREAK_MAX)
        """Breaks since anything last succeeded."""
        self._count = 0

    def __repr__(self) -> str:
        """Counts: suspects, of them refused."""
        refused = sum(suspect.condemned for suspect in self._suspects.values())
        return f"<PoisonMemory {len(self._suspects)} ({refused})>"

    def __len__(self) -> int:
        """How many inputs are remembered: the shell hashes inputs only while there are any."""
        return len(self._suspects)

    def tag(self, input_key: str) -> str:
        """Its name in the log."""
        return f"input-{self._suspects[input_key].number}"

    def refused_for_s(self, input_key: str, now_s: float) -> float:
        """How long it will still be refused, in s; 0 when it is not."""
        self._forget_old(now_s)
        suspect = self._suspects.get(input_key)
        if suspect is None or not suspect.condemned:
            return 0.0
        return suspect.last_s + fixed.POISON_S - now_s

    def breaks_of(self, input_key: str) -> list[Break]:
        """What a condemned input has done; nothing when it is not condemned."""
        suspect = self._suspects.get(input_key)
        return list(suspect.breaks.values()) if suspect is not None and suspect.condemned else []

    def broke(self, broken: Break) -> bool:
        """Note a break; whether it may count. It does not when the cause is a shared one: `absolve` is to follow."""
        self._forget_old(broken.at_s)
        self._streak.append(broken)
        while self._streak[0].at_s < broken.at_s - fixed.STREAK_S:
            self._streak.popleft()
        if self._is_shared():
            return False
        suspect = self._suspects.get(broken.input_key)
        if suspect is None:
            self._count += 1
            suspect = self._suspects[broken.input_key] = _Suspect(self._count)
        suspect.breaks[broken.worker] = broken
        suspect.last_s = broken.at_s
        self._suspects.move_to_end(broken.input_key)
        self._settle_death(broken.worker, broken.input_key)
        if broken.died:
            self._died_on.setdefault(broken.worker, set()).add(broken.input_key)
        if len(self._suspects) > fixed.POISON_INPUTS_MAX:
            self._forget(next(iter(self._suspects)))
        return True

    def succeeded(self, input_key: str) -> None:
        """A call was answered: there is no shared cause, and this input (empty: not known) is no poison."""
        self._streak.clear()
        if input_key in self._suspects:
            self._forget(input_key)

    def seen(self, worker: str, boot_id: str, asked_s: float) -> list[tuple[str, Break]]:
        """A status asked for at `asked_s` shows which process answers there. What has not happened, with the input's
        name.
        """
        cleared = []
        for input_key in list(self._died_on.get(worker, ())):
            suspect = self._suspects[input_key]
            broken = suspect.breaks[worker]
            if asked_s <= broken.at_s:
                continue
            self._settle_death(worker, input_key)
            if broken.boot_id in {"", boot_id}:
                cleared.append((self.tag(input_key), broken))
                self._strike(suspect, broken)
        return cleared

    def absolve(self) -> set[str]:
        """None of the breaks since the last success counts. Their clients."""
        for broken in self._streak:
            suspect = self._suspects.get(broken.input_key)
            if suspect is not None and suspect.breaks.get(broken.worker) is broken:
                self._settle_death(broken.worker, broken.input_key)
                self._strike(suspect, broken)
        return {broken.client_key for broken in self._streak}

    def _is_shared(self) -> bool:
        inputs = {broken.input_key for broken in self._streak}
        clients = {broken.client_key for broken in self._streak}
        return len(inputs) >= fixed.SHARED_INPUTS or (len(inputs) > 1 and len(clients) > 1)

    def _strike(self, suspect: _Suspect, broken: Break) -> None:
        """This break does not count."""
        del suspect.breaks[broken.worker]
        if not suspect.breaks:
            self._forget(broken.input_key)

    def _settle_death(self, worker: str, input_key: str) -> None:
        """It is known whether the worker died of it."""
        inputs = self._died_on.get(worker, set())
        inputs.discard(input_key)
        if not inputs:
            self._died_on.pop(worker, None)

    def _forget(self, input_key: str) -> None:
        suspect = self._suspects.pop(input_key)
        for worker in suspect.breaks:
            self._settle_death(worker, input_key)

    def _forget_old(self, now_s: float) -> None:
        while self._suspects:
            input_key = next(iter(self._suspects))
            if now_s < self._suspects[input_key].last_s + fixed.POISON_S:
                return
            self._forget(input_key)
