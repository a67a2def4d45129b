"""The fake ComfyUI's queue, executor, cache and folders, in the order and shapes that a real 0.8.0 showed.

One thread executes, as in the real one. What it says goes to `send`; `Faults` are the knobs for what goes wrong.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes import comfyui_nodes as nodes
from tests.fakes.comfyui_run import Run, Send

FileKey = tuple[str, str, str]
"""Type, sub-folder, name."""

_TYPES = ("input", "output", "temp")
_STEP_S = 0.005


class InterruptedPromptError(Exception):
    """The running prompt was interrupted."""


@dataclass(slots=True)
class Faults:
    """What goes wrong, while it is set."""

    forgets: int = 0
    """So many prompts are taken and are then nowhere."""
    empty: int = 0
    """So many prompts end well without any output."""
    interrupted: int = 0
    """So many prompts are interrupted by somebody else."""
    errors_in_200: bool = False
    """Prompts are taken although a node is not valid."""
    silent: bool = False
    """Sockets hear nothing after their first status."""
    hangs: bool = False
    """What runs never moves again and cannot be interrupted, as after running out of memory."""
    breaks: str = ""
    """Class of the node that raises …"""
    exception: str = "RuntimeError"
    """… this."""
    progress: Any = None
    """What a sampler says instead of its step."""
    deaf: bool = False
    """A held node computes without looking up: it cannot be interrupted."""
    more_output: dict[str, Any] = field(default_factory=dict)
    """What a saving node names beside its picture."""
    renames: bool = False
    """What is new is stored under another name."""
    keeps: str = ""
    """Files with this in their names cannot be overwritten."""
    output: bytes | None = None
    """Instead of every picture that is saved."""
    replaced: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Status and body by path, instead of the true answer."""


