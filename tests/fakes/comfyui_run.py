"""What the fake ComfyUI says while it executes a prompt."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Send = Callable[[str, dict[str, Any], str | None], None]
"""Event, data, and the client id that gets it; None: all."""


class Run:
    """What one prompt says while it is executed."""

    def __init__(self, prompt_id: str, client_id: str | None, send: Send) -> None:
        self.client_id = client_id
        self.messages: list[list[Any]] = []
        self.outputs: dict[str, Any] = {}
        self.meta: dict[str, Any] = {}
        self._prompt_id = prompt_id
        self._send = send
        self._states: dict[str, tuple[float, float, str]] = {}

    def add(self, event: str, data: dict[str, Any]) -> None:
        """A message that is kept in the history as well."""
        whole = {**data, "prompt_id": self._prompt_id, "timestamp": int(time.time() * 1000)}
        self.messages.append([event, whole])
        if self.client_id is not None:
            self._send(event, whole, self.client_id)

    def begin(self, node_id: str) -> None:
        self.state(self._states | {node_id: (0.0, 1.0, "running")})
        self.say("executing", {"node": node_id, "display_node": node_id})

    def progress(self, node_id: str, value: float, most: float) -> None:
        self.state(self._states | {node_id: (value, most, "running")})
        self.say("progress", {"value": value, "max": most, "node": node_id})

    def finish(self, node_id: str) -> None:
        most = self._states[node_id][1]
        self.state(self._states | {node_id: (most, most, "finished")})

    def executed(self, node_id: str, output: dict[str, Any] | None) -> None:
        self.say("executed", {"node": node_id, "display_node": node_id, "output": output})
        if self.client_id is not None or self._states:
            self.outputs[node_id] = output
            self.meta[node_id] = {
                "node_id": node_id,
                "display_node": node_id,
                "parent_node": None,
                "real_node_id": node_id,
            }

    def fail(self, node_id: str, prompt: dict[str, Any], executed: list[str], kind: str, error: Exception) -> None:
        exception = kind or f"{type(error).__module__}.{type(error).__qualname__}"
        inputs = {name: [value] for name, value in prompt[node_id]["inputs"].items() if not isinstance(value, list)}
        data = {
            "node_id": node_id,
            "node_type": prompt[node_id]["class_type"],
            "executed": executed,
            "exception_message": f"{error}\n",
            "exception_type": exception,
            "traceback": ['  File "/srv/comfyui/execution.py", line 510, in execute\n'],
            "current_inputs": inputs,
            "current_outputs": list(prompt),
        }
        self.add("execution_error", data)

    def state(self, states: dict[str, tuple[float, float, str]]) -> None:
        """`progress_state` of all nodes so far; to everybody where there is no client."""
        self._states = states
        shown = {
            node_id: {
                "value": value,
                "max": most,
                "state": state,
                "node_id": node_id,
                "prompt_id": self._prompt_id,
                "display_node_id": node_id,
                "parent_node_id": None,
                "real_node_id": node_id,
            }
            for node_id, (value, most, state) in states.items()
        }
        self._send("progress_state", {"prompt_id": self._prompt_id, "nodes": shown}, self.client_id)

    def say(self, event: str, data: dict[str, Any]) -> None:
        if self.client_id is not None:
            self._send(event, {**data, "prompt_id": self._prompt_id}, self.client_id)
