"""The operator's workflow: ComfyUI's API format with named placeholders for what changes with every job.

A placeholder is the whole value of an input (`"image": "%image%"`). Everything that can be known without the server is
checked when the file is loaded; what only the server knows (node classes, model files) it says itself to the first job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from vision.errors import VisionError

MAX_BYTES = 4 * 1024 * 1024
RESULT_TITLE = "%result%"
"""Title of the node whose picture counts, where several nodes save pictures."""

SAVES_PICTURES = frozenset({"SaveImage", "PreviewImage"})
"""Core nodes that leave a file which the history names."""
_SAVES_NO_FILE = frozenset({"SaveImageWebsocket"})
_LOST_ON_THE_WAY = (
    "the picture of SaveImageWebsocket is lost when the connection breaks: use PreviewImage, whose files are temporary"
)
_LOOKS_LIKE_PLACEHOLDER = re.compile(r"%[a-z_]+%", re.IGNORECASE)
_SAVES_FOR_GOOD = frozenset({"SaveImage"})
_PREFIX_INPUT = "filename_prefix"
"""Of every core node that saves for good, and of most others."""
_SEEDS = 2**64
"""KSampler takes whole numbers below this."""


class WorkflowError(VisionError):
    """The workflow file cannot be used. The message says what to do about it."""


class Placeholder(StrEnum):
    """What changes with every job."""

    IMAGE = "%image%"
    """File name of the uploaded photo crop, for LoadImage."""
    MASK = "%mask%"
    """File name of the mask: for LoadImageMask with any channel, or for LoadImage's MASK output."""
    PROMPT = "%prompt%"
    NEGATIVE_PROMPT = "%negative_prompt%"
    SEED = "%seed%"
    """Becomes a whole number."""
    OUTPUT_PREFIX = "%output_prefix%"
    """For SaveImage's `filename_prefix`: a sub-folder and a name that no other job has."""


_NEEDED = (Placeholder.IMAGE, Placeholder.MASK, Placeholder.SEED)

Node = Mapping[str, Any]
Values = Mapping[Placeholder, str | int]


@dataclass(frozen=True, slots=True)
class Workflow:
    """A checked workflow."""

    nodes: Mapping[str, Node] = field(repr=False)
    """By node id; placeholders not filled in."""
    result_node: str
    """Id of the node whose first picture is the result."""

    @classmethod
    def load(cls, path: Path) -> Workflow:
        """Read and check a file; raises `WorkflowError`."""
        try:
            if path.stat().st_size > MAX_BYTES:
                raise WorkflowError(f"the workflow file is larger than {MAX_BYTES} bytes: is it the right file?")
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise WorkflowError(
                f"the workflow file cannot be read ({error.strerror}): check growth.workflow"
            ) from error
        except UnicodeDecodeError as error:
            raise WorkflowError("the workflow file is not UTF-8 text: export it again from ComfyUI") from error
        return cls.parse(text)

    @classmethod
    def parse(cls, text: str) -> Workflow:
        """Check a workflow; raises `WorkflowError`."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise WorkflowError(f"the workflow is not JSON ({error}): export it again from ComfyUI") from error
        nodes = _api_format(content)
        _check_links(nodes)
        _check_placeholders(nodes)
        _check_prefixes(nodes)
        result = _result_node(nodes)
        _check_reaches(nodes, result)
        return cls(nodes, result)

    def filled(self, values: Values) -> dict[str, Any]:
        """A copy with every placeholder replaced."""
        known: dict[str, str | int] = {str(placeholder): value for placeholder, value in values.items()}
        return {
            node_id: {**node, "inputs": {name: _filled(value, known) for name, value in node["inputs"].items()}}
            for node_id, node in self.nodes.items()
        }

    def steps(self) -> Mapping[str, int]:
        """Steps that each node may have, by its id: a sampler's, where it says so itself; else one."""
        return {node_id: _steps(node["inputs"].get("steps")) for node_id, node in self.nodes.items()}


def seed_of(seed: int) -> int:
    """Any seed as one that samplers take."""
    return seed % _SEEDS


def _steps(steps: object) -> int:
    return steps if isinstance(steps, int) and not isinstance(steps, bool) and steps > 0 else 1


def _filled(value: Any, known: Mapping[str, str | int]) -> Any:
    return known.get(value, value) if isinstance(value, str) else value


