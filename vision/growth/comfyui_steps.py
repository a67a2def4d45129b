"""How far a prompt is, from the messages of the server's socket: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vision.growth.comfyui_answers import number

MOST_STEPS = 1000
"""Of one node; what counts further, as a download does, counts in larger steps."""

_ENDS = frozenset({"execution_success", "execution_error", "execution_interrupted"})


class Steps:
    """Counts the finished steps of one prompt.

    How many a node has it says itself, whatever its class and inputs are called; `guesses` stand in, by the ids of all
    nodes, for those that have not spoken yet.
    """

    def __init__(self, guesses: Mapping[str, int]) -> None:
        self._steps = dict(guesses)
        self._shares = dict.fromkeys(guesses, 0.0)
        self._executing = ""
        self.began = False
        """Whether the server has begun with it."""
        self.ended = False
        """Whether the server says that it is over; how it ended stands in the history."""

    @property
    def total(self) -> int:
        """Steps of the whole prompt, as far as is known; may grow."""
        return sum(self._steps.values())

    @property
    def done(self) -> int:
        """Finished steps; never falls."""
        return sum(int(self._steps[node_id] * share + 1e-6) for node_id, share in self._shares.items())

    def see(self, message: Any, prompt_id: str) -> bool:
        """Take one message; returns whether it speaks of this prompt."""
        data = message.get("data") if isinstance(message, Mapping) else None
        if not isinstance(data, Mapping) or data.get("prompt_id") != prompt_id:
            return False
        self.began = True
        match message.get("type"):
            case "execution_cached":
                nodes = data.get("nodes")
                for node_id in nodes if isinstance(nodes, list) else ():
                    self._reach(str(node_id), 1.0)
            case "executing" if isinstance(data.get("node"), str):
                # Servers without `progress_state` say only what comes next.
                self._reach(self._executing, 1.0)
                self._executing = data["node"]
            case "executing":
                self.ended = True
            case "executed":
                self._reach(str(data.get("node")), 1.0)
            case "progress":
                self._count(str(data.get("node")), data)
            case "progress_state":
                nodes = data.get("nodes")
                for node_id, state in nodes.items() if isinstance(nodes, Mapping) else ():
                    if isinstance(state, Mapping):
                        self._count(str(node_id), state)
            case str(event) if event in _ENDS:
                self.ended = True
        return True

    def _count(self, node_id: str, state: Mapping[str, Any]) -> None:
        value, most = number(state.get("value")), number(state.get("max"))
        if value is not None and most is not None and most > 0:
            if node_id in self._steps:
                self._steps[node_id] = max(self._steps[node_id], min(int(most), MOST_STEPS))
            self._reach(node_id, min(max(value / most, 0.0), 1.0))
        if state.get("state") == "finished":
            self._reach(node_id, 1.0)

    def _reach(self, node_id: str, share: float) -> None:
        if node_id in self._shares:
            self._shares[node_id] = max(share, self._shares[node_id])
