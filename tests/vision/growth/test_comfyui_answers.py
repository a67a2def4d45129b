"""What a server says, read: the recorded answers of a real one, and what strangers may send."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vision.growth.comfyui_answers import (
    StoredFile,
    prompt_id_of,
    read_history,
    read_queue,
    read_signs,
    refusal,
    stored_file,
)
from vision.growth.comfyui_mishaps import Mishap, MishapError
from vision.growth.comfyui_steps import MOST_STEPS, Steps

TRANSCRIPT = Path(__file__).parents[4] / "shared" / "data" / "comfyui" / "transcript.json"
ODD = st.sampled_from([float("nan"), float("inf"), 10**400, -(10**400), "half \ud800", "line\nend", "", 0, -1, True])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | ODD,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["data", "type", "nodes"]), inner),
    max_leaves=10,
)


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    if not TRANSCRIPT.exists():
        pytest.skip("the recorded answers are not here")
    content: dict[str, Any] = json.loads(TRANSCRIPT.read_text())
    return content


def test_an_upload_says_where_the_file_lies(recorded: dict[str, Any]) -> None:
    stored = stored_file(recorded["upload the same name again, other bytes"]["body"])
    assert stored == StoredFile("photo (1).png", "", "input")
    assert stored.annotated == "photo (1).png [input]"
    assert StoredFile("a.png", "sub", "temp").annotated == "sub/a.png [temp]"


def test_histories_of_every_ending(recorded: dict[str, Any]) -> None:
    def ended(name: str) -> Any:
        return read_history(recorded[name]["history" if "history" in recorded[name] else "body"])[0]

    good = ended("a prompt")
    assert good.mishap is None
    assert good.client_id == "8cdd6636c0574fd4a5c67c571006351e"
    assert good.by_node["4"] == good.files == (StoredFile("run1_00001_.png", "", "output"),)
    cached = ended("the same prompt again, with client_id")
    assert cached.by_node == good.by_node
    assert cached.files == ()  # they are those of the first one
    empty = ended("the same prompt again, without client_id")
    assert (empty.mishap, empty.files, empty.client_id) == (None, (), "")
    failed = ended("input that is no picture (fails while running)").mishap
    assert str(failed) == "node_failed: node 1 LoadImage: PIL.UnidentifiedImageError"
    assert ended("history of the interrupted").mishap.mishap is Mishap.INTERRUPTED
    assert read_history(recorded["history of an unknown id"]["body"]) == ()


def test_a_queue_in_order(recorded: dict[str, Any]) -> None:
    queue = read_queue(recorded["queue while one runs and two wait"]["body"])
    ids = [item.prompt_id for item in queue.prompts()]
    assert [queue.ahead_of(prompt_id) for prompt_id in ids] == [0, 1, 2]
    assert queue.ahead_of("unknown") is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unknown node class", "refused: invalid_prompt"),
        (
            "input file that is not there",
            "refused: prompt_outputs_failed_validation, node 1 LoadImage custom_validation_failed",
        ),
        (
            "value out of range",
            "refused: prompt_outputs_failed_validation, node 2 ImageScaleBy value_bigger_than_max",
        ),
        ("no output node", "refused: prompt_no_outputs"),
    ],
)
def test_the_four_kinds_of_refusal(recorded: dict[str, Any], name: str, words: str) -> None:
    assert str(refusal(recorded[name]["body"])) == words
    with pytest.raises(MishapError):
        prompt_id_of(recorded[name]["body"])


def test_a_prompt_that_was_taken(recorded: dict[str, Any]) -> None:
    assert prompt_id_of(recorded["a prompt"]["body"]) == "d3e846eb-1f3a-44c4-b97c-d8eec3a6e55d"


def test_steps_of_a_recorded_prompt(recorded: dict[str, Any]) -> None:
    prompt_id = recorded["a prompt"]["body"]["prompt_id"]
    steps = Steps({"1": 1, "2": 1, "3": 20, "4": 1})
    done = []
    for message in recorded["a prompt"]["socket"]:
        steps.see(message["text"], prompt_id)
        done.append(steps.done)
    assert done == sorted(done)
    assert (done[0], done[-1], steps.total) == (0, 23, 23)
    assert steps.began
    assert steps.ended


def test_a_cached_prompt_is_all_done_at_once(recorded: dict[str, Any]) -> None:
    name = "the same prompt again, with client_id"
    prompt_id = recorded[name]["body"]["prompt_id"]
    steps = Steps({"1": 1, "2": 1, "3": 20, "4": 1})
    for message in recorded[name]["socket"]:
        steps.see(message["text"], prompt_id)
    assert (steps.done, steps.ended) == (23, True)


def test_a_sampler_counts_its_steps_and_servers_without_states_are_understood() -> None:
    def say(event: str, **data: Any) -> None:
        steps.see({"type": event, "data": {"prompt_id": "own", **data}}, "own")

    steps = Steps({"1": 1, "2": 20})
    say("executing", node="1")
    assert steps.done == 0
    say("executing", node="2")
    assert steps.done == 1
    say("progress", node="2", value=5, max=20)
    assert steps.done == 6
    say("progress", node="2", value=3, max=20)  # a second pass of the same node
    assert steps.done == 6
    say("executing", node=None)
    assert steps.ended


def test_a_node_says_itself_how_many_steps_it_has() -> None:
    """Whatever its class and inputs are called; one that counts millions counts in larger steps."""
    steps = Steps({"any": 1, "bytes": 1})
    for node, value, most in (("any", 5, 20), ("bytes", 600_000, 1_200_000), ("unknown", 1, 2)):
        steps.see({"type": "progress", "data": {"prompt_id": "p", "node": node, "value": value, "max": most}}, "p")
    assert (steps.done, steps.total) == (5 + 500, 20 + MOST_STEPS)


def test_a_file_that_cannot_be_named_is_left_out() -> None:
    images = [{"filename": "half \ud800.png"}, {"filename": "good.png", "subfolder": "a", "type": "temp"}, {}]
    entry = {"prompt": [0, "id", {}, {}, []], "outputs": {"1": {"images": images}}}
    assert read_history({"id": entry})[0].files == (StoredFile("good.png", "a", "temp"),)


def refused_as(read: Callable[[Any], object], answer: Any) -> Mishap | None:
    try:
        read(answer)
    except MishapError as error:
        return error.mishap
    return None


@given(JSON, JSON)
def test_whatever_a_stranger_sends_is_read_or_refused_by_name(answer: Any, other: Any) -> None:
    steps = Steps({"1": 1})
    steps.see(answer, "own")
    steps.see({"type": "execution_cached", "data": {"prompt_id": "own", "nodes": answer}}, "own")
    steps.see({"type": "progress_state", "data": {"prompt_id": "own", "nodes": answer}}, "own")
    steps.see({"type": "progress_state", "data": {"prompt_id": "own", "nodes": {"1": answer}}}, "own")
    steps.see({"type": answer, "data": {"prompt_id": "own", "node": answer, "value": answer, "max": answer}}, "own")
    state = {"value": answer, "max": other, "state": other}
    steps.see({"type": "progress_state", "data": {"prompt_id": "own", "nodes": {"1": state}}}, "own")
    steps.see({"type": "progress", "data": {"prompt_id": "own", "node": "1", **state}}, "own")
    assert 0 <= steps.done <= steps.total <= MOST_STEPS
    refusal(answer)
    refusal({"error": answer, "node_errors": answer})
    for read in (stored_file, prompt_id_of, read_queue, read_history):
        assert refused_as(read, answer) in {None, Mishap.NOT_COMFYUI, Mishap.REFUSED}
    read_signs(read_queue({"queue_running": [], "queue_pending": []}), answer)
    read_signs(read_queue({"queue_running": [], "queue_pending": []}), {"devices": [{"torch_vram_free": answer}]})
    for item in ([answer, other, {}, {}, []], [0, answer, other, other, []]):
        assert refused_as(read_queue, {"queue_running": [item], "queue_pending": []}) in {None, Mishap.NOT_COMFYUI}
    assert refused_as(prompt_id_of, {"prompt_id": answer}) in {None, Mishap.NOT_COMFYUI}
    named = {"name": answer, "subfolder": other, "type": "temp", "filename": answer}
    assert refused_as(stored_file, named) in {None, Mishap.NOT_COMFYUI}


@given(JSON)
def test_a_history_with_anything_in_it_is_read_or_refused_by_name(value: Any) -> None:
    for entry in (
        value,
        {"prompt": value, "outputs": {}, "status": None},
        {"prompt": [0, "id", {}, {}, []], "outputs": value, "status": value},
        {"prompt": [0, "id", {}, {}, []], "outputs": {"1": {"images": value}}, "status": {"messages": value}},
        {"prompt": [0, "id", {}, {}, []], "outputs": {"1": {"images": [{"filename": value}]}}, "status": None},
        {"prompt": [0, "id", {}, {}, []], "outputs": {}, "status": {"messages": [["execution_cached", value]]}},
        {"prompt": [0, "id", {}, {}, []], "outputs": {}, "status": {"messages": [["execution_error", value]]}},
    ):
        assert refused_as(read_history, {"id": entry}) in {None, Mishap.NOT_COMFYUI}


def test_paths_and_values_of_a_refusal_are_not_repeated() -> None:
    said = str(
        refusal(
            {
                "error": {"type": "x", "details": "/home/op/secret"},
                "node_errors": {"7": {"class_type": "A\n/B", "errors": [{"type": "y", "details": "/home"}]}},
            }
        )
    )
    assert said == "refused: x, node 7 AB y"
