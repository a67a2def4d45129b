"""A vLLM server without sockets, on whatever time it is told: engines with a full batch, queues, hangs, restarts.

Time is an argument in seconds. As in the real one the gauges are written by a step: a hung engine shows the last ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

PROMPT_TOKENS = 1000
"""Of a request that reads its prompt for a while, counted when it has been read."""


@dataclass(slots=True)
class Request:
    """One completion: `silent_s` of reading the prompt without output, then `work_s` of output."""

    number: int
    silent_s: float
    work_s: float


@dataclass(slots=True)
class Engine:
    """Runs up to `slots` requests at once, one token each per step."""

    slots: int = 2
    step_s: float = 0.05
    hung: bool = False
    steps: float = 0.0
    generated: float = 0.0
    prompted: float = 0.0
    shown_running: int = 0
    shown_waiting: int = 0
    shown_fill: float = 0.0
    queue: list[Request] = field(default_factory=list)
    """The first `slots` of them run, the others wait."""

    def advance(self, elapsed_s: float, finished: set[int]) -> None:
        """Work for `elapsed_s`; numbers of requests that end are added to `finished`."""
        while elapsed_s > 1e-9 and self.queue and not self.hung:
            running = self.queue[: self.slots]
            spans = [request.silent_s or request.work_s for request in running]
            span_s = min(elapsed_s, *spans)
            speaking = [request for request in running if not request.silent_s]
            for request in running:
                if request.silent_s:
                    request.silent_s = _left(request.silent_s, span_s)
                    self.prompted += PROMPT_TOKENS if not request.silent_s else 0
                else:
                    request.work_s = _left(request.work_s, span_s)
            if speaking:
                self.steps += span_s / self.step_s
                self.generated += len(speaking) * span_s / self.step_s
            self.shown_fill = (self.shown_fill + 0.01) % 1.0
            finished |= {request.number for request in running if not request.work_s}
            self.queue = [request for request in self.queue if request.work_s]
            self.shown_running = min(self.slots, len(self.queue))
            self.shown_waiting = len(self.queue) - self.shown_running
            elapsed_s -= span_s


class VllmServer:
    """API server and engines. `at_s` of each method never goes back. Old versions heed no ranks."""

    def __init__(
        self,
        *,
        engines: int = 1,
        slots: int = 2,
        load_s: float = 240.0,
        at_s: float = 0.0,
        heeds_ranks: bool = True,
    ) -> None:
        self._count, self._slots = engines, slots
        self._load_s = load_s
        self._heeds_ranks = heeds_ranks
        self._numbers = count()
        self._now_s = at_s
        self.engines = self._fresh()
        self.up_from_s = self.started_s = at_s
        self.finished: set[int] = set()
        self.failed: set[int] = set()
        """Answered with 500."""
        self.restarts: list[float] = []

    def advance(self, at_s: float) -> None:
        """Let time pass."""
        for engine in self.engines:
            engine.advance(at_s - self._now_s, self.finished)
        self._now_s = at_s

    @property
    def listens(self) -> bool:
        """Whether the port is open: only with loaded models."""
        return self._now_s >= self.up_from_s

    def submit(self, work_s: float, *, silent_s: float = 0.0, rank: int | None = None) -> int:
        """Hand a request to the engine of that rank, else to the one that shows the least work; returns its number.

        Raises `IndexError` for a rank that there is not.
        """
        request = Request(next(self._numbers), silent_s, work_s)
        if rank is not None and self._heeds_ranks:
            engine = self.engines[rank]
        else:
            engine = min(self.engines, key=lambda engine: max(len(engine.queue), engine.shown_running))
        engine.queue.append(request)
        return request.number

    def abort(self, number: int) -> None:
        """The client left. Only a step would show it."""
        for engine in self.engines:
            engine.queue = [request for request in engine.queue if request.number != number]

    def abort_all(self) -> None:
        """All clients left at once."""
        for engine in self.engines:
            engine.queue.clear()

    def restart(self) -> None:
        """What runs or waits is answered 500; the port opens again when the models are loaded."""
        self.failed |= {request.number for engine in self.engines for request in engine.queue}
        self.engines = self._fresh()
        self.restarts.append(self._now_s)
        self.started_s = self._now_s
        self.up_from_s = self._now_s + self._load_s

    def _fresh(self) -> list[Engine]:
        return [Engine(slots=self._slots) for _ in range(self._count)]


def _left(have_s: float, spent_s: float) -> float:
    return 0.0 if have_s - spent_s < 1e-9 else have_s - spent_s
