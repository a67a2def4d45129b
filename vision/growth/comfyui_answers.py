"""What a ComfyUI server says, read: no I/O.

Shapes as ComfyUI 0.8.0 answers. Everything is read as if it came from a stranger: a custom node or a proxy may have
written it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from vision.growth.comfyui_mishaps import Mishap, MishapError

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NO_NUMBER = 2.0**63
"""What counts something is smaller."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file on the server."""

    name: str
    subfolder: str
    type: str
    """`input`, `output` or `temp`."""

    @property
    def annotated(self) -> str:
        """As nodes that load files take it: the folder's type behind the name."""
        path = f"{self.subfolder}/{self.name}" if self.subfolder else self.name
        return f"{path} [{self.type}]"


@dataclass(frozen=True, slots=True)
class Queued:
    """One prompt in the server's queue."""

    number: float
    prompt_id: str
    client_id: str
    """Empty when it has none."""
    prompt: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Queue:
    """The server's queue at one moment."""

    running: tuple[Queued, ...]
    pending: tuple[Queued, ...]

    def prompts(self) -> Iterator[Queued]:
        """All of them, the running first."""
        yield from self.running
        yield from self.pending

    def ahead_of(self, prompt_id: str) -> int | None:
        """How many prompts run before `prompt_id`: 0 for a running one, None when it is not in the queue."""
        if any(item.prompt_id == prompt_id for item in self.running):
            return 0
        own = next((item for item in self.pending if item.prompt_id == prompt_id), None)
        if own is None:
            return None
        return len(self.running) + sum(item.number < own.number for item in self.pending)


@dataclass(frozen=True, slots=True)
class Ended:
    """A history entry."""

    prompt_id: str
    client_id: str
    prompt: Mapping[str, Any]
    files: tuple[StoredFile, ...]
    """All files that its nodes left; not those that were answered from the cache, which an earlier job has left."""
    by_node: Mapping[str, tuple[StoredFile, ...]]
    """The pictures of each output node."""
    mishap: MishapError | None
    """Why it failed; None when it ended well."""


def number(value: object) -> float | None:
    """A number to count with; None for whatever else stands there, NaN and numbers without end among it."""
    return float(value) if isinstance(value, int | float) and abs(value) < _NO_NUMBER else None


def stored_file(answer: Any) -> StoredFile:
    """The answer to an upload. Raises `MishapError`."""
    try:
        return _file(answer["name"], answer["subfolder"], answer["type"])
    except (KeyError, TypeError, ValueError):
        raise MishapError(Mishap.NOT_COMFYUI, "the answer to an upload names no file") from None


def _file(name: object, subfolder: object, kind: object) -> StoredFile:
    """Raises `TypeError` and `ValueError` for what can be no name: no text, half a character, one that ends a line."""
    if not (isinstance(name, str) and isinstance(subfolder, str) and isinstance(kind, str)):
        raise TypeError("no text")
    if not name or not (name + subfolder + kind).isprintable():
        raise ValueError("no name")
    return StoredFile(name, subfolder, kind)


def prompt_id_of(answer: Any) -> str:
    """The id of a prompt that was taken. Raises `MishapError`: REFUSED, NOT_COMFYUI.

    A server takes a prompt of which some outputs are not valid, and runs the rest: refused as well.
    """
    refused = refusal(answer)
    if refused is not None:
        raise refused
    prompt_id = answer.get("prompt_id") if isinstance(answer, Mapping) else None
    if not isinstance(prompt_id, str) or not _ID.fullmatch(prompt_id):
        raise MishapError(Mishap.NOT_COMFYUI, "the answer to a prompt has no prompt_id")
    return prompt_id


def refusal(answer: Any) -> MishapError | None:
    """What is wrong with a prompt, by the ids of its nodes; None when nothing is.

    Only names of node classes and kinds of errors: the details hold file names and values.
    """
    if not isinstance(answer, Mapping):
        return None
    nodes = answer.get("node_errors")
    error = answer.get("error")
    if not nodes and not error:
        return None
    kinds = [_word(error.get("type")) if isinstance(error, Mapping) else _word(error)] if error else []
    if isinstance(nodes, Mapping):
        for node_id, wrong in nodes.items():
            found = wrong if isinstance(wrong, Mapping) else {}
            errors = found.get("errors")
            types = sorted({_word(each.get("type")) for each in _mappings(errors)})
            kinds.append(" ".join(["node", _word(node_id), _word(found.get("class_type")), *types]).strip())
    return MishapError(Mishap.REFUSED, ", ".join(kinds))


