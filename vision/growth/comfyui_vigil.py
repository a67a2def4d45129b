"""What to make of a job that was given away: decides, without I/O and without a clock.

The history is the truth about how a job ended, the queue about whether it waits or runs; the socket tells only how far
it is, and may be silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vision.growth.comfyui_answers import Ended, Queue, read_signs
from vision.growth.comfyui_mishaps import Mishap, MishapError
from vision.growth.comfyui_steps import Steps
from vision.types import STALL_AFTER_S, Stage

_ABSENT_TWICE = 2


@dataclass(frozen=True, slots=True)
class Patience:
    """How long what may take, in seconds."""

    connect_s: float = 3.0
    """A connection."""
    answer_s: float = 10.0
    """One answer; a server that computes is slow to answer."""
    poll_s: float = 1.0
    """Between two questions for queue and history."""
    unreachable_s: float = 10.0
    """Without any usable answer while a job is there: a server restarts in that time, or is gone."""
    stall_s: float = STALL_AFTER_S[Stage.DIFFUSION] - 10.0
    """Our job runs and nothing moves. Before the worker would count as stalled itself."""
    queue_stall_s: float = STALL_AFTER_S[Stage.DIFFUSION]
    """Our job waits and nothing before it moves."""
    quiet_s: float = 15.0
    """A socket that says nothing of a running job is renewed."""
    ping_s: float = 5.0
    """Between pings, and for each answer."""
    tidy_s: float = 5.0
    """Removing a job and its files; begins when the job is over."""
    look_s: float = 0.25
    """Between two looks whether anybody still waits."""


@dataclass(frozen=True, slots=True)
class State:
    """What the server knew of the job at one moment."""

    ended: Ended | None
    queue: Queue | None = None
    """When it has not ended."""
    stats: Any = None


class Vigil:
    """One prompt, from its being taken to its end."""

    def __init__(self, prompt_id: str, weights: Mapping[str, int], patience: Patience, now_s: float) -> None:
        self.prompt_id = prompt_id
        self.steps = Steps(weights)
        self.ahead: int | None = None
        """Prompts that run before it; None before the first look."""
        self.unheard_movements = 0
        """Movements that only the server's memory showed, while its socket was silent."""
        self._patience = patience
        self._absent = 0
        self._signs: tuple[object, ...] = ()
        self._answered_s = self._moved_s = self._heard_s = now_s

    @property
    def runs(self) -> bool:
        """Whether the server has begun with it."""
        return self.steps.began or self.ahead == 0

    def hear(self, message: Any, now_s: float) -> None:
        """A message of the socket."""
        if self.steps.see(message, self.prompt_id):
            self._moved_s = self._heard_s = now_s

    def learn(self, state: State, now_s: float) -> Ended | None:
        """What the server answered; returns how the job ended, once it has. Raises `MishapError`: FORGOTTEN."""
        self._answered_s = now_s
        if state.ended is not None or state.queue is None:
            return state.ended
        ahead = state.queue.ahead_of(self.prompt_id)
        self._absent = self._absent + 1 if ahead is None else 0
        if self._absent == _ABSENT_TWICE:
            raise MishapError(Mishap.FORGOTTEN, "neither in the queue nor in the history")
        if ahead is not None and ahead != self.ahead:
            if self.ahead is None or ahead < self.ahead:
                self._moved_s = now_s
            self._heard_s = now_s if ahead == 0 else self._heard_s
            self.ahead = ahead
        signs = read_signs(state.queue, state.stats)
        if signs != self._signs:
            self._signs = signs
            self._moved_s = now_s
            self.unheard_movements += self.is_quiet(now_s)
        return None

    def miss(self, error: MishapError, now_s: float) -> None:
        """The server did not answer; raises that error when it has not for too long."""
        if now_s - self._answered_s >= self._patience.unreachable_s:
            raise error

    def check(self, now_s: float) -> None:
        """Raise `MishapError` when nothing has moved for too long: STALLED, QUEUE_STALLED."""
        still_s = now_s - self._moved_s
        if self.runs and still_s >= self._patience.stall_s:
            raise MishapError(Mishap.STALLED, f"{self.steps.done} of {self.steps.total} steps, still {still_s:.0f} s")
        if not self.runs and still_s >= self._patience.queue_stall_s:
            raise MishapError(Mishap.QUEUE_STALLED, f"{self.ahead} before it, still {still_s:.0f} s")

    def is_quiet(self, now_s: float) -> bool:
        """Whether the socket is silent about a running job."""
        return self.runs and now_s - self._heard_s >= self._patience.quiet_s

    def renewed(self, now_s: float) -> None:
        """The socket was renewed: it gets its time."""
        self._heard_s = now_s
