"""A simulated server that has worked for a while, under the real watchdog."""

from __future__ import annotations

from collections.abc import Iterable

from tests.fakes.vllm_engine import VllmServer
from tests.fakes.vllm_metrics import Flavour
from tests.sim.watched_server import Watched
from worker.health.verdict import Verdict
from worker.health.watchdog.policy import Action, Decision

SETTLED_S = 2_000.0
"""Long after any start."""


def watched(*, engines: int = 1, slots: int = 2, flavour: Flavour = Flavour.V1, work_s: float = 1e6) -> Watched:
    """A server that has worked for half an hour, with two long requests on each engine."""
    server = VllmServer(engines=engines, slots=slots)
    for _ in range(2 * engines):
        server.submit(work_s)
    server.advance(SETTLED_S - 1.0)
    return Watched(server, flavour=flavour)


def verdicts(decisions: Iterable[Decision]) -> set[Verdict]:
    return {decision.finding.verdict for decision in decisions}


def actions(decisions: Iterable[Decision]) -> list[Action]:
    return [decision.action for decision in decisions if decision.action is not Action.NOTHING]
