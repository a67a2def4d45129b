"""What one edge must conclude of inputs that break workers, and of causes that workers share. Less than the pool does:
only what the design leaves no choice about.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from edge.pool import config as fixed
from tests.sim.heard import Heard


@dataclass(slots=True, eq=False)
class _Input:
    """One that is known to break workers."""

    workers: set[str] = field(default_factory=set)
    last_s: float = -math.inf
    alone: bool = True
    """Since its last break some other call went well, and no other one broke a worker."""


class Poisons:
    """Breaks that nothing but the input explains."""

    def __init__(self) -> None:
        self._inputs: dict[str, _Input] = {}
        self._doubt = False
        """Something else broke a worker, and nothing went well since."""

    def broke(self, input_key: str, worker: str, *, began_s: float, now_s: float) -> None:
        """A call with this poison broke a worker that is known, while no cause was shared."""
        if self._doubt:
            return
        for key, other in self._inputs.items():
            other.alone &= key == input_key
        known = self._inputs.setdefault(input_key, _Input())
        if known.workers and not (known.alone and began_s >= known.last_s):
            known.workers.clear()  # it may have been something else: begin anew
        known.workers.add(worker)
        known.last_s, known.alone = now_s, False

    def something_else_broke(self) -> None:
        """A call failed for another reason: what happened about then may have had that reason as well."""
        self._inputs.clear()
        self._doubt = True

    def went_well(self) -> None:
        """A call was answered."""
        self._doubt = False
        for known in self._inputs.values():
            known.alone = True

    def condemned(self, input_key: str, now_s: float) -> bool:
        """Whether it must be refused now."""
        known = self._inputs.get(input_key)
        return (
            known is not None
            and known.alone
            and len(known.workers) >= fixed.POISON_WORKERS
            and now_s < known.last_s + fixed.POISON_S
        )


class SharedCause:
    """The brake: when it must be on, when it may be, and what it allows."""

    def __init__(self) -> None:
        self.on = False
        self.cause = ""
        """The one that is shared, or was last."""
        self.ever_s = -math.inf
        """When it was last on."""
        self._outs: deque[tuple[float, str, str]] = deque()
        """When a call took which worker out, and with which input."""
        self._trial = ""
        self._trial_s = -math.inf

    def out(self, now_s: float, worker: str, input_key: str) -> None:
        """A failed call takes a worker out that was online."""
        self._outs.append((now_s, worker, input_key))  # the latest of a worker counts
        while self._outs[0][0] < now_s - fixed.BRAKE_WINDOW_S:
            self._outs.popleft()

    def not_out(self, worker: str) -> None:
        """It was not taken out after all."""
        if self._outs and self._outs[-1][1] == worker:
            self._outs.pop()

    def must_be_on(self, still_out: set[str], workers: int) -> bool:
        """Whether so many went out, for failed calls alone, that there is no doubt. `still_out`: for that cause."""
        last = {worker: input_key for _, worker, input_key in self._outs if worker in still_out}
        shared = len(last) > fixed.BRAKE_SHARE * workers and workers >= fixed.BRAKE_WORKERS_MIN
        return shared and len(set(last.values())) >= fixed.SHARED_INPUTS and not self.on

    def begins(self, now_s: float, heard: dict[str, Heard], facts: Mapping[str, object]) -> str:
        """The pool says so, with these facts. What is wrong with that; empty when nothing is."""
        workers, total = facts["workers"], facts["workers_total"]
        assert isinstance(workers, list)
        assert isinstance(total, int)
        self.on, self.cause, self.ever_s = True, str(facts["cause"]), now_s
        self._outs.clear()
        self._trial, self._trial_s = "", -math.inf
        for worker in workers:
            if worker in heard:
                heard[worker].shorten(fixed.BRAKE_COOLDOWN_S)
        if total < fixed.BRAKE_WORKERS_MIN or len(workers) <= fixed.BRAKE_SHARE * total:
            return f"{len(workers)} of {total} workers are no shared cause"
        since_s = now_s - fixed.BRAKE_WINDOW_S
        well = [each for each in workers if each in heard and not heard[each].went_out_since(since_s)]
        return f"{well} did not go out" if well else ""

    def ends(self, now_s: float) -> None:
        """The pool says so."""
        self.on, self.ever_s = False, now_s
        self._outs.clear()

    def tries(self, call_id: str, now_s: float) -> str:
        """A trial call starts. What is wrong with that; empty when nothing is."""
        if self._trial:
            return f"{self._trial} is a trial that still runs"
        if now_s < self._trial_s + fixed.BRAKE_TRIAL_S - 1e-6:
            return f"the last trial began {now_s - self._trial_s:.3f} s ago"
        self._trial, self._trial_s = call_id, now_s
        return ""

    def over(self, call_id: str) -> None:
        """A call ended, or its client left."""
        if call_id == self._trial:
            self._trial = ""
