"""Virtual time. Nothing here waits: the clock goes from one planned act to the next."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from enum import StrEnum

Act = Callable[[], None]


class Ties(StrEnum):
    """Which of several acts planned for the same moment comes first."""

    FIRST = "first"
    """The one planned first."""
    LAST = "last"
    """The one planned last."""
    SHUFFLED = "shuffled"
    """Drawn by lot."""


class Clock:
    """The moment, in s, and what is planned. Delays are rounded to µs, so that what should coincide does."""

    def __init__(self, ties: Ties = Ties.FIRST, seed: int = 0) -> None:
        self.now_s = 0.0
        self._agenda: list[tuple[float, float, int, Act]] = []
        self._order = itertools.count()
        self._ties = ties
        self._chance = random.Random(seed)

    def after(self, delay_s: float, act: Act) -> None:
        """Plan `act` for `delay_s` from now."""
        self.at(round(self.now_s + delay_s, 6), act)

    def at(self, moment_s: float, act: Act) -> None:
        """Plan `act` for exactly this moment, or for now when it has passed."""
        number = next(self._order)
        tie = 0.0
        if self._ties is Ties.LAST:
            tie = -number
        elif self._ties is Ties.SHUFFLED:
            tie = self._chance.random()
        heapq.heappush(self._agenda, (moment_s, tie, number, act))

    def run_until(self, until_s: float) -> None:
        """Do everything planned up to this moment."""
        agenda = self._agenda
        while agenda and agenda[0][0] <= until_s:
            moment_s, _, _, act = heapq.heappop(agenda)
            if moment_s > self.now_s:
                self.now_s = moment_s
            act()
        self.now_s = max(self.now_s, until_s)

    def jump(self, by_s: float) -> None:
        """The machine with everything on it is suspended for `by_s`: what was due meanwhile comes late."""
        self.now_s = round(self.now_s + by_s, 6)
