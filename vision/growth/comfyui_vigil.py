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
    late_stall_s: float = 20.0
    """The caller's time is over: a server that has been still for so long stands, one that moved is slow. Far below a
    style's share of a call, and above what nodes of a healthy server are silent for."""
    quiet_s: float = 15.0
    """A socket that says nothing of a running job is renewed."""
    ping_s: float = 5.0
    """Between pings, and for each answer."""
    tidy_s: float = 5.0
    """How long the end of the process waits for what jobs have left to be removed."""
    look_s: float = 0.25
    """Between two looks whether anybody still waits."""


@dataclass(frozen=True, slots=True)
class State:
    """What the server knew of the job at one moment."""

    ended: Ended | None
    queue: Queue | None = None
    """When it has not ended."""
    stats: Any = None


@dataclass(frozen=True, slots=True)
class Stillness:
    """What a server looked like when it was last seen to move. A stand outlives the job that met it."""

    signs: tuple[object, ...]
    since_s: float


class Vigil:
    """One prompt, from its being taken to its end. `before` is what the vigil over the last one saw."""

    def __init__(
        self,
        prompt_id: str,
        guesses: Mapping[str, int],
        patience: Patience,
        now_s: float,
        before: Stillness | None = None,
    ) -> None:
        self.prompt_id = prompt_id
        self.steps = Steps(guesses)
        self.ahead: int | None = None
        """Prompts that run before it; None before the first look."""
        self.movements = 0
        """Of the server, as far as they are seen: messages about the prompt, a shorter queue, other signs."""
        self._patience = patience
        self._absent = 0
        self._before = before
        self._signs: tuple[object, ...] = ()
        self._shows_work = False
        """Whether its signs change while somebody else's prompt runs: that of a machine without accelerator do not."""
        self._answered_s = self._moved_s = self._heard_s = now_s

    @property
    def runs(self) -> bool:
        """Whether the server has begun with it."""
        return self.steps.began or self.ahead == 0

    @property
    def stillness(self) -> Stillness:
        """For the vigil over the next prompt."""
        return Stillness(self._signs, self._moved_s)

    def hear(self, message: Any, now_s: float) -> None:
        """A message of the socket."""
        if self.steps.see(message, self.prompt_id):
            self._heard_s = now_s
            self._move(now_s)

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
                self._move(now_s)
            self._heard_s = now_s if ahead == 0 else self._heard_s
            self.ahead = ahead
        self._compare(read_signs(state.queue, state.stats), len(state.queue.running), now_s)
        return None

    def miss(self, error: MishapError, now_s: float) -> None:
        """The server did not answer; raises that error when it has not for too long."""
        if now_s - self._answered_s >= self._patience.unreachable_s:
            raise error

    def check(self, now_s: float) -> None:
        """Raise `MishapError` when nothing has moved for too long: STALLED, QUEUE_STALLED."""
        still_s = now_s - self._moved_s
        if still_s >= (self._patience.stall_s if self.runs else self._patience.queue_stall_s):
            raise self._stalled(still_s)

    def late(self, now_s: float) -> MishapError:
        """What to give up for when the caller's time is over: OUT_OF_TIME, unless the server is seen to stand."""
        still_s = now_s - self._moved_s
        if still_s >= self._patience.late_stall_s and (self.runs or self._shows_work):
            return self._stalled(still_s)
        return MishapError(Mishap.OUT_OF_TIME)

    def is_quiet(self, now_s: float) -> bool:
        """Whether the socket is silent about a running job."""
        return self.runs and now_s - self._heard_s >= self._patience.quiet_s

    def renewed(self, now_s: float) -> None:
        """The socket was renewed: it gets its time."""
        self._heard_s = now_s

    def _compare(self, signs: tuple[object, ...], running: int, now_s: float) -> None:
        before, self._before = self._before, None
        self._shows_work = len(signs) > running
        if before is not None and running and signs == before.signs:
            self._signs, self._moved_s = signs, before.since_s  # it stood before we came
        elif signs != self._signs:
            self._signs = signs
            self._move(now_s)

    def _move(self, now_s: float) -> None:
        self._moved_s = now_s
        self.movements += 1

    def _stalled(self, still_s: float) -> MishapError:
        if self.runs:
            detail = f"{self.steps.done} of {self.steps.total} steps, still {still_s:.0f} s"
            return MishapError(Mishap.STALLED, detail)
        return MishapError(Mishap.QUEUE_STALLED, f"{self.ahead} before it, still {still_s:.0f} s")
