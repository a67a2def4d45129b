"""What a job says of itself where its steps cannot be seen."""

from __future__ import annotations

import pytest

from vision.errors import CancelledCallError
from vision.types import Stage
from worker.progress import JobProgress, Position, ProgressCounter


def test_a_sign_of_life_moves_the_counter_and_not_the_position() -> None:
    now_s = [0.0]
    counter = ProgressCounter(lambda: now_s[0], lambda: None)
    progress = JobProgress(counter)
    told: list[Position] = []
    progress.on_move = told.append
    progress.enter(Stage.DIFFUSION, 33)
    before, now_s[0] = counter.last, 60.0
    progress.moved()
    assert counter.last.counter == before.counter + 1
    assert (counter.last.stage, counter.last.at_s) == (Stage.DIFFUSION, 60.0)
    assert [(at.step, at.total) for at in told] == [(0, 33)]


def test_a_sign_of_life_ends_a_job_that_nobody_waits_for() -> None:
    progress = JobProgress(ProgressCounter(lambda: 0.0, lambda: None))
    progress.cancel()
    with pytest.raises(CancelledCallError):
        progress.moved()
