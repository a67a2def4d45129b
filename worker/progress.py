"""The worker's monotonic progress counter and the running job's hand on it.

Written by the compute thread, read by the event loop: each write replaces one reference, so that a reader never sees
half of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vision.errors import CancelledCallError
from vision.types import Stage


@dataclass(frozen=True, slots=True)
class Movement:
    """The last sign of life."""

    counter: int
    stage: Stage | None
    """None before anything ran in this process."""
    at_s: float
    """Monotonic clock."""


class ProgressCounter:
    """Counts every stage and step since the start of the process; only the compute thread moves it."""

    def __init__(self, clock: Callable[[], float], on_stage: Callable[[], None]) -> None:
        self._clock = clock
        self._on_stage = on_stage
        self._last = Movement(0, None, clock())

    @property
    def last(self) -> Movement:
        """The last movement."""
        return self._last

    def enter(self, stage: Stage) -> float:
        """`stage` begins; returns the moment."""
        self._last = Movement(self._last.counter + 1, stage, self._clock())
        self._on_stage()
        return self._last.at_s

    def step(self) -> None:
        """One step inside the present stage."""
        self._last = Movement(self._last.counter + 1, self._last.stage, self._clock())


@dataclass(frozen=True, slots=True)
class Position:
    """How far a job is."""

    stage: Stage
    step: int
    """Steps done in this stage."""
    total: int
    """Steps it has at most; 0: not known."""


@dataclass(frozen=True, slots=True)
class StageTime:
    """A job was in `stage` from one moment to the other, monotonic clock."""

    stage: Stage
    began_s: float
    ended_s: float


def stage_ms(times: Iterable[StageTime]) -> Mapping[str, float]:
    """Time spent in each stage, in milliseconds."""
    spent: dict[str, float] = {}
    for time in times:
        spent[time.stage] = round(spent.get(time.stage, 0.0) + (time.ended_s - time.began_s) * 1000.0, 1)
    return spent


class JobProgress:
    """What one job moves: `vision.types.Progress` with a cancel flag and stage times."""

    def __init__(self, counter: ProgressCounter) -> None:
        self._counter = counter
        self._cancelled = False
        self._entered: list[tuple[Stage, float]] = []
        self._position: Position | None = None
        self.on_move: Callable[[Position], None] | None = None
        """Told every stage and step, in the compute thread; set before the job begins."""

    def enter(self, stage: Stage, total: int = 0) -> None:
        """Begin `stage`; raises `CancelledCallError` when nobody waits any more."""
        self._raise_if_cancelled()
        self._entered.append((stage, self._counter.enter(stage)))
        self._move(Position(stage, 0, total))

    def step(self) -> None:
        """One step; raises `CancelledCallError` when nobody waits any more."""
        self._raise_if_cancelled()
        self._counter.step()
        if at := self._position:
            self._move(replace(at, step=min(at.step + 1, at.total or at.step + 1)))

    def moved(self) -> None:
        """A sign of life that is no step; raises `CancelledCallError` when nobody waits any more."""
        self._raise_if_cancelled()
        self._counter.step()

    def look(self) -> None:
        """Raises `CancelledCallError` when nobody waits any more; moves nothing."""
        self._raise_if_cancelled()

    def cancel(self) -> None:
        """Nobody waits any more: the next stage or step ends the job. Called from the event loop."""
        self._cancelled = True

    def stages(self, ended_s: float) -> Sequence[StageTime]:
        """Every stage the job was in until `ended_s`, in order."""
        ends = [entered_s for _stage, entered_s in self._entered[1:]] + [ended_s]
        return [StageTime(stage, began_s, end_s) for (stage, began_s), end_s in zip(self._entered, ends, strict=False)]

    def _move(self, position: Position) -> None:
        self._position = position
        if self.on_move:
            self.on_move(position)

    def _raise_if_cancelled(self) -> None:
        if self._cancelled:
            raise CancelledCallError
