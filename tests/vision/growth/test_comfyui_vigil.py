"""What is made of a job that was given away, on time that a test makes."""

from __future__ import annotations

from typing import Any

import pytest

from vision.growth.backend import GrowthReason
from vision.growth.comfyui_answers import Queue, Queued
from vision.growth.comfyui_mishaps import CONSEQUENCES, Mishap, MishapError
from vision.growth.comfyui_vigil import Patience, State, Vigil
from vision.types import STALL_AFTER_S, Stage

OWN = "own"
PATIENCE = Patience()
LOST = MishapError(Mishap.UNREACHABLE)


def item(prompt_id: str, number: float = 0.0) -> Queued:
    return Queued(number, prompt_id, "client", {})


def queue(running: str = "", *pending: str) -> Queue:
    return Queue(
        (item(running),) if running else (), tuple(item(each, number) for number, each in enumerate(pending, 1))
    )


def stats(free: int) -> dict[str, Any]:
    return {"devices": [{"type": "cuda", "torch_vram_total": 9, "torch_vram_free": free}]}


def vigil() -> Vigil:
    return Vigil(OWN, {"1": 1, "2": 20}, PATIENCE, 0.0)


def mishap(of: Vigil, at_s: float) -> Mishap | None:
    try:
        of.check(at_s)
    except MishapError as error:
        return error.mishap
    return None


def test_every_mishap_has_its_consequence() -> None:
    assert set(CONSEQUENCES) == set(Mishap)
    assert {each.reason for each in CONSEQUENCES.values()} == {
        GrowthReason.DIFFUSION_UNAVAILABLE,
        GrowthReason.DIFFUSION_FAILED,
        GrowthReason.DIFFUSION_STALLED,
        GrowthReason.OUT_OF_TIME,
    }


def test_our_patience_ends_before_the_workers_own() -> None:
    assert PATIENCE.stall_s < STALL_AFTER_S[Stage.DIFFUSION]


def test_a_long_queue_that_moves_is_waited_for() -> None:
    waits = vigil()
    for minute in range(60):
        assert waits.learn(State(None, queue(f"theirs {minute}", OWN)), 60.0 * minute) is None
        assert mishap(waits, 60.0 * minute + 59.0) is None
    assert waits.ahead == 1
    assert not waits.runs


def test_one_long_job_of_others_that_breathes_is_waited_for() -> None:
    waits = vigil()
    for minute in range(60):
        waits.learn(State(None, queue("theirs", OWN), stats(minute % 2)), 60.0 * minute)
        assert mishap(waits, 60.0 * minute + 59.0) is None


def test_a_queue_that_only_grows_stands_still() -> None:
    waits = vigil()
    for second in range(121):
        later = [f"later {n}" for n in range(second)]
        waits.learn(State(None, queue("theirs", OWN, *later), stats(5)), float(second))
    assert mishap(waits, 119.0) is None
    assert mishap(waits, 121.0) is Mishap.QUEUE_STALLED


def test_prompts_that_jump_the_queue_are_no_movement() -> None:
    waits = vigil()
    waits.learn(State(None, queue("theirs", OWN)), 0.0)
    waits.learn(State(None, queue("theirs", "in front", OWN)), 100.0)
    assert waits.ahead == 2
    assert mishap(waits, 121.0) is Mishap.QUEUE_STALLED


def test_a_node_that_is_silent_for_a_long_time_is_no_stall_until_it_is() -> None:
    runs = vigil()
    runs.hear({"type": "execution_start", "data": {"prompt_id": OWN}}, 10.0)
    assert runs.runs
    for second in range(110):
        runs.learn(State(None, queue(OWN), stats(5)), 10.0 + second)
        assert mishap(runs, 10.0 + second) is None
    assert mishap(runs, 10.0 + PATIENCE.stall_s + 1.0) is Mishap.STALLED


def test_messages_about_others_are_no_movement() -> None:
    runs = vigil()
    runs.hear({"type": "execution_start", "data": {"prompt_id": OWN}}, 0.0)
    runs.hear({"type": "progress", "data": {"prompt_id": "theirs", "value": 1, "max": 2, "node": "2"}}, 100.0)
    runs.hear({"type": "status", "data": {"status": {}}}, 100.0)
    assert mishap(runs, 111.0) is Mishap.STALLED
    assert runs.steps.done == 0


def test_absent_once_may_be_a_moment_between_queue_and_history() -> None:
    waits = vigil()
    for second in range(10):
        state = State(None, queue(OWN) if second % 2 else queue())
        waits.learn(state, float(second))


def test_absent_twice_is_forgotten() -> None:
    waits = vigil()
    waits.learn(State(None, queue("theirs")), 1.0)
    with pytest.raises(MishapError) as gone:
        waits.learn(State(None, queue("theirs")), 2.0)
    assert gone.value.mishap is Mishap.FORGOTTEN


def test_a_server_that_answers_now_and_then_is_there() -> None:
    waits = vigil()
    for second in range(0, 60, 6):
        waits.learn(State(None, queue(OWN)), float(second))
        waits.miss(LOST, second + 3.0)
    with pytest.raises(MishapError):
        waits.miss(LOST, 54.0 + PATIENCE.unreachable_s)


def test_a_socket_is_quiet_only_about_a_job_that_runs() -> None:
    waits = vigil()
    waits.learn(State(None, queue("theirs", OWN)), 0.0)
    assert not waits.is_quiet(1000.0)
    waits.learn(State(None, queue(OWN)), 1000.0)
    assert not waits.is_quiet(1014.0)
    assert waits.is_quiet(1015.0)
    waits.renewed(1015.0)
    assert not waits.is_quiet(1029.0)
    waits.hear({"type": "executing", "data": {"prompt_id": OWN, "node": "1"}}, 1029.0)
    assert not waits.is_quiet(1040.0)