def _api_format(content: object) -> Mapping[str, Node]:
    if not isinstance(content, dict) or not content:
        raise WorkflowError("the workflow is not a JSON object of nodes: use ComfyUI's menu Workflow → Export (API)")
    if isinstance(content.get("nodes"), list):
        raise WorkflowError(
            "this is the format of ComfyUI's editor, which the server does not run: use its menu Workflow → Export"
            " (API)"
        )
    if isinstance(content.get("prompt"), dict) and "class_type" not in content["prompt"]:
        raise WorkflowError("this is the body of a request: keep only what stands under `prompt`")
    for node_id, node in content.items():
        if not isinstance(node, dict) or not isinstance(node.get("class_type"), str):
            raise WorkflowError(f"node {node_id} has no class_type: use ComfyUI's menu Workflow → Export (API)")
        if not isinstance(node.get("inputs"), dict):
            raise WorkflowError(f"node {node_id} ({node['class_type']}) has no inputs: export the workflow again")
    return content


def _links(node: Node) -> Iterator[str]:
    """Ids of the nodes that feed this one: an input that is `[node id, output number]`."""
    for value in node["inputs"].values():
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int):
            yield value[0]


def _check_links(nodes: Mapping[str, Node]) -> None:
    for node_id, node in nodes.items():
        for source in _links(node):
            if source not in nodes:
                raise WorkflowError(
                    f"node {node_id} ({node['class_type']}) takes its input from node {source}, which is not there:"
                    " export the workflow again"
                )


def _used(nodes: Mapping[str, Node]) -> Iterator[tuple[str, str, str]]:
    """Node id, input name and value wherever a text is the whole value of an input."""
    for node_id, node in nodes.items():
        for name, value in node["inputs"].items():
            if isinstance(value, str):
                yield node_id, name, value


def _check_placeholders(nodes: Mapping[str, Node]) -> None:
    known = {str(placeholder) for placeholder in Placeholder}
    found = set()
    for node_id, name, value in _used(nodes):
        if value in known:
            found.add(value)
        elif _LOOKS_LIKE_PLACEHOLDER.fullmatch(value):
            raise WorkflowError(
                f"node {node_id}, input {name}: {value} is no placeholder; there are {', '.join(sorted(known))}"
            )
    missing = [str(placeholder) for placeholder in _NEEDED if placeholder not in found]
    if missing:
        raise WorkflowError(
            f"no node has {' or '.join(missing)} as an input: write it, with its percent signs, in place of the file"
            " name (LoadImage, LoadImageMask) or the number (the sampler's seed)"
        )


def _check_prefixes(nodes: Mapping[str, Node]) -> None:
    """Pictures that are saved for good have to carry the job's name: no other file is ever overwritten."""
    for node_id, node in nodes.items():
        saves = node["class_type"] in _SAVES_FOR_GOOD or _PREFIX_INPUT in node["inputs"]
        if saves and node["inputs"].get(_PREFIX_INPUT) != Placeholder.OUTPUT_PREFIX:
            raise WorkflowError(
                f"node {node_id} ({node['class_type']}) would leave patients' pictures for good, under names that are"
                f" not told from yours: write {Placeholder.OUTPUT_PREFIX} as its {_PREFIX_INPUT}, or use PreviewImage"
            )


def _result_node(nodes: Mapping[str, Node]) -> str:
    titled = [node_id for node_id, node in nodes.items() if _title(node) == RESULT_TITLE]
    if any(nodes[node_id]["class_type"] in _SAVES_NO_FILE for node_id in titled):
        raise WorkflowError(_LOST_ON_THE_WAY)
    if len(titled) == 1:
        return titled[0]
    if titled:
        raise WorkflowError(f"nodes {', '.join(titled)} have the title {RESULT_TITLE}: only one may")
    saving = [node_id for node_id, node in nodes.items() if node["class_type"] in SAVES_PICTURES]
    if len(saving) == 1:
        return saving[0]
    if saving:
        raise WorkflowError(
            f"nodes {', '.join(saving)} save pictures: give the one that counts the title {RESULT_TITLE}"
        )
    if any(node["class_type"] in _SAVES_NO_FILE for node in nodes.values()):
        raise WorkflowError(_LOST_ON_THE_WAY)
    raise WorkflowError(
        f"no node saves the picture: end the workflow in PreviewImage or SaveImage, or give the node that does it the"
        f" title {RESULT_TITLE}"
    )


def _title(node: Node) -> str:
    meta = node.get("_meta")
    return str(meta.get("title", "")) if isinstance(meta, dict) else ""


def _check_reaches(nodes: Mapping[str, Node], result: str) -> None:
    """Photo, mask and seed have to lie on the way to the result."""
    reached: set[str] = set()
    ahead = [result]
    while ahead:
        node_id = ahead.pop()
        if node_id not in reached:
            reached.add(node_id)
            ahead += _links(nodes[node_id])
    for placeholder in _NEEDED:
        if not any(node_id in reached and value == placeholder for node_id, _name, value in _used(nodes)):
            raise WorkflowError(
                f"{placeholder} has no way to the result, node {result}: connect it, or the picture does not depend on"
                " it"
            )
