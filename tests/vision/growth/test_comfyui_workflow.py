"""The operator's workflow file: what is accepted, what is refused and with which advice."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import comfyui_nodes
from tests.vision.growth.comfyui_jobs import EXAMPLE
from vision.growth.comfyui_workflow import MAX_BYTES, Placeholder, Workflow, WorkflowError, seed_of

P = Placeholder
VALUES: dict[Placeholder, str | int] = {
    P.IMAGE: "a.png [temp]",
    P.MASK: "b.png [temp]",
    P.PROMPT: "hair",
    P.NEGATIVE_PROMPT: "hat",
    P.SEED: 5,
}


def example() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(EXAMPLE.read_text())
    return content


def refused(content: object) -> str:
    with pytest.raises(WorkflowError) as error:
        Workflow.parse(json.dumps(content))
    return str(error.value)


def without(node_id: str, name: str, value: object) -> dict[str, Any]:
    """The example with another value of one input."""
    content = example()
    content[node_id]["inputs"][name] = value
    return content


@pytest.mark.parametrize("path", sorted(EXAMPLE.parent.glob("*.json")), ids=lambda path: path.name)
def test_examples_are_accepted_and_need_no_custom_nodes(path: Path) -> None:
    workflow = Workflow.load(path)
    assert workflow.result_node == "result"
    assert {node["class_type"] for node in workflow.nodes.values()} <= comfyui_nodes.KNOWN


def test_placeholders_are_replaced_and_nothing_else() -> None:
    workflow = Workflow.load(EXAMPLE)
    before = copy.deepcopy(workflow.nodes)
    filled = workflow.filled(VALUES)
    assert filled["photo"]["inputs"]["image"] == "a.png [temp]"
    assert filled["region"]["inputs"] == {"image": "b.png [temp]", "channel": "red"}
    assert filled["wanted"]["inputs"]["text"] == "hair"
    assert filled["unwanted"]["inputs"]["text"] == "hat"
    assert filled["sampler"]["inputs"]["seed"] == 5
    assert isinstance(filled["sampler"]["inputs"]["seed"], int)
    assert filled["picture"] == workflow.nodes["picture"]
    assert workflow.nodes == before


@given(st.text())
def test_a_prompt_with_signs_of_any_kind_is_taken_as_it_is(prompt: str) -> None:
    filled = Workflow.load(EXAMPLE).filled(VALUES | {P.PROMPT: prompt})
    assert json.loads(json.dumps(filled))["wanted"]["inputs"]["text"] == prompt


@given(st.integers())
def test_every_seed_is_one_that_samplers_take(seed: int) -> None:
    assert 0 <= seed_of(seed) < 2**64
    assert seed not in range(2**64) or seed_of(seed) == seed


def test_steps_are_those_of_samplers_and_one_for_every_other_node() -> None:
    steps = Workflow.load(EXAMPLE).steps()
    assert steps["sampler"] == 25
    assert sum(steps.values()) == 25 + 8


def test_the_editors_own_format_is_told_from_the_servers() -> None:
    assert "Export (API)" in refused({"nodes": [{"id": 1, "type": "KSampler"}], "links": [], "version": 0.4})


def test_the_body_of_a_request_is_told_from_a_workflow() -> None:
    assert "`prompt`" in refused({"prompt": example(), "client_id": "x"})


@pytest.mark.parametrize("content", [[], {}, "text", 3, {"1": {}}, {"1": {"class_type": "KSampler"}}, {"1": 3}])
def test_other_json_is_refused(content: object) -> None:
    assert refused(content)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(WorkflowError, match="not JSON"):
        Workflow.parse(text)


@pytest.mark.parametrize(
    ("node_id", "name", "placeholder"),
    [("photo", "image", "%image%"), ("region", "image", "%mask%"), ("sampler", "seed", "%seed%")],
)
def test_a_missing_placeholder_is_named(node_id: str, name: str, placeholder: str) -> None:
    assert placeholder in refused(without(node_id, name, "fixed"))


def test_prompts_may_stand_in_the_workflow() -> None:
    content = without("wanted", "text", "hair as on a 1990s photograph, 50% grey")
    content["unwanted"]["inputs"]["text"] = ""
    assert Workflow.parse(json.dumps(content)).filled(VALUES)["wanted"] == content["wanted"]


@pytest.mark.parametrize("typo", ["%promt%", "%Prompt%", "%WIDTH%"])
def test_a_placeholder_that_does_not_exist_is_named_with_those_that_do(typo: str) -> None:
    said = refused(without("wanted", "text", typo))
    assert typo in said
    assert "%negative_prompt%" in said


def test_a_link_to_a_node_that_is_not_there_is_named() -> None:
    assert "node lost" in refused(without("picture", "samples", ["lost", 0]))


def test_a_workflow_that_saves_nothing_is_refused() -> None:
    content = example()
    del content["result"]
    assert "PreviewImage" in refused(content)


@pytest.mark.parametrize("title", ["%result%", "Save"])
def test_a_picture_that_exists_on_the_socket_alone_is_refused(title: str) -> None:
    content = example()
    content["result"]["class_type"] = "SaveImageWebsocket"
    content["result"]["_meta"]["title"] = title
    assert "SaveImageWebsocket" in refused(content)


@pytest.mark.parametrize("prefix", [{}, {"filename_prefix": "ComfyUI"}, {"filename_prefix": ["picture", 0]}])
@pytest.mark.parametrize("kind", ["SaveImage", "SaveAsWebP"])
def test_a_picture_that_is_saved_for_good_has_to_carry_the_jobs_name(kind: str, prefix: dict[str, Any]) -> None:
    """Or it could not be told from the operator's own, and would never be removed."""
    content = example()
    content["also"] = {"class_type": kind, "inputs": {"images": ["photo", 0], **prefix}}
    if kind == "SaveImage" or prefix:
        assert "%output_prefix%" in refused(content)
    content["also"]["inputs"]["filename_prefix"] = "%output_prefix%"
    assert Workflow.parse(json.dumps(content)).result_node == "result"


def test_of_several_saved_pictures_the_titled_one_counts() -> None:
    content = example()
    content["look"] = {"class_type": "PreviewImage", "inputs": {"images": ["photo", 0]}}
    assert Workflow.parse(json.dumps(content)).result_node == "result"
    content["result"]["_meta"]["title"] = "Preview"
    assert "look" in refused(content)
    content["look"]["_meta"] = content["result"]["_meta"] = {"title": "%result%"}
    assert "only one" in refused(content)


def test_a_custom_node_may_save_the_picture_when_it_is_titled() -> None:
    content = example()
    content["result"]["class_type"] = "SaveAsWebP"
    assert Workflow.parse(json.dumps(content)).result_node == "result"


def test_a_mask_that_the_result_does_not_depend_on_is_refused() -> None:
    assert "%mask%" in refused(without("conditioning", "mask", ["photo", 1]))


def test_a_circle_of_nodes_ends() -> None:
    assert Workflow.parse(json.dumps(without("checkpoint", "again", ["sampler", 0])))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError, match="cannot be read"):
        Workflow.load(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"\xe9": 1}')
    with pytest.raises(WorkflowError, match="UTF-8"):
        Workflow.load(tmp_path / "latin.json")
    (tmp_path / "huge.json").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(WorkflowError, match="larger"):
        Workflow.load(tmp_path / "huge.json")