class Engine:
    """One server's inside. `node_s` is how long each node takes, `steps_s` each step of a sampler."""

    def __init__(self, send: Send, *, node_s: float = 0.0, step_s: float = 0.0) -> None:
        self.faults = Faults()
        self.files: dict[FileKey, bytes] = {}
        self.written: list[FileKey] = []
        """Every file that was ever written, in order."""
        self.history: dict[str, dict[str, Any]] = {}
        self.running: list[list[Any]] = []
        self.pending: list[list[Any]] = []
        self.executing = ""
        """Client id of the running prompt."""
        self.node: str | None = None
        """The node that runs."""
        self.reached = threading.Event()
        """Set when a held node is reached."""
        self.hold = ""
        """Class of the node that waits until `release` is set."""
        self.release = threading.Event()
        self.memory = 1_000_000
        """Bytes that torch has free: breathes with every node and step."""
        self.node_s = node_s
        self.step_s = step_s
        self.lock = threading.RLock()
        self._send = send
        self._number = 0
        self._cache: dict[str, tuple[nodes.Outputs, dict[str, Any] | None]] = {}
        self._interrupt = threading.Event()
        self._closed = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._execute_all, name="fake comfyui", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._wake.set()
        self.release.set()
        self._thread.join()

    def forget_all(self) -> None:
        """What a restart of the process forgets: queue, history, cache, temporary files."""
        with self.lock:
            self._interrupt.set()
            self.running, self.pending, self.history, self._cache = [], [], {}, {}
            self.files = {key: data for key, data in self.files.items() if key[0] != "temp"}

    def upload(self, data: bytes, key: FileKey, *, overwrite: bool) -> FileKey:
        """Store a file; without `overwrite` a taken name is numbered, unless the bytes are the same."""
        kind, subfolder, name = key
        stem, dot, ending = name.rpartition(".")
        number = 1
        if self.faults.renames and key not in self.files:
            key = (kind, subfolder, f"{stem} (1){dot}{ending}")
        with self.lock:
            while not overwrite and self.files.get(key, data) != data:
                key = (kind, subfolder, f"{stem} ({number}){dot}{ending}")
                number += 1
            self._write(key, data)
        return key

    def submit(self, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """`POST /prompt`: status and answer."""
        prompt = body.get("prompt")
        if not isinstance(prompt, dict):
            return 400, _refusal("no_prompt", "No prompt provided", "No prompt provided")
        for node_id, node in prompt.items():
            if node["class_type"] not in nodes.KNOWN:
                message = f"Cannot execute because node {node['class_type']} does not exist."
                return 400, _refusal("invalid_prompt", message, f"Node ID '#{node_id}'")
        outputs = [node_id for node_id, node in prompt.items() if node["class_type"] in nodes.SAVES]
        if not outputs:
            return 400, _refusal("prompt_no_outputs", "Prompt has no outputs", "")
        wrong = self._node_errors(prompt, outputs)
        if wrong and not self.faults.errors_in_200:
            return 400, _refusal("prompt_outputs_failed_validation", "Prompt outputs failed validation", "", wrong)
        prompt_id = str(uuid.uuid4())
        client = {"client_id": body["client_id"]} if "client_id" in body else {}
        with self.lock:
            number, self._number = self._number, self._number + 1
            if self.faults.forgets:
                self.faults.forgets -= 1
            else:
                extra = client | {"create_time": int(time.time() * 1000)}
                self.pending.append([number, prompt_id, prompt, extra, outputs])
                self._tell_status()
        self._wake.set()
        return 200, {"prompt_id": prompt_id, "number": number, "node_errors": wrong}

    def drop(self, prompt_id: str) -> None:
        """`POST /queue` with `delete`."""
        with self.lock:
            self.pending = [item for item in self.pending if item[1] != prompt_id]
            self._tell_status()

    def interrupt(self, prompt_id: str | None) -> None:
        """`POST /interrupt`: the prompt with this id if it runs, or whatever runs."""
        with self.lock:
            if prompt_id is None or any(item[1] == prompt_id for item in self.running):
                self._interrupt.set()

    def queue_info(self) -> dict[str, Any]:
        """As in status messages."""
        return {"exec_info": {"queue_remaining": len(self.running) + len(self.pending)}}

    def read(self, annotated: str) -> bytes:
        """The file that a node names: `sub/name.png [temp]`."""
        kind = next((kind for kind in _TYPES if annotated.endswith(f" [{kind}]")), None)
        path = annotated if kind is None else annotated[: -len(kind) - 3]
        subfolder, _, name = path.rpartition("/")
        return self.files[kind or "input", subfolder, name]

    def _node_errors(self, prompt: Mapping[str, Any], outputs: list[str]) -> dict[str, Any]:
        wrong = {}
        for node_id, node in prompt.items():
            inputs = node["inputs"]
            error: dict[str, Any] | None = None
            if node["class_type"] in nodes.LOADS and not self._is_there(inputs["image"]):
                error = _error(
                    "custom_validation_failed",
                    "Custom validation failed for node",
                    f"image - Invalid image file: {inputs['image']}",
                    {"input_name": "image"},
                )
            if node["class_type"] == "ImageScaleBy" and inputs["scale_by"] > 8.0:
                config = ["FLOAT", {"default": 1.0, "min": 0.01, "max": 8.0, "step": 0.01}]
                given = inputs["scale_by"]
                error = _error(
                    "value_bigger_than_max",
                    f"Value {given} bigger than max of 8.0",
                    "scale_by",
                    {"input_name": "scale_by", "input_config": config, "received_value": given},
                )
            if error is not None:
                dependent = [output for output in outputs if node_id in nodes.in_order(prompt, [output])]
                class_type = node["class_type"]
                wrong[node_id] = {"errors": [error], "dependent_outputs": dependent, "class_type": class_type}
        return wrong

    def _is_there(self, annotated: str) -> bool:
        try:
            self.read(annotated)
        except KeyError:
            return False
        return True

    def _write(self, key: FileKey, data: bytes) -> None:
        self.files[key] = data
        self.written.append(key)

    def _tell_status(self) -> None:
        self._send("status", {"status": self.queue_info()}, None)

    def _execute_all(self) -> None:
        while not self._closed.is_set():
            with self.lock:
                if self.pending:
                    self.pending.sort(key=lambda item: float(item[0]))
                    self.running = [self.pending.pop(0)]
                    self._interrupt.clear()
                    self._tell_status()
                else:
                    self._wake.clear()
            if self.running:
                self._execute(self.running[0])
            else:
                self._wake.wait(1.0)

    def _execute(self, item: list[Any]) -> None:
        _number, prompt_id, prompt, extra, outputs = item
        client_id = extra.get("client_id")
        run = Run(prompt_id, client_id, self._send)
        self.executing = client_id or ""
        run.add("execution_start", {})
        mishap = self._mishap(prompt_id, run, prompt, outputs)
        self.executing, self.node = "", None
        entry = {
            "prompt": item,
            "outputs": {} if mishap else run.outputs,
            "status": {
                "status_str": "error" if mishap else "success",
                "completed": not mishap,
                "messages": run.messages,
            },
            "meta": {} if mishap else run.meta,
        }
        with self.lock:
            if self.running and self.running[0] is item:  # else the server has restarted meanwhile
                self.running = []
                self.history[prompt_id] = entry
                self._tell_status()
                if client_id is not None:
                    self._send("executing", {"node": None, "prompt_id": prompt_id}, client_id)

    def _mishap(self, prompt_id: str, run: Run, prompt: dict[str, Any], outputs: list[str]) -> bool:
        """Execute; returns whether it failed."""
        order = nodes.in_order(prompt, outputs)
        try:
            signs = {node_id: nodes.signature(prompt, node_id, self.read) for node_id in order}
        except KeyError:  # the file has gone since the prompt was taken
            signs = {node_id: uuid.uuid4().hex for node_id in order}
        cached = [node_id for node_id in order if signs[node_id] in self._cache]
        if self.faults.empty:
            self.faults.empty -= 1
            run.add("execution_cached", {"nodes": list(prompt)})
            run.add("execution_success", {})
            return False
        run.add("execution_cached", {"nodes": cached})
        values = {node_id: self._cache[signs[node_id]] for node_id in cached}
        self._cache = {}
        executed: list[str] = []
        for node_id in order:
            if node_id not in values:
                run.begin(node_id)
                self.node = node_id
                try:
                    values[node_id] = self._compute(prompt[node_id], node_id, values, run)
                except InterruptedPromptError:
                    class_type = prompt[node_id]["class_type"]
                    data = {"node_id": node_id, "node_type": class_type, "executed": executed}
                    run.add("execution_interrupted", data)
                    return True
                except Exception as error:  # noqa: BLE001  (whatever a node raises)
                    run.fail(node_id, prompt, executed, self.faults.exception if self.faults.breaks else "", error)
                    return True
                if values[node_id][1] is not None:
                    run.executed(node_id, values[node_id][1])
                run.finish(node_id)
                executed.append(node_id)
            elif values[node_id][1] is not None and run.client_id is not None:
                run.executed(node_id, values[node_id][1])
                run.state({node_id: (1, 1, "finished")})
            elif values[node_id][1] is not None:
                run.state({node_id: (1, 1, "finished")})
            self._cache[signs[node_id]] = values[node_id]
        run.add("execution_success", {})
        return False

    def _compute(
        self, node: dict[str, Any], node_id: str, values: dict[str, tuple[nodes.Outputs, Any]], run: Run
    ) -> tuple[nodes.Outputs, dict[str, Any] | None]:
        kind = node["class_type"]
        if self.hold == kind:
            self.reached.set()
            self._idle(self.release)
        self._pass_time(self.node_s)
        if self.faults.breaks == kind:
            raise RuntimeError("Allocation on device")
        if self.faults.interrupted:
            self.faults.interrupted -= 1
            raise InterruptedPromptError
        inputs = {
            name: values[value[0]][0][value[1]] if isinstance(value, list) else value
            for name, value in node["inputs"].items()
        }
        if kind == "LoadImage":
            return nodes.load_image(self.read(inputs["image"])), None
        if kind == "LoadImageMask":
            return nodes.load_mask(self.read(inputs["image"]), inputs["channel"]), None
        if kind in nodes.SAVES:
            return (), self._save(nodes.SAVES[kind], inputs)
        steps = nodes.steps_of(kind, inputs)
        for step in range(steps):
            self._pass_time(self.step_s)
            value = step + 1 if self.faults.progress is None else self.faults.progress
            run.progress(node_id, value, steps)
        return nodes.COMPUTES[kind](inputs), None

    def _save(self, kind: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        path = inputs["filename_prefix"] if kind == "output" else "ComfyUI_temp_abcde"
        subfolder, _, prefix = path.rpartition("/")
        data = nodes.png(inputs["images"]) if self.faults.output is None else self.faults.output
        with self.lock:
            taken = sum(key[:2] == (kind, subfolder) and key[2].startswith(prefix) for key in self.files)
            name = f"{prefix}_{taken + 1:05}_.png"
            self._write((kind, subfolder, name), data)
        return {"images": [{"filename": name, "subfolder": subfolder, "type": kind}], **self.faults.more_output}

    def _idle(self, until: threading.Event) -> None:
        """Wait. It can be interrupted, as a node that computes without looking up cannot."""
        while not until.wait(_STEP_S):
            if not self.faults.deaf:
                self._look()

    def _pass_time(self, seconds: float) -> None:
        self.memory += 1
        while self.faults.hangs and not self._closed.is_set():
            time.sleep(_STEP_S)
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            self._look()
            time.sleep(min(_STEP_S, seconds))
        self._look()

    def _look(self) -> None:
        if self._interrupt.is_set() or self._closed.is_set():
            raise InterruptedPromptError


def _error(kind: str, message: str, details: str, extra: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "message": message, "details": details, "extra_info": extra}


def _refusal(kind: str, message: str, details: str, wrong: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"error": _error(kind, message, details, {}), "node_errors": wrong or {}}
