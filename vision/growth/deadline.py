"""Growth that ends when its time is over, by the steps that it reports anyway."""

from __future__ import annotations

from collections.abc import Callable

from vision.growth.backend import GrowthReason, GrowthUnavailableError
from vision.types import Progress, Stage


class Deadline:
    """A `Progress` that tells another one, and raises `GrowthUnavailableError` (OUT_OF_TIME) from a moment on.

    So whoever says that it moves need not know of time. A call that was given up is given up before it is late.
    """

    def __init__(self, progress: Progress, ends_s: float | None, clock: Callable[[], float]) -> None:
        """`ends_s` by `clock`; None: never."""
        self._progress = progress
        self._ends_s = ends_s
        self._clock = clock

    def enter(self, stage: Stage, total: int = 0) -> None:
        """As `Progress.enter`."""
        self._progress.enter(stage, total)
        self._raise_if_late()

    def step(self) -> None:
        """As `Progress.step`."""
        self._progress.step()
        self._raise_if_late()

    def moved(self) -> None:
        """As `Progress.moved`."""
        self._progress.moved()
        self._raise_if_late()

    def look(self) -> None:
        """As `Progress.look`."""
        self._progress.look()
        self._raise_if_late()

    def _raise_if_late(self) -> None:
        if self._ends_s is not None and self._clock() >= self._ends_s:
            raise GrowthUnavailableError(GrowthReason.OUT_OF_TIME)
