"""How far a prompt is, from the messages of the server's socket: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ENDS = frozenset({"execution_success", "execution_error", "execution_interrupted"})


class Steps:
    """Counts the finished steps of one prompt. `weights` are the steps of each of its nodes."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = weights
        self._shares: dict[str, float] = {}
        self._executing = ""
        self.began = False
        """Whether the server has begun with it."""
        self.ended = False
        """Whether the server says that it is over; how it ended stands in the history."""

    @property
    def total(self) -> int:
        """Steps of the whole prompt."""
        return sum(self._weights.values())

    @property
    def done(self) -> int:
        """Finished steps."""
        return sum(int(self._weights.get(node_id, 0) * share + 1e-6) for node_id, share in self._shares.items())

    def see(self, message: Any, prompt_id: str) -> bool:
        """Take one message; returns whether it speaks of this prompt."""
        data = message.get("data") if isinstance(message, Mapping) else None
        if not isinstance(data, Mapping) or data.get("prompt_id") != prompt_id:
            return False
        self.began = True
        match message.get("type"):
            case "execution_cached":
                for node_id in _strings(data.get("nodes")):
                    self._reach(node_id, 1.0)
            case "executing" if isinstance(data.get("node"), str):
                # Servers without `progress_state` say only what comes next.
                self._reach(self._executing, 1.0)
                self._executing = data["node"]
            case "executing":
                self.ended = True
            case "executed":
                self._reach(str(data.get("node")), 1.0)
            case "progress":
                self._reach(str(data.get("node")), _share(data))
            case "progress_state":
                self._see_state(data.get("nodes"))
            case str(event) if event in _ENDS:
                self.ended = True
        return True

    def _see_state(self, nodes: Any) -> None:
        if isinstance(nodes, Mapping):
            for node_id, state in nodes.items():
                if isinstance(state, Mapping):
                    self._reach(str(node_id), 1.0 if state.get("state") == "finished" else _share(state))

    def _reach(self, node_id: str, share: float) -> None:
        self._shares[node_id] = max(share, self._shares.get(node_id, 0.0))


def _share(data: Mapping[str, Any]) -> float:
    value, most = data.get("value"), data.get("max")
    if isinstance(value, int | float) and isinstance(most, int | float) and most > 0:
        return min(max(value / most, 0.0), 1.0)
    return 0.0


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