def _word(value: object) -> str:
    """A name from outside, fit for a log line."""
    text = str(value) if isinstance(value, str | int) else ""
    return "".join(sign for sign in text if sign.isalnum() or sign in "._-+:() ")[:60]


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield from (each for each in value if isinstance(each, Mapping))


def read_queue(answer: Any) -> Queue:
    """The answer of `GET /queue`. Raises `MishapError`."""
    try:
        return Queue(
            tuple(_queued(item) for item in answer["queue_running"]),
            tuple(_queued(item) for item in answer["queue_pending"]),
        )
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        raise MishapError(Mishap.NOT_COMFYUI, "its queue is not as ComfyUI answers") from None


def _queued(item: Sequence[Any]) -> Queued:
    """`[number, prompt_id, prompt, extra, outputs]`."""
    prompt = item[2] if isinstance(item[2], Mapping) else {}
    extra = item[3] if isinstance(item[3], Mapping) else {}
    return Queued(float(item[0]), str(item[1]), str(extra.get("client_id", "")), prompt)


def read_history(answer: Any) -> tuple[Ended, ...]:
    """The answer of `GET /history` or `GET /history/{prompt_id}`. Raises `MishapError`."""
    try:
        return tuple(_ended(str(prompt_id), entry) for prompt_id, entry in answer.items())
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError):
        raise MishapError(Mishap.NOT_COMFYUI, "its history is not as ComfyUI answers") from None


def _ended(prompt_id: str, entry: Mapping[str, Any]) -> Ended:
    item = _queued(entry["prompt"])
    status = entry.get("status")
    cached = [node_id for event, data in _messages(status) if event == "execution_cached" for node_id in data["nodes"]]
    by_node: dict[str, tuple[StoredFile, ...]] = {}
    files: list[StoredFile] = []
    for node_id, output in entry["outputs"].items():
        by_node[str(node_id)] = tuple(_files(output.get("images")))
        if node_id not in cached:
            files += [file for values in output.values() for file in _files(values)]
    return Ended(prompt_id, item.client_id, item.prompt, tuple(files), by_node, _failure(status))


def _files(values: object) -> Iterator[StoredFile]:
    for value in _mappings(values):
        with suppress(TypeError, ValueError):  # a file whose name cannot be said can be neither fetched nor removed
            yield _file(value.get("filename"), value.get("subfolder", ""), value.get("type", "output"))


def _messages(status: Any) -> Iterator[tuple[Any, Any]]:
    """What a prompt said while it ran. Servers of 2023 have kept nothing of it."""
    for message in status.get("messages", ()) if isinstance(status, Mapping) else ():
        event, data = message[:2]
        yield event, data


def _failure(status: Any) -> MishapError | None:
    # Servers of 2023 have no status; what they list in their history has ended well.
    if not isinstance(status, Mapping) or status.get("status_str") == "success":
        return None
    for event, data in _messages(status):
        if event == "execution_interrupted":
            return MishapError(Mishap.INTERRUPTED, f"node {_word(data.get('node_id'))}")
        if event == "execution_error":
            kind = _word(data.get("exception_type"))
            where = f"node {_word(data.get('node_id'))} {_word(data.get('node_type'))}: {kind}"
            full = kind.rpartition(".")[2] == "OutOfMemoryError"
            return MishapError(Mishap.OUT_OF_MEMORY if full else Mishap.NODE_FAILED, where)
    return MishapError(Mishap.NODE_FAILED, "no node is named")


def read_signs(queue: Queue, stats: Any) -> tuple[object, ...]:
    """What only work changes: which prompts run, and the memory that torch holds on an accelerator.

    That memory breathes with every node and step, in jobs of others too. A machine without accelerator shows the
    prompts alone.
    """
    memory = [
        number(device.get(key))
        for device in _mappings(stats.get("devices") if isinstance(stats, Mapping) else None)
        if device.get("type") != "cpu"
        for key in ("torch_vram_total", "torch_vram_free")
    ]
    return (*(item.prompt_id for item in queue.running), *(value for value in memory if value is not None))
