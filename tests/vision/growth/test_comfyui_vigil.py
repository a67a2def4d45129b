"""What is made of a job that was given away, on time that a test makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vision.growth.backend import GrowthReason
from vision.growth.comfyui_answers import Queue, Queued
from vision.growth.comfyui_job import _Told
from vision.growth.comfyui_mishaps import CONSEQUENCES, Mishap, MishapError
from vision.growth.comfyui_vigil import Patience, State, Stillness, Vigil
from vision.growth.run import AROUND_S
from vision.types import STALL_AFTER_S, NoProgress, Stage

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


def vigil(before: Stillness | None = None, at_s: float = 0.0) -> Vigil:
    return Vigil(OWN, {"1": 1, "2": 20}, PATIENCE, at_s, before)


def say(event: str, **data: Any) -> dict[str, Any]:
    return {"type": event, "data": {"prompt_id": OWN, **data}}


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


# The caller's time is over


def test_a_server_that_moved_until_the_end_is_slow_and_not_at_fault() -> None:
    runs = vigil()
    for second in range(40):
        runs.hear(say("progress", node="2", value=second, max=500), float(second))
    assert runs.late(40.0).mishap is Mishap.OUT_OF_TIME


def test_a_server_that_stood_to_the_end_is_at_fault() -> None:
    runs = vigil()
    runs.hear(say("executing", node="2"), 3.0)
    assert runs.late(3.0 + PATIENCE.late_stall_s - 0.1).mishap is Mishap.OUT_OF_TIME
    assert runs.late(3.0 + PATIENCE.late_stall_s).mishap is Mishap.STALLED


@pytest.mark.parametrize(("shown", "mishap"), [(stats(5), Mishap.QUEUE_STALLED), (None, Mishap.OUT_OF_TIME)])
def test_a_queue_is_seen_to_stand_only_where_work_is_seen_at_all(shown: Any, mishap: Mishap) -> None:
    waits = vigil()
    for second in range(40):
        waits.learn(State(None, queue("theirs", OWN), shown), float(second))
    assert waits.late(40.0).mishap is mishap


def test_a_style_of_the_default_call_has_time_to_find_a_stand() -> None:
    share_s = 180.0 / 4 - AROUND_S
    assert PATIENCE.late_stall_s < share_s / 2


def test_a_stand_outlives_the_job_that_met_it() -> None:
    """Our first job hangs and cannot be interrupted; what comes behind it need not wait for the whole patience."""
    first = vigil()
    first.learn(State(None, queue(OWN), stats(5)), 1.0)
    first.hear(say("executing", node="2"), 2.0)
    second = Vigil("second", {}, PATIENCE, 50.0, first.stillness)
    second.learn(State(None, queue(OWN, "second"), stats(5)), 51.0)
    assert mishap(second, 2.0 + PATIENCE.queue_stall_s - 1.0) is None
    assert mishap(second, 2.0 + PATIENCE.queue_stall_s) is Mishap.QUEUE_STALLED
    second.learn(State(None, queue(OWN, "second"), stats(6)), 125.0)
    assert mishap(second, 125.0) is None


@pytest.mark.parametrize("present", [queue("another", OWN), queue("", OWN)])
def test_another_prompt_is_no_stand_of_the_last_one(present: Queue) -> None:
    first = vigil()
    first.learn(State(None, queue("theirs", OWN), stats(5)), 1.0)
    later = vigil(first.stillness, 500.0)
    later.learn(State(None, present, stats(5)), 501.0)
    assert mishap(later, 501.0) is None


# What the field reports ask for, by the patience that workers have


def test_b72_and_b74_are_found_out_in_time() -> None:
    """B72: a picture that only the history knows of is there 5 s after it is; B74: a lost prompt is given up in 10."""
    look_s, poll_s = PATIENCE.look_s, PATIENCE.poll_s
    assert poll_s + 2 * look_s <= 2.0
    lost = vigil()
    times_s = [count * (poll_s + 2 * look_s) for count in (1, 2)]
    lost.learn(State(None, queue("theirs"), stats(5)), times_s[0])
    with pytest.raises(MishapError):
        lost.learn(State(None, queue("theirs"), stats(5)), times_s[1])
    attempts = 2
    assert attempts * times_s[1] <= 10.0


# Two judges of one movement


@given(
    st.lists(st.tuples(st.floats(0.1, 60.0), st.sampled_from(["step", "same step", "other node", "memory", "nothing"])))
)
def test_whatever_moves_for_the_vigil_moves_for_the_worker(events: list[tuple[float, str]]) -> None:
    """Then no diffusion server, with whatever nodes, makes a worker look stalled before the vigil gives it up."""
    runs, counter = vigil(), Counter()
    told = _Told(counter)
    now_s, free, value = 0.0, 0, 0
    for pause_s, event in events:
        now_s += pause_s
        moved, before = runs.movements, counter.moves
        if event == "step":
            value += 1
        if event in {"step", "same step"}:
            runs.hear(say("progress", node="2", value=value, max=41), now_s)
        elif event == "other node":
            runs.hear(say("progress", node="expanded.1", value=1, max=2), now_s)
        elif event == "memory":
            free += 1
            runs.learn(State(None, queue(OWN), stats(free)), now_s)
        told.tell(runs)
        assert (runs.movements > moved) == (counter.moves > before)
        assert counter.done <= counter.total


class Counter(NoProgress):
    """Counts as a worker does."""

    def __init__(self) -> None:
        self.moves = self.done = self.total = 0

    def enter(self, stage: Stage, total: int = 0) -> None:
        self.moves += 1
        self.done, self.total = 0, total

    def step(self) -> None:
        self.moves += 1
        self.done += 1

    def moved(self) -> None:
        self.moves += 1
